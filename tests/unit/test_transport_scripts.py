# SPDX-License-Identifier: Apache-2.0
"""The scripts that run in a sandbox, with dash and bash over GNU tools and with busybox alone."""
import ctypes
import hashlib
import os
import pathlib
import random
import stat
import subprocess
import tempfile
import threading
import time

import pytest

from sandbox_shell import Job, flavours

FLAVOURS = flavours()
NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="another user is needed")


def teardown_module():
    for flavour in FLAVOURS:
        flavour.remove()


@pytest.fixture(params=FLAVOURS, ids=lambda f: f.name)
def flavour(request):
    return request.param


@pytest.fixture
def folder():
    """A folder that others may enter, unlike pytest's own."""
    with tempfile.TemporaryDirectory(prefix="transport-") as path:
        os.chmod(path, 0o755)
        yield pathlib.Path(path)


# For what costs much more in each further shell than it adds: the others where there is time.
first_shell_if_fast = pytest.mark.parametrize(
    "flavour", [f if i == 0 else pytest.param(f, marks=pytest.mark.slow) for i, f in enumerate(FLAVOURS)],
    ids=lambda f: f.name)
SIXTEEN_MEBIBYTES = pytest.param(16 << 20, marks=pytest.mark.slow)


def run(flavour, command, timeout=20, **options):
    """Runs a command to its end; nothing of ours may stay behind."""
    with Job(flavour, "command", str(timeout), command, **options) as job:
        job.wait()
        assert job.end() == {}
        return job


def blob(size, seed=1):
    return random.Random(seed).randbytes(size)


# --- commands: results ---

def test_exit_codes(flavour):
    for code in [0, 1, 2, 126, 127, 130, 137, 143, 255]:
        assert run(flavour, f"exit {code}").result == ["exited", str(code), "same"]


@pytest.mark.parametrize("command,code", [("kill -9 $$", 137), ("kill -TERM $$", 143),
                                          ("kill -INT $$", 130), ("nosuchcmd-x", 127),
                                          ("/etc/passwd", 126), ("(exit 9) | true", 0),
                                          ('echo \'{"status":"Success"}\'; exit 3', 3)])
def test_codes_of_signals_and_failures(flavour, command, code):
    assert run(flavour, command).result == ["exited", str(code), "same"]


def test_streams_are_apart(flavour):
    job = run(flavour, "echo out; echo err >&2; printf more")
    assert (job.out, job.err) == (b"out\nmore", b"err\n")


@pytest.mark.parametrize("command,out", [("cat", b""), ("wc -l | tr -d ' '", b"0\n"),
                                         ("read x; echo done", b"done\n"),
                                         ("echo hi | cat", b"hi\n"), ("cat <<E\nx\nE", b"x\n")])
def test_stdin_is_empty(flavour, command, out):
    job = run(flavour, command)
    assert job.out == out
    assert job.took < 20


def test_every_byte_passes(flavour, tmp_path):
    data = bytes(range(256)) * 64 + b"no line break at the end"
    (tmp_path / "bytes").write_bytes(data)
    job = run(flavour, "cat bytes; cat bytes >&2; exit 7", cwd=tmp_path)
    assert (job.out, job.err, job.result[1]) == (data, data, "7")


@first_shell_if_fast
def test_sixteen_mebibytes_of_output(flavour, tmp_path):
    data = blob(16 << 20)
    (tmp_path / "big").write_bytes(data)
    assert run(flavour, "cat big", cwd=tmp_path).out == data


SHELL_LINES = [
    "echo w > r.txt; cat r.txt", "ls / | wc -l", "cd /tmp && pwd", "for i in 1 2; do echo $i; done",
    "printf '%s' \"a\\\\b\\\"c$d\"", "echo 'single \"double\"' \"double 'single'\"", "echo a#b # c",
    "-n", "echo one\necho two\n\n", "printf '\\0134%s' '\\n'", "echo é ✓ | od -An -tx1", "echo '*' *",
    "true;", "  echo blank  ", "f() { echo \"$#$1\"; }; f a b", "echo $0",
]


