# SPDX-License-Identifier: Apache-2.0
"""Files in and out of a sandbox: any bytes, any name, whole or not at all."""

import base64
import concurrent.futures
import hashlib
import os
import time

import pytest

from support.space import unique

FILE_MAX = 16 * 1024 * 1024


def encode(data):
    return base64.b64encode(data).decode()


def put(box, path, data):
    written = box.call("upload_file", path=path, content=encode(data), binary=True)
    assert written == {"bytes_written": len(data)}


def fetch(box, path):
    answer = box.call("download_file", path=path, binary=True)
    data = base64.b64decode(answer["content"])
    assert answer["bytes_read"] == len(data)
    return data


@pytest.fixture(name="folder")
def folder_fixture(box):
    path = f"/tmp/{unique('f')}"
    box.sh(f"mkdir {path}")
    return path


@pytest.mark.parametrize("size", [0, 1, 4095, 65536, 1 << 20])
def test_there_and_back(box, folder, size):
    data = os.urandom(size)
    put(box, f"{folder}/data", data)
    assert box.sh(f"sha256sum < {folder}/data").split()[0] == hashlib.sha256(data).hexdigest()
    assert fetch(box, f"{folder}/data") == data


def test_the_largest(box, folder):
    data = os.urandom(FILE_MAX)
    put(box, f"{folder}/large", data)
    assert fetch(box, f"{folder}/large") == data
    assert str(FILE_MAX) in box.error("upload_file", path=f"{folder}/more", content=encode(data + b"x"), binary=True)
    assert box.call("file_exists", path=f"{folder}/more") == {"exists": False}
    box.sh(f"echo x >> {folder}/large")
    said = box.error("download_file", path=f"{folder}/large", binary=True)
    assert str(FILE_MAX + 2) in said and "too large" in said
    box.sh(f"rm {folder}/large")


@pytest.mark.parametrize("text", ["", "hello\n", "no newline", "\r\n\t \n\n", "ü€🦊\u2028", "a\0b", "'\"\\$(id)`", "\n.\n"])
def test_text(box, folder, text):
    assert box.call("upload_file", path=f"{folder}/text", content=text) == {"bytes_written": len(text.encode())}
    assert box.call("download_file", path=f"{folder}/text") == {"content": text, "bytes_read": len(text.encode())}
    assert fetch(box, f"{folder}/text") == text.encode()


@pytest.mark.parametrize("name", [
    "with space", "quo'te", 'dou"ble', "dol$HOME", "$(touch owned)", "`id`", "semi;colon", "back\\slash", "-rf", "--help",
    "*", "?", "[a]", "ünï", "🦊", "new\nline", "%2e%2e", "a#b", "tab\tx", "&amp", "trailing ", "~", "n" * 255])
def test_names_are_just_bytes(box, folder, name):
    path = f"{folder}/{name}"
    put(box, path, name.encode())
    assert fetch(box, path) == name.encode()
    assert box.call("file_exists", path=path) == {"exists": True}
    listed = box.call("list_files", path=folder)
    assert [e["name"] for e in listed["entries"]] == [name] and listed["total_entries"] == 1
    assert box.sh("ls -A . | grep -c owned || true").strip() == "0"


def test_relative_to_the_working_directory(box, folder):
    where = box.sh("pwd").strip()
    name = unique("rel")
    if box.run("touch .probe && rm .probe")["exit_code"] != 0:
        pytest.fail(f"{where} cannot be written to")
    box.call("upload_file", path=name, content="x")
    assert box.sh(f"cat {name}") == "x" and fetch(box, f"{where.rstrip('/')}/{name}") == b"x"
    dotted = f"{folder}/../{folder.rsplit('/', 1)[1]}/./dotted"
    box.call("upload_file", path=dotted, content="y")
    assert fetch(box, f"{folder}/dotted") == b"y"
    box.sh(f"rm {name}")


def test_parents_are_made(box, folder):
    box.call("upload_file", path=f"{folder}/a/b/c", content="x")
    assert fetch(box, f"{folder}/a/b/c") == b"x"


def test_replacing_keeps_the_mode(box, folder):
    put(box, f"{folder}/script", b"#!/bin/sh\necho one\n")
    box.sh(f"chmod 750 {folder}/script")
    put(box, f"{folder}/script", b"#!/bin/sh\necho two\n")
    assert box.sh(f"stat -c %a {folder}/script; {folder}/script") == "750\ntwo\n"


def test_through_links(box, folder):
    box.sh(f"echo old > {folder}/real; ln -s real {folder}/link; ln -s nowhere {folder}/dangling")
    put(box, f"{folder}/link", b"new")
    assert fetch(box, f"{folder}/real") == b"new" and box.sh(f"readlink {folder}/link") == "real\n"
    assert fetch(box, f"{folder}/link") == b"new"
    assert box.call("file_exists", path=f"{folder}/dangling") == {"exists": False}


