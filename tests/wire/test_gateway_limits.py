# SPDX-License-Identifier: Apache-2.0
"""Callers who ask for more than there is, or leave at the worst moment."""

import base64
import contextlib
import os
import signal

import pytest
from cluster import NS
from fakeexec import kill_left_over
from gateway import Gateway, in_background
from test_gateway_calls import ALICE_OWNER, cluster, execs, gw, sandbox  # noqa: F401 - fixtures

MEBIBYTE = 1 << 20


@pytest.fixture
def narrow(api, cluster, execs, tmp_path):  # noqa: F811
    """Starts a gateway with so many MiB for files under way; and the arguments that name a sandbox."""
    with contextlib.ExitStack() as stack:
        def start(mebibytes, file_mebibytes):
            cluster.claim("c1", ALICE_OWNER)
            cluster.bind("c1")
            gateway = Gateway(api, tmp_path, f"--max-transfer-bytes={mebibytes * MEBIBYTE}",
                              f"--max-file-bytes={file_mebibytes * MEBIBYTE}")
            return stack.enter_context(gateway).ready(), {"sandbox_claim_name": "c1", "namespace": NS}
        yield start


@pytest.fixture
def eight(api, execs):  # noqa: F811
    """Starts the eight commands that a container may run at a time; they end when the gate is opened."""
    def start(gateway, arguments, gate):
        began = len(execs.streams)
        started = os.path.join(execs.cwd, f"started-{began}")
        if not os.path.exists(gate):
            os.mkfifo(gate)
        command = f"echo >>{started}; : <{gate}"
        calls = [in_background(gateway.call, "execute_command", command=command, **arguments) for _ in range(8)]
        api.wait_for(lambda: os.path.exists(started) and os.path.getsize(started) == 8, timeout=30,
                     what="eight commands")
        return calls, execs.streams[began:]
    return start


def barrier(gateway, arguments):
    """What was sent before has reached the gateway's loop: it goes the same way."""
    assert gateway.call("get_sandbox_status", **arguments).structured["ready"]


def test_callers_leave_as_their_pod_dies(gw, sandbox, eight, tmp_path):  # noqa: F811
    """The queue of a container ends with its last stream; who waited in it ends a moment later."""
    for _ in range(3):
        calls, streams = eight(gw, sandbox, tmp_path / "gate")
        waiting = [gw.begin("execute_command", command="true", **sandbox) for _ in range(4)]
        barrier(gw, sandbox)
        os.kill(gw.pid, signal.SIGSTOP)  # so that it learns of both at once
        for stream in streams:
            stream.reset()
        for sock in waiting:
            sock.close()
        os.kill(gw.pid, signal.SIGCONT)
        assert {call().structured["ended"] for call in calls} == {"lost"}
        kill_left_over()


def test_uploads_that_wait_are_counted(narrow, eight, tmp_path):
    # Room for three (10 MiB each) and for small answers that are not taken yet, which count as well.
    gateway, arguments = narrow(32, 5)
    gate = tmp_path / "gate"
    calls, _ = eight(gateway, arguments, gate)
    content = base64.b64encode(bytes(5 * MEBIBYTE)).decode()
    uploads = []
    for i in range(4):
        uploads.append(in_background(gateway.call, "upload_file", path=f"f{i}", content=content, binary=True,
                                     **arguments))
        barrier(gateway, arguments)
    gateway.wait_log("tool=upload_file")  # one has its answer, while the commands run
    with open(gate, "r+b", buffering=0):  # for who comes late as well
        for call in calls:
            call()
    results = [upload().result for upload in uploads]
    refused = [r["content"][0]["text"] for r in results if r.get("isError")]
    assert len(refused) == 1 and "Too many bytes" in refused[0] and "may succeed later" in refused[0]
    assert gateway.call("upload_file", path="g", content=content, binary=True, **arguments).structured


def test_answers_that_nobody_reads_are_counted(narrow, execs, api):  # noqa: F811
    gateway, arguments = narrow(96, 16)
    with open(os.path.join(execs.cwd, "big"), "wb") as f:
        f.write(bytes(10 * MEBIBYTE))

    def refused():
        result = gateway.call("download_file", path="big", binary=True, **arguments).result
        return result.get("isError") and "Too many bytes" in result["content"][0]["text"]

    assert not refused()
    with contextlib.ExitStack() as unread:
        for made in (2, 3):
            unread.enter_context(gateway.begin("download_file", path="big", binary=True, **arguments))
            gateway.wait_log("(?s)" + "tool=download_file outcome=ok.*" * made)
        assert refused()
    api.wait_for(lambda: not refused(), timeout=30, what="room again")


@pytest.mark.parametrize("path,words", [("new/.", "is a directory"), ("new/..", "is a directory"), ("..", "is a directory"),
                                        ("new/", "name of the file is missing"), ("/", "name of the file is missing")])
def test_names_that_only_a_directory_can_have(gw, sandbox, execs, path, words):  # noqa: F811
    assert words in gw.call("upload_file", path=path, content="x", **sandbox).error_text
    assert os.listdir(execs.cwd) == []


def test_second_signal_ends_look_ups(api, cluster, execs, tmp_path):  # noqa: F811
    """The leak check at the end of the gateway sees what was not given up."""
    cluster.claim("c1", ALICE_OWNER)  # not ready: whoever wants to use it waits
    arguments = {"sandbox_claim_name": "c1", "namespace": NS}
    gateway = Gateway(api, tmp_path).ready()
    waiting = [gateway.begin("execute_command", command="true", **arguments),
               gateway.begin("file_exists", path="x", **arguments)]
    assert not gateway.call("get_sandbox_status", **arguments).structured["ready"]
    gateway.terminate()
    gateway.wait_log("draining")
    os.kill(gateway.pid, signal.SIGTERM)
    assert gateway.stop() == 1
    assert "Sanitizer" not in gateway.log
    for sock in waiting:
        sock.close()