@pytest.mark.parametrize("command", SHELL_LINES)
def test_means_the_same_as_sh_c(flavour, command, tmp_path):
    plain = subprocess.run(["sh", "-c", command], executable=os.path.join(flavour.dir, "sh"),
                           stdin=subprocess.DEVNULL, capture_output=True, check=False, cwd=tmp_path,
                           env={"PATH": flavour.path})
    job = run(flavour, command, cwd=tmp_path)
    assert (job.out, job.err, job.result[1]) == (plain.stdout, plain.stderr, str(plain.returncode))


@pytest.mark.parametrize("size", [100, 100_000, 131_071])
def test_command_arrives_byte_for_byte(flavour, size):
    text = bytes(random.Random(size).choices(range(1, 256), k=size))
    command = b"cat /proc/$$/cmdline; exit 0\n#" + text.replace(b"\n", b"\n#")
    command = command[:size - 2] + b"\n\n"
    job = run(flavour, command)
    assert job.out == b"sh\0-c\0" + command + b"\0"
    assert job.took < 30


def test_environment_descriptors_and_signals_are_clean(flavour):
    job = run(flavour, "echo $SANDBOX_COMMAND_ID; env | grep -c sbx_; ls /proc/self/fd | wc -l; "
                       "grep SigIgn /proc/self/status; pwd; echo $KEPT",
              cwd="/usr", env={"KEPT": "yes", "sbx": "1"})
    command_id, own, descriptors, ignored, pwd, kept = job.out.split(b"\n")[:6]
    assert command_id.decode() == job.id
    assert own == b"0"
    assert descriptors.strip() == b"4"  # 0, 1, 2 and the folder that ls reads
    assert int(ignored.split()[1], 16) & 0b1000000000110 == 0  # INT, QUIT, PIPE
    assert (pwd, kept) == (b"/usr", b"yes")