def test_a_reader_sees_the_old_or_the_new(box, folder):
    old, new = os.urandom(2 << 20), os.urandom(2 << 20)
    put(box, f"{folder}/file", old)
    sums = {hashlib.sha256(d).hexdigest() for d in (old, new)}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        watcher = pool.submit(box.sh, f"i=0; while [ $i -lt 60 ]; do sha256sum < {folder}/file; i=$((i+1)); done")
        put(box, f"{folder}/file", new)
        seen = {line.split()[0] for line in watcher.result().splitlines()}
    assert seen <= sums and fetch(box, f"{folder}/file") == new
    assert box.sh(f"ls -A {folder}") == "file\n"


def test_writers_side_by_side(box, folder):
    parts = [os.urandom(100_000) for _ in range(8)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda p: put(box, f"{folder}/one", p), parts))
    assert fetch(box, f"{folder}/one") in parts
    assert box.sh(f"ls -A {folder}") == "one\n"


# ---- listing

def test_list(box, folder):
    box.sh(f"cd {folder}; printf 12345 > file; mkdir dir .hidden; ln -s dir tolink; ln -s nowhere dangling; mkfifo pipe")
    listed = box.call("list_files", path=folder)
    entries = {e["name"]: e for e in listed["entries"]}
    assert [e["name"] for e in listed["entries"]] == sorted(entries)
    assert set(entries) == {"file", "dir", ".hidden", "tolink", "dangling", "pipe"}
    assert (listed["total_entries"], listed["truncated"]) == (6, False)
    assert {n for n, e in entries.items() if e["type"] == "directory"} == {"dir", ".hidden", "tolink"}
    assert entries["file"]["size"] == 5
    assert abs(entries["file"]["mod_time"] - time.time()) < 60


def test_list_of_nothing_and_of_much(box, folder):
    assert box.call("list_files", path=folder) == {"entries": [], "total_entries": 0, "truncated": False}
    box.sh(f"cd {folder}; i=0; while [ $i -lt 1200 ]; do : > f$i; i=$((i+1)); done")
    listed = box.call("list_files", path=folder)
    assert (len(listed["entries"]), listed["total_entries"], listed["truncated"]) == (1000, 1200, True)
    for count, truncated in ((1, True), (1199, True), (1200, False), (10000, False)):
        listed = box.call("list_files", path=folder, max_entries=count)
        assert (len(listed["entries"]), listed["truncated"]) == (min(count, 1200), truncated)
        assert listed["total_entries"] == 1200


# ---- what cannot be done

@pytest.mark.parametrize("path,words", [
    ("{}/nothing", ["No such file", "nothing"]), ("{}/file/below", ["Not a directory"]), ("{}/dir", ["directory"]),
    ("{}/pipe", ["not a regular file"]), ("/dev/zero", ["not a regular file"]), ("{}/" + "n" * 256, ["too long"])])
def test_downloads_that_fail(box, folder, path, words):
    box.sh(f"cd {folder}; : > file; mkdir dir; mkfifo pipe")
    started = time.monotonic()
    said = box.error("download_file", path=path.format(folder))
    assert all(w.lower() in said.lower() for w in words), said
    assert time.monotonic() - started < 30


@pytest.mark.parametrize("path,words", [
    ("{}/file/below", ["Not a directory"]), ("{}/dir", ["directory"]), ("{}/pipe", ["not a regular file"]),
    ("{}/" + "n" * 256, ["too long"]), ("/proc/nothing/x", []), ("{}/dir/", ["ends in '/'"])])
def test_uploads_that_fail(box, folder, path, words):
    box.sh(f"cd {folder}; : > file; mkdir dir; mkfifo pipe")
    before = box.sh(f"find {folder} | sort")
    said = box.error("upload_file", path=path.format(folder), content="x")
    assert all(w.lower() in said.lower() for w in words), said
    assert box.sh(f"find {folder} | sort") == before


def test_list_and_exists_that_fail(box, folder):
    box.sh(f": > {folder}/file")
    assert "no such file" in box.error("list_files", path=f"{folder}/nothing").lower()
    assert "not a directory" in box.error("list_files", path=f"{folder}/file").lower()
    for path, there in ((folder, True), (f"{folder}/file", True), (f"{folder}/no", False), (f"{folder}/file/x", False),
                        ("/dev/null", True)):
        assert box.call("file_exists", path=path) == {"exists": there}


@pytest.mark.parametrize("content", ["%%%", "aGk", "aGk=x", "a-_=", "aGk==", "=", "aGk=aGk="])
def test_content_that_is_no_base64(box, folder, content):
    said = box.error("upload_file", path=f"{folder}/x", content=content, binary=True)
    assert "base64" in said and "upload_file" in said
    assert box.call("file_exists", path=f"{folder}/x") == {"exists": False}


def test_base64_with_line_breaks(box, folder):
    data = os.urandom(300)
    box.call("upload_file", path=f"{folder}/x", content=base64.encodebytes(data).decode(), binary=True)
    assert fetch(box, f"{folder}/x") == data


def test_a_binary_file_without_binary(box, folder):
    put(box, f"{folder}/x", b"\xff\x00")
    said = box.error("download_file", path=f"{folder}/x")
    assert "non-UTF-8" in said and "binary=true" in said


def test_side_by_side(box, folder):
    def one(number):
        data = os.urandom(200_000)
        put(box, f"{folder}/{number}", data)
        return fetch(box, f"{folder}/{number}") == data

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        assert all(pool.map(one, range(18)))