def test_the_helpers_are_all_reaped(flavour):
    """No zombie is left to a container's first process, which may not collect any."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    assert prctl(36, 1, 0, 0, 0) == 0  # PR_SET_CHILD_SUBREAPER: orphans come to us
    try:
        for command, line in [("true", None), ("exec sleep 30", "k")]:
            with Job(flavour, "command", "20", command) as job:
                if line:
                    job.control(line)
                job.wait()
                assert job.end() == {}
            orphans = []
            try:
                while (found := os.waitpid(-1, os.WNOHANG)) and found[0]:
                    orphans.append(found[0])
            except ChildProcessError:
                pass
            assert orphans == []
    finally:
        prctl(36, 0, 0, 0, 0)


# --- commands: time-outs, cancels, lost streams ---

TREES = [
    "(sleep 1000 & sleep 1000)",
    "sleep 1000 & sleep 1000 & wait",
    "setsid sleep 1000 & sleep 1000",
    "(setsid sh -c 'sleep 1000 & sleep 1000' &) ; sleep 1000",
    "trap '' TERM INT HUP; sleep 1000; sleep 1000",
    "yes",
]


@pytest.mark.parametrize("command", TREES)
def test_time_out_kills_everything(flavour, command):
    job = run(flavour, f"echo before; {command}", timeout=1)
    assert job.result[0] == "timed_out"
    assert job.out.startswith(b"before\n")
    assert 1 <= job.took < 20


BUSY_LOOP = "while :; do :; done"


@first_shell_if_fast
def test_time_out_kills_a_busy_loop(flavour):
    job = run(flavour, BUSY_LOOP, timeout=1)
    assert job.result[0] == "timed_out"
    assert 1 <= job.took < 20


@pytest.mark.parametrize("command", [BUSY_LOOP, *TREES])
def test_cancel_kills_everything(flavour, command):
    with Job(flavour, "command", "20", command) as job:
        time.sleep(0.2)  # so that the tree stands
        job.control("k")
        job.wait()
        assert job.result[0] == "cancelled"
        assert job.end() == {}


def test_cancel_at_once(flavour):
    for _ in range(5):
        with Job(flavour, "command", "20", "sleep 1000 & sleep 1000") as job:
            job.control("k")
            job.wait()
            assert job.result[0] == "cancelled"
            assert job.took < 20
            assert job.end() == {}


def test_time_out_by_the_client(flavour):
    with Job(flavour, "command", "60", "sleep 1000") as job:
        job.control("t")
        assert job.wait().result[0] == "timed_out"
        assert job.end() == {}


def test_end_of_stdin_does_not_kill(flavour):
    job = run(flavour, "sleep 1; echo done; exit 5", keep_stdin=False)
    assert (job.out, job.result) == (b"done\n", ["exited", "5", "same"])


def test_time_out_holds_without_the_client(flavour):
    job = run(flavour, "sleep 1000", timeout=1, keep_stdin=False)
    assert job.result[0] == "timed_out"
    assert job.took < 20


def test_end_before_the_time_out_wins(flavour):
    assert run(flavour, "exit 4", timeout=1).result == ["exited", "4", "same"]


@pytest.mark.parametrize("command,survivors", [
    ("sleep 300 & echo started", 1),
    ("sleep 300 >/dev/null 2>&1 & echo started", 1),
    ("(sleep 300 &); echo started", 1),
    ("setsid sleep 300 & echo started", 1),
    ("nohup sleep 300 >/dev/null 2>&1 & echo started", 1),
])
def test_background_processes_are_not_waited_for(flavour, command, survivors):
    if "nohup" in command and flavour.name == "busybox":
        pytest.skip("this busybox has no nohup")
    with Job(flavour, "command", "20", command) as job:
        job.wait()
        assert job.out == b"started\n"
        assert job.took < 20
        assert job.result == ["exited", "0", "same"]
        job.process.wait(10)
        left = job.left_over()
        assert len(left) == survivors and all("sleep 300" in c for c in left.values()), left


def test_background_writer_does_not_break_the_trailer(flavour):
    with Job(flavour, "command", "20", "yes & echo started; exit 6") as job:
        job.wait()
        assert job.result == ["exited", "6", "same"]


@first_shell_if_fast
@pytest.mark.parametrize("missing", ["setsid", "grep", "command-line-x"])
def test_fewer_tools(flavour, missing):
    if flavour.name == "busybox":
        pytest.skip("this busybox finds its tools without a PATH")
    less = flavour.without(missing)
    try:
        assert run(less, "echo x; exit 3").result == ["exited", "3", "same"]
        job = run(less, "sleep 1000; sleep 1000", timeout=1)
        assert job.result[0] == "timed_out"
    finally:
        less.remove()


# --- uploads ---

def cksum(data):
    crc = 0
    length = len(data)
    tail = bytearray()
    while length:
        tail.append(length & 255)
        length >>= 8
    table = cksum.table
    for byte in data + bytes(tail):
        crc = (crc << 8 & 0xffffffff) ^ table[crc >> 24 ^ byte]
    return crc ^ 0xffffffff


def _cksum_row(i):
    i <<= 24
    for _ in range(8):
        i = (i << 1 ^ 0x04C11DB7 if i & 0x80000000 else i << 1) & 0xffffffff
    return i


cksum.table = [_cksum_row(i) for i in range(256)]


def upload(flavour, path, data, sha=None, crc=None, sent=None, **options):
    """Result words and stderr."""
    path = os.fsencode(path)
    path = path if path.startswith(b"/") else b"./" + path
    sha = sha or hashlib.sha256(data).hexdigest()
    crc = str(crc if crc is not None else cksum(data) if len(data) < 1 << 20 else 0)
    with Job(flavour, "upload", path, str(len(data)), sha, crc,
             data=data if sent is None else sent, keep_stdin=sent is None, **options) as job:
        job.wait()
        assert job.end() == {}
        return job.result, job.err


SIZES = [0, 1, 4095, 4096, 4097, 8193, 32769, 65536, (1 << 20) + 1]
ODD_NAMES = [
    b"plain", b"it's", b"a b", b"$(touch pwned)", b"x;id", b"`id`", b'a"b', b"*", b"~", b"-n", b"-",
    b"--help", b"-rf", b"new\nline", b"end\n", b"\nstart", b"back\\slash", b"tab\t", b"caf\xc3\xa9",
    b"bad\xff\xfebytes", b"100%", b"100%25", b"a+b", b"q?x=1", b"h#1", b"\\012", b"!bang", b"(", b"n" * 200,
    b"\x01\x7f\x1b[31m", b" ", b"...", b"%s%n",
]


@pytest.mark.parametrize("size", [*SIZES, SIXTEEN_MEBIBYTES])
def test_upload_sizes(flavour, folder, size):
    data = blob(size)
    assert upload(flavour, folder / "f", data)[0] == ["ok"]
    assert (folder / "f").read_bytes() == data
    assert os.listdir(folder) == ["f"]


def test_upload_odd_names(flavour, folder):
    for name in ODD_NAMES:
        assert upload(flavour, os.path.join(os.fsencode(folder), name), name)[0] == ["ok"], name
    assert sorted(os.listdir(os.fsencode(folder))) == sorted(ODD_NAMES)
    for name in ODD_NAMES:
        assert pathlib.Path(os.fsdecode(os.path.join(os.fsencode(folder), name))).read_bytes() == name


def test_upload_relative_name(flavour, folder):
    for name in ["-n", "plain", "--"]:
        assert upload(flavour, name, b"here", cwd=folder)[0] == ["ok"]
        assert (folder / name).read_bytes() == b"here"


def test_upload_makes_folders_and_keeps_mode_and_owner(flavour, folder):
    target = folder / "a" / "b c" / "f"
    assert upload(flavour, target, b"1")[0] == ["ok"]
    target.chmod(0o751)
    if os.geteuid() == 0:
        os.chown(target, 1234, 4321)
    assert upload(flavour, target, b"22")[0] == ["ok"]
    found = target.stat()
    assert stat.S_IMODE(found.st_mode) == 0o751
    if os.geteuid() == 0:
        assert (found.st_uid, found.st_gid) == (1234, 4321)
    assert target.read_bytes() == b"22"


def test_upload_follows_links(flavour, folder):
    (folder / "real").write_bytes(b"old")
    (folder / "link").symlink_to("real")
    (folder / "loose").symlink_to("made\n")
    (folder / "loop").symlink_to("loop")
    (folder / "chain").symlink_to(folder / "link")
    assert upload(flavour, folder / "link", b"new")[0] == ["ok"]
    assert (folder / "real").read_bytes() == b"new" and (folder / "link").is_symlink()
    assert upload(flavour, folder / "loose", b"made")[0] == ["ok"]
    assert (folder / "made\n").read_bytes() == b"made" and (folder / "loose").is_symlink()
    assert upload(flavour, folder / "chain", b"newer")[0] == ["ok"]
    assert (folder / "real").read_bytes() == b"newer" and (folder / "chain").is_symlink()
    assert upload(flavour, folder / "loop", b"x")[0] == ["loop"]
    assert len(os.listdir(folder)) == 6


@pytest.mark.parametrize("name,result", [("", "directory"), ("d", "directory"), ("d/", "directory"),
                                         ("fifo", "special"), ("file/x", "not_directory"),
                                         ("dlink", "directory")])
def test_upload_refusals(flavour, folder, name, result):
    (folder / "d").mkdir()
    (folder / "file").write_bytes(b"old")
    (folder / "dlink").symlink_to("d")
    os.mkfifo(folder / "fifo")
    before = sorted(os.listdir(folder))
    assert upload(flavour, f"{folder}/{name}", b"data")[0] == [result]
    assert sorted(os.listdir(folder)) == before and os.listdir(folder / "d") == []
    assert (folder / "file").read_bytes() == b"old"


@pytest.mark.parametrize("name,message", [("file/a/b", b"Not a directory"), ("n" * 300, b"too long")])
def test_upload_failures_say_why(flavour, folder, name, message):
    (folder / "file").write_bytes(b"old")
    result, err = upload(flavour, f"{folder}/{name}", b"data")
    assert result == ["failed"] and message in err
    assert os.listdir(folder) == ["file"]


def test_upload_cut_short_or_damaged_leaves_the_old_file(flavour, folder):
    target = folder / "f"
    target.write_bytes(b"old")
    data = blob(100_000)
    for options in [{"sent": data[:50_000]}, {"sent": b""}, {"sha": "0" * 64}]:
        assert upload(flavour, target, data, **options)[0] == ["damaged"]
        assert target.read_bytes() == b"old"
        assert os.listdir(folder) == ["f"]


@first_shell_if_fast
def test_upload_without_sha256sum(flavour, folder):
    if flavour.name == "busybox":
        pytest.skip("this busybox finds its tools without a PATH")
    less = flavour.without("sha256sum")
    try:
        for size in [0, 1, 70_000]:
            assert upload(less, folder / "f", blob(size))[0] == ["ok"]
            assert (folder / "f").read_bytes() == blob(size)
        assert upload(less, folder / "f", b"x", crc=1)[0] == ["damaged"]
    finally:
        less.remove()


@needs_root
def test_upload_where_writing_is_not_allowed(flavour, folder):
    target = folder / "f"
    target.write_bytes(b"old")
    result, err = upload(flavour, target, b"new", user=NOBODY)
    assert result == ["failed"] and b"ermission denied" in err
    assert target.read_bytes() == b"old"


def test_uploads_to_one_path_at_once(flavour, folder):
    contents = [blob(300_000, seed) for seed in range(10)]
    threads = [threading.Thread(target=upload, args=(flavour, folder / "f", c), kwargs={"crc": 0})
               for c in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (folder / "f").read_bytes() in contents
    assert os.listdir(folder) == ["f"]


# --- downloads ---

def download(flavour, path, limit=16 << 20, **options):
    with Job(flavour, "download", os.fsencode(path), str(limit), **options) as job:
        job.wait()
        assert job.end() == {}
        return job


@pytest.mark.parametrize("size", [*SIZES, SIXTEEN_MEBIBYTES])
def test_download_sizes(flavour, folder, size):
    data = blob(size)
    (folder / "f").write_bytes(data)
    job = download(flavour, folder / "f")
    assert job.out == data
    assert job.result[:3] == ["sha256sum", str(size), hashlib.sha256(data).hexdigest()]


def test_download_odd_names(flavour, folder):
    for name in ODD_NAMES:
        path = os.path.join(os.fsencode(folder), name)
        pathlib.Path(os.fsdecode(path)).write_bytes(name)
        assert download(flavour, path).out == name


def test_download_of_files_without_a_size(flavour):
    job = download(flavour, "/proc/version")
    assert job.out == pathlib.Path("/proc/version").read_bytes()
    assert job.result[:3] == ["sha256sum", "0", hashlib.sha256(job.out).hexdigest()]


@first_shell_if_fast
def test_download_without_sha256sum(flavour, folder):
    if flavour.name == "busybox":
        pytest.skip("this busybox finds its tools without a PATH")
    less = flavour.without("sha256sum")
    try:
        (folder / "f").write_bytes(blob(70_000))
        job = download(less, folder / "f")
        assert job.out == blob(70_000)
        assert job.result[:4] == ["cksum", "70000", str(cksum(job.out)), "70000"]
    finally:
        less.remove()


def test_download_limit(flavour, folder):
    (folder / "f").write_bytes(blob(1001))
    assert download(flavour, folder / "f", 1000).result == ["large", "1001"]
    assert download(flavour, folder / "f", 1000).out == b""
    assert download(flavour, folder / "f", 1001).out == blob(1001)


@pytest.mark.parametrize("name,result,message", [
    ("nope", "missing", b"No such file"), ("nope/x", "missing", b"No such file"),
    ("file/x", "missing", b"Not a directory"), ("loose", "missing", b"No such file"),
    ("d", "directory", b""), ("fifo", "special", b""), ("n" * 300, "missing", b"too long"),
])
def test_download_refusals(flavour, folder, name, result, message):
    (folder / "d").mkdir()
    (folder / "file").write_bytes(b"old")
    (folder / "loose").symlink_to("nowhere")
    os.mkfifo(folder / "fifo")
    job = download(flavour, folder / name)
    assert job.result == [result] and message in job.err and job.out == b""


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null", "/dev/tty"])
def test_download_of_devices(flavour, device):
    assert download(flavour, device).result == ["special"]


@needs_root
def test_download_where_reading_is_not_allowed(flavour, folder):
    (folder / "f").write_bytes(b"secret")
    (folder / "f").chmod(0o600)
    assert download(flavour, folder / "f", user=NOBODY).result == ["denied"]
    (folder / "closed").mkdir(mode=0o700)
    (folder / "closed" / "f").write_bytes(b"secret")
    job = download(flavour, folder / "closed" / "f", user=NOBODY)
    assert job.result == ["missing"] and b"Permission denied" in job.err


def test_download_while_the_file_grows(flavour, folder):
    """What is summed is what was sent."""
    stop = threading.Event()
    path = folder / "log"
    path.write_bytes(b"x" * 100_000)

    def grow():
        with open(path, "ab") as file:
            while not stop.is_set() and file.tell() < 8 << 20:
                file.write(b"y" * 5000)
                file.flush()

    writer = threading.Thread(target=grow)
    writer.start()
    try:
        for _ in range(5):
            job = download(flavour, path)
            assert job.result[2] == hashlib.sha256(job.out).hexdigest()
            assert len(job.out) >= int(job.result[1])
    finally:
        stop.set()
        writer.join()


# --- lists ---

def listing(flavour, path, **options):
    """Result word and {(kind, name): (mode, size, mtime)}; names are bytes."""
    with Job(flavour, "list", os.fsencode(path), **options) as job:
        job.wait()
        assert job.end() == {}
    records = {}
    for record in job.out.split(job.id.encode() + b" ")[1:]:
        assert record.endswith(b"\n")
        kind, mode, size, mtime, name = record[:-1].split(b" ", 4)
        key = (kind.decode(), name.rsplit(b"/", 1)[1])
        assert key not in records
        records[key] = (int(mode, 16), int(size), int(mtime))
    return job, records


def test_list_odd_names(flavour, folder):
    for i, name in enumerate(ODD_NAMES):
        path = pathlib.Path(os.fsdecode(os.path.join(os.fsencode(folder), name)))
        path.write_bytes(b"x" * i)
        os.utime(path, (1, 1_700_000_000 + i))
    job, records = listing(flavour, folder)
    assert job.result == ["ok"]
    assert records.pop(("d", b"."))[0] == folder.stat().st_mode
    assert records == {("f", name): (0o100644, i, 1_700_000_000 + i)
                       for i, name in enumerate(ODD_NAMES)}


def test_list_kinds(flavour, folder):
    (folder / "d").mkdir()
    (folder / "d" / "deeper").write_bytes(b"")
    (folder / ".hidden").write_bytes(b"123")
    (folder / "to-file").symlink_to(".hidden")
    (folder / "to-folder").symlink_to("d")
    (folder / "loose").symlink_to("nowhere")
    (folder / "a").symlink_to("b")
    (folder / "b").symlink_to("a")
    os.mkfifo(folder / "fifo")
    _, records = listing(flavour, folder)
    kinds = {key: stat.S_IFMT(value[0]) for key, value in records.items()}
    assert kinds == {
        ("d", b"."): stat.S_IFDIR, ("f", b"d"): stat.S_IFDIR, ("f", b".hidden"): stat.S_IFREG,
        ("f", b"fifo"): stat.S_IFIFO, ("l", b"to-file"): stat.S_IFLNK,
        ("t", b"to-file"): stat.S_IFREG, ("l", b"to-folder"): stat.S_IFLNK,
        ("t", b"to-folder"): stat.S_IFDIR, ("l", b"loose"): stat.S_IFLNK, ("l", b"a"): stat.S_IFLNK,
        ("l", b"b"): stat.S_IFLNK}
    assert records["t", b"to-file"][1] == 3


def test_list_many(flavour, folder):
    names = {b"%064d" % i for i in range(5000)}
    (folder / f"{0:064}").write_bytes(b"")
    for name in names - {b"%064d" % 0}:  # links, as they are made much faster than files
        os.link(folder / f"{0:064}", os.path.join(os.fsencode(folder), name))
    _, records = listing(flavour, folder)
    assert {name for kind, name in records if kind == "f"} == names
    assert len(records) == 5001


def test_list_of_an_empty_folder_and_through_a_link(flavour, folder):
    (folder / "-empty").mkdir()
    (folder / "link").symlink_to("-empty")
    for path in ["-empty", "link", "-empty/"]:
        job, records = listing(flavour, f"./{path}", cwd=folder)
        assert job.result == ["ok"] and list(records) == [("d", b".")]


@pytest.mark.parametrize("name,result,message", [("nope", "missing", b"No such file"),
                                                 ("file", "not_directory", b""),
                                                 ("file/x", "missing", b"Not a directory")])
def test_list_refusals(flavour, folder, name, result, message):
    (folder / "file").write_bytes(b"old")
    job, records = listing(flavour, folder / name)
    assert job.result == [result] and message in job.err and not records


@needs_root
def test_list_where_reading_is_not_allowed(flavour, folder):
    for mode in [0o700, 0o744, 0o711]:
        (folder / f"d{mode:o}").mkdir()
        (folder / f"d{mode:o}").chmod(mode)
        assert listing(flavour, folder / f"d{mode:o}", user=NOBODY)[0].result == ["denied"]


# --- exists ---

def exists(flavour, path, **options):
    with Job(flavour, "exists", os.fsencode(path), **options) as job:
        job.wait()
        assert job.end() == {}
        return job


@pytest.mark.parametrize("name,result,message", [
    ("d", ["yes", "directory"], b""), ("d/", ["yes", "directory"], b""),
    ("file", ["yes", "file"], b""), ("fifo", ["yes", "other"], b""),
    ("link", ["yes", "file"], b""), ("loose", ["missing"], b"No such file"),
    ("nope", ["missing"], b"No such file"), ("file/x", ["missing"], b"Not a directory"),
    ("file/", ["missing"], b"Not a directory"), ("n" * 300, ["missing"], b"too long"),
])
def test_exists(flavour, folder, name, result, message):
    (folder / "d").mkdir()
    (folder / "file").write_bytes(b"old")
    (folder / "link").symlink_to("file")
    (folder / "loose").symlink_to("nowhere")
    os.mkfifo(folder / "fifo")
    job = exists(flavour, f"{folder}/{name}")
    assert job.result == result and message in job.err


@needs_root
def test_exists_tells_denied_from_missing(flavour, folder):
    (folder / "closed").mkdir(mode=0o700)
    (folder / "closed" / "f").write_bytes(b"")
    job = exists(flavour, folder / "closed" / "f", user=NOBODY)
    assert job.result == ["missing"] and b"Permission denied" in job.err
