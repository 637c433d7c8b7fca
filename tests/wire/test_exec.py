# SPDX-License-Identifier: Apache-2.0
"""The transport over real sockets: a scripted pods/exec whose containers are shells of this machine,
with the faults of networks, servers and runtimes. Nothing that is short may look like success."""

import hashlib
import json
import os
import random
import subprocess
import threading
import time

import pytest

from fakeapi import DONE, PODS, ApiError, drop, stall, status
from fakeexec import ERROR, STDERR, STDOUT, FakeExec, failure, is_exec, kill_left_over, left_over, wait_nothing_left
from probe import BUILD_DIR

DATA = random.Random(7).randbytes(300_000)
NO_SHELL = ('Internal error occurred: error executing command in container: OCI runtime exec failed: '
            'exec failed: unable to start container process: exec: "sh": executable file not found in '
            '$PATH: unknown')


class Result:
    """What exec_probe printed of its jobs."""

    def __init__(self, stdout, stderr, code, took):
        self.out, self.err, self.code, self.took = stdout, stderr, code, took
        head = stdout.split(b"\n", 1)
        self.content = head[1] if len(head) > 1 else b""
        self.jobs = [self._fields(line) for line in stdout.split(b"\n")
                     if line.startswith((b"ended=", b"error=", b"bytes_", b"total=", b"exists="))]
        self.first = self.jobs[0] if self.jobs else {}

    @staticmethod
    def _fields(line):
        line, _, message = line.decode(errors="replace").partition(" message=")
        fields = dict(word.split("=", 1) for word in line.split(" ") if "=" in word)
        return fields | ({"message": message} if message else {})


class Probe:
    def __init__(self, api, tmp_path):
        self.kubeconfig = api.write_kubeconfig(tmp_path / "kubeconfig")

    def start(self, *args, flags=()):
        return subprocess.Popen(
            [os.path.join(BUILD_DIR, "bin/exec_probe"), "-k", self.kubeconfig, "-o", "-c", "main",
             *flags, "ns", "pod", *args],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def __call__(self, *args, flags=(), data=b"", timeout=60):
        started = time.monotonic()
        process = self.start(*args, flags=flags)
        out, err = process.communicate(data, timeout)
        assert process.returncode in (0, 1) and b"Sanitizer" not in err, err.decode()
        return Result(out, err, process.returncode, time.monotonic() - started)


@pytest.fixture
def exec_probe(api, tmp_path):
    yield Probe(api, tmp_path)
    kill_left_over()


@pytest.fixture
def box(tmp_path):
    folder = tmp_path / "box"
    folder.mkdir()
    return folder


def serve(api, fake):
    api.rule(is_exec, fake)
    return fake


def execs(api):
    return api.seen(is_exec)


# --- what works ---

def test_each_kind_costs_one_request(api, exec_probe, box):
    serve(api, FakeExec(box))
    run = exec_probe("run", "echo out; echo err >&2; exit 3", flags=["-i", "c://1"])
    assert (run.first["ended"], run.first["exit_code"], run.content, run.err) == \
        ("exited", "3", b"out\n", b"err\n")
    assert exec_probe("upload", "dir/file", data=DATA).first["bytes_written"] == str(len(DATA))
    assert (box / "dir/file").read_bytes() == DATA
    assert exec_probe("download", "dir/file").out == DATA
    listing = exec_probe("list", "dir")
    assert listing.first["total"] == "1" and listing.content.split()[:2] == [b"file", b"300000"]
    assert exec_probe("exists", "dir/file").first["exists"] == "1"
    assert exec_probe("exists", "dir/nope").first["exists"] == "0"
    assert len(api.seen()) == len(execs(api)) == 6
    for request in execs(api):
        assert request.method == "GET" and len(request.target) < 1000
        assert "dir" not in request.target and "echo" not in request.target
        assert request.headers["sec-websocket-protocol"] == "v5.channel.k8s.io"
        assert request.path == "/api/v1/namespaces/ns/pods/pod/exec"


@pytest.mark.parametrize("piece", [1, 3, 125])
def test_frames_cut_anywhere(api, exec_probe, box, piece):
    serve(api, FakeExec(box, piece=piece))
    (box / "f").write_bytes(DATA[:5000])
    assert exec_probe("run", "printf out; printf err >&2").content == b"out"
    assert exec_probe("download", "f").out == DATA[:5000]
    assert exec_probe("list", ".").first["total"] == "1"


def test_sixteen_mebibytes_each_way(api, exec_probe, box):
    serve(api, FakeExec(box))
    data = random.Random(1).randbytes(16 << 20)
    assert exec_probe("upload", "f", data=data).first["bytes_written"] == str(16 << 20)
    assert hashlib.sha256((box / "f").read_bytes()).digest() == hashlib.sha256(data).digest()
    assert exec_probe("download", "f").out == data
    with open(box / "f", "ab") as file:
        file.write(b"x")
    assert exec_probe("download", "f").first["error"] == "too_large"


def test_long_output_is_counted_and_cut(api, exec_probe, box):
    serve(api, FakeExec(box))
    run = exec_probe("run", "seq 1 2000000; exit 4")
    assert (run.first["out"], run.first["exit_code"]) == ("14888896+", "4")
    assert run.content.startswith(b"1\n2\n3\n") and run.content.endswith(b"1999999\n2000000\n")
    assert len(run.content) <= 65536 and b"bytes left out ...]" in run.content


def test_longest_command(api, exec_probe, box):
    serve(api, FakeExec(box))
    command = "wc -c < /proc/$$/cmdline #" + "é" * 60000
    command += "x" * (131071 - len(command.encode()))
    run = exec_probe("run", command)
    assert run.content.strip() == str(len("sh -c ") + 131071 + 1).encode()


def test_at_most_eight_at_a_time(api, exec_probe, box):
    fake = serve(api, FakeExec(box))
    run = exec_probe("run", "sleep 0.3", flags=["-n", "20"])
    assert [job["ended"] for job in run.jobs] == ["exited"] * 20
    assert fake.peak == 8 and len(execs(api)) == 20


def test_queue_is_bounded(api, exec_probe, box):
    serve(api, FakeExec(box))
    run = exec_probe("run", "true", flags=["-n", "73"])
    assert run.code == 1 and b"exhausted: 64 commands are waiting" in run.err


# --- ends of commands ---

def test_time_out_and_cancel_leave_nothing(api, exec_probe, box):
    serve(api, FakeExec(box))
    run = exec_probe("run", "echo begun; setsid sleep 999 & sleep 999", flags=["-t", "1000"])
    assert (run.first["ended"], run.first["exit_code"], run.content) == ("timed_out", "124", b"begun\n")
    run = exec_probe("run", "echo begun; setsid sleep 999 & sleep 999", flags=["-x", "700"])
    assert (run.first["ended"], run.first["exit_code"], run.content) == ("cancelled", "130", b"begun\n")
    assert run.took < 20
    wait_nothing_left()


def test_cancel_of_what_waits(api, exec_probe, box):
    serve(api, FakeExec(box))
    run = exec_probe("run", "sleep 999", flags=["-n", "12", "-x", "1000"])
    assert sorted(job.get("ended") or job["error"] for job in run.jobs) == ["cancelled"] * 12
    assert len(execs(api)) == 8
    wait_nothing_left()


def test_cancel_before_the_shell_is_there(api, exec_probe):
    api.rule(is_exec, stall())
    run = exec_probe("run", "true", flags=["-x", "300"])
    assert run.first["error"] == "cancelled" and run.took < 20


def test_time_out_where_the_sandbox_cannot_sleep(api, exec_probe, box, tmp_path):
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "sleep").write_text("#!/bin/sh\nexit 1\n")
    (tools / "sleep").chmod(0o755)
    serve(api, FakeExec(box, path=f"{tools}:{FakeExec.path}"))
    run = exec_probe("run", "tail -f /dev/null", flags=["-t", "1000"])
    assert run.first["ended"] == "timed_out" and run.took < 20
    wait_nothing_left()


def test_lost_gateway_kills_nothing_but_the_time_out_does(api, exec_probe, box):
    serve(api, FakeExec(box))
    process = exec_probe.start("run", "sleep 1; echo alive > proof; sleep 999", flags=["-t", "3000"])
    api.wait_for(lambda: any(b"proof" in c for c in left_over().values()), what="command runs")
    process.kill()
    process.communicate()
    api.wait_for(lambda: (box / "proof").exists(), what="the command goes on")
    assert left_over()
    wait_nothing_left()


def test_background_holds_the_stream_but_not_the_answer(api, exec_probe, box):
    fake = serve(api, FakeExec(box))
    run = exec_probe("run", "sleep 99 & echo started", flags=["-n", "12"])
    assert [job["ended"] for job in run.jobs] == ["exited"] * 12
    assert all(int(job["duration_ms"]) < 20000 for job in run.jobs)
    # The ninth begins when the first stream is given up, a second after its answer. The peak says nothing:
    # the server may read of a new stream before it reads of the end of an old one.
    began = sorted(stream.began for stream in fake.streams)
    assert began[8] - began[0] > 0.9 and run.took < 40


def test_stream_that_is_not_closed(api, exec_probe, box):
    serve(api, FakeExec(box, no_close=True))
    assert exec_probe("run", "exit 6").first["exit_code"] == "6"


# --- short and spoiled streams ---

class CutOutput(FakeExec):
    """So many bytes of a channel pass; what comes after is lost, and all looks well at the end."""

    def __init__(self, cwd, channel, left):
        super().__init__(cwd)
        self.cut_channel, self.left = channel, left

    def output(self, stream, channel, data):
        if channel == self.cut_channel:
            data, self.left = data[:max(self.left, 0)], self.left - len(data)
        if data:
            super().output(stream, channel, data)

    def ended(self, stream, code):
        super().ended(stream, 0)


HELLO = 15
CUTS = [HELLO, HELLO + 4000, HELLO + 4045,
        *(pytest.param(cut, marks=pytest.mark.slow)
          for cut in (HELLO + 1, 1000, HELLO + 3999, HELLO + 4001, HELLO + 4025, HELLO + 4032))]


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("verb,argument", [("run", "cat f"), ("download", "f")])
def test_lost_end_of_stdout_is_no_success(api, exec_probe, box, verb, argument, cut):
    (box / "f").write_bytes(DATA[:4000])
    serve(api, CutOutput(box, STDOUT, cut))
    result = exec_probe(verb, argument)
    if verb == "run":
        assert result.first["ended"] == "lost" and result.first["exit_code"] == "255"
        assert DATA[:4000].startswith(result.content[:4000]) and len(result.content) < 4006
    else:
        assert result.code == 1 and result.first["error"] == "unavailable", result.out[:300]


@pytest.mark.parametrize("share", [0, 0.3, 0.9, 0.99])
def test_lost_end_of_a_listing_is_no_success(api, exec_probe, box, share):
    for i in range(50):
        (box / f"entry-{i:060}").write_bytes(b"")
    whole = 15 + 51 * (16 + len(" f 81a4 0 1796130215 ././entry-") + 60)
    serve(api, CutOutput(box, STDOUT, HELLO + int(share * whole)))
    result = exec_probe("list", ".")
    assert result.code == 1 and result.first["error"] == "unavailable", result.out[:300]


@pytest.mark.parametrize("verb", ["upload", "exists"])
def test_lost_answer_is_no_success(api, exec_probe, box, verb):
    serve(api, CutOutput(box, STDOUT, HELLO + 10))
    result = exec_probe(verb, "f", data=b"data")
    assert result.code == 1 and result.first["error"] == "unavailable", result.out[:300]


@pytest.mark.parametrize("cut", [0, 5, 32])
def test_lost_end_of_stderr_is_no_success(api, exec_probe, box, cut):
    serve(api, CutOutput(box, STDERR, cut))
    run = exec_probe("run", "echo out")
    assert (run.first["ended"], run.first["exit_code"], run.content) == ("lost", "255", b"out\n")


class Reset(FakeExec):
    """The connection is gone after so many bytes of stdout."""
    after = 0

    def output(self, stream, channel, data):
        super().output(stream, channel, data)
        if channel == STDOUT:
            self.after -= len(data)
            if self.after < 0:
                stream.reset()


@pytest.mark.parametrize("verb", ["run", "download", "list", "upload"])
@pytest.mark.parametrize("after", [0, 2000])
def test_lost_connection(api, exec_probe, box, verb, after):
    (box / "f").write_bytes(DATA[:4000])
    serve(api, Reset(box, after=after))
    argument = {"run": "cat f; sleep 2", "list": "."}.get(verb, "f")
    result = exec_probe(verb, argument, data=DATA)
    assert result.took < 20
    if verb == "run":
        assert result.first.get("ended") == "lost" or result.first.get("error") == "unavailable"
    elif result.code == 0:  # the whole result was there before
        assert verb != "download" or result.out == DATA[:4000]
    else:
        assert result.first["error"] == "unavailable"


class Flip(FakeExec):
    """One bit of what passes is wrong."""
    direction = "out"

    def _flip(self, data):
        at = data.find(b"needle")
        return data if at < 0 else data[:at] + bytes([data[at] ^ 1]) + data[at + 1:]

    def stdin(self, data):
        return self._flip(data) if self.direction == "in" else data

    def output(self, stream, channel, data):
        super().output(stream, channel, self._flip(data) if self.direction == "out" else data)


def test_wrong_bits_are_noticed(api, exec_probe, box):
    data = DATA[:10_000] + b"needle" + DATA[:10_000]
    fake = serve(api, Flip(box))
    (box / "f").write_bytes(data)
    result = exec_probe("download", "f")
    assert result.first["error"] == "unavailable" and "did not arrive whole" in result.first["message"]
    fake.direction = "in"
    (box / "f").write_bytes(b"old")
    result = exec_probe("upload", "f", data=data)
    assert result.first["error"] == "unavailable" and "unchanged" in result.first["message"]
    assert (box / "f").read_bytes() == b"old" and os.listdir(box) == ["f"]


class Foreign(FakeExec):
    message = b""

    def output(self, stream, channel, data):
        super().output(stream, channel, data)
        if b"out" in data:
            stream.send_frame(self.message)


@pytest.mark.parametrize("message", [b"\0x", b"\4{}", b"\x09boo", b"\xff\1"])
def test_channels_that_the_server_must_not_use(api, exec_probe, box, message):
    serve(api, Foreign(box, message=message))
    run = exec_probe("run", "echo out; sleep 1")
    assert run.first["ended"] == "lost" and run.content == b"out\n"


class Strange(FakeExec):
    def _run(self, stream, request, command):
        for frame in self.frames:
            stream.send_frame(frame)
        while stream.read_frame()[0] != 8:
            pass


@pytest.mark.parametrize("frames,kind", [
    ([b"\1hello there\n"], "invalid"), ([b"\1sandbox-exec 2\n"], "invalid"),
    ([b"\1sandbox-exec 1\nmore"], "invalid"), ([b"\7x"], "unavailable"),
    ([b"\3not json"], "unavailable"), ([b'\3{"status":"Success"}'], "unavailable"),
])
def test_no_shell_on_the_other_side(api, exec_probe, box, frames, kind):
    serve(api, Strange(box, frames=frames))
    assert exec_probe("run", "true").first["error"] == kind


# --- commands whose container is gone ---

class ContainerEnds(FakeExec):
    """All processes are killed once the command has said "out"; the runtime tells of the shell, or nobody does."""
    says_so = True

    def output(self, stream, channel, data):
        super().output(stream, channel, data)
        if b"out" not in data:
            return
        if self.says_so:
            end = failure("command terminated with exit code 137", "NonZeroExitCode",
                          [{"reason": "ExitCode", "message": "137"}])
            stream.send_frame(bytes([ERROR]) + json.dumps(end).encode())
            stream.close()
        else:
            stream.reset()


def is_pod_read(request):
    return request.method == "GET" and request.resource == PODS and not request.subresource


def ended(reason="OOMKilled", container="c://1", ago=0):
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - ago))
    return {"terminated": {"containerID": container, "reason": reason, "finishedAt": at, "exitCode": 137}}


def runs(container="c://1", last=None):
    return {"name": "main", "containerID": container, "state": {"running": {}}, "lastState": last or {}}


def reads(api, *answers):
    """What one read of the pod after the other says; the last one for ever. Times are of the read."""
    def say(make):
        def act(wire, _request):
            body = {"kind": "Pod", "status": {"phase": "Running", "containerStatuses": [make()]}}
            wire.answer(200, json.dumps(body).encode())
            return DONE
        return act

    for make in answers[:-1]:
        api.rule(is_pod_read, say(make), times=1)
    api.rule(is_pod_read, say(answers[-1]))


def lose(exec_probe, flags=("-i", "c://1")):
    result = exec_probe("run", "echo out; sleep 99", flags=flags)
    assert result.content == b"out\n" and result.took < 30
    return result.first["ended"], result.first["exit_code"], result.first["container_ended"]


OOM, LOST, LOST_WITH_ITS_CONTAINER = ("oom", "137", "1"), ("lost", "255", "0"), ("lost", "255", "1")


@pytest.mark.parametrize("says_so", [True, False])
@pytest.mark.parametrize("now", [
    lambda: {"name": "main", "state": ended()},
    lambda: {"name": "main", "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": ended()},
    lambda: runs("c://2", ended()),
])
def test_container_out_of_memory(api, exec_probe, box, now, says_so):
    serve(api, ContainerEnds(box, says_so=says_so))
    reads(api, now)
    assert lose(exec_probe) == OOM
    assert len(api.seen(is_pod_read)) == len(execs(api)) == 1


def test_container_out_of_memory_is_told_late(api, exec_probe, box):
    serve(api, ContainerEnds(box))
    reads(api, runs, lambda: runs("c://2", ended()))
    assert lose(exec_probe) == OOM
    assert len(api.seen(is_pod_read)) == 2 and len(execs(api)) == 1


@pytest.mark.parametrize("now", [
    runs,
    lambda: runs(last=ended(container="c://0")),           # the run before this one
    lambda: runs("c://2", ended(ago=60)),                  # the command ran in a newer one than was known
    lambda: runs() | {"name": "side", "state": ended()},   # another container
])
def test_old_out_of_memory_is_not_this_one(api, exec_probe, box, now):
    serve(api, ContainerEnds(box))
    reads(api, now)
    assert lose(exec_probe) == LOST
    asked = [request.at for request in api.seen(is_pod_read)]
    assert 3 <= len(asked) <= 4 and 1.4 < asked[-1] - asked[0] < 5


def test_container_that_ends_otherwise(api, exec_probe, box):
    serve(api, ContainerEnds(box))
    reads(api, lambda: runs("c://2", ended("Error")))
    assert lose(exec_probe) == LOST_WITH_ITS_CONTAINER
    assert len(api.seen(is_pod_read)) == 1


def test_pod_that_is_gone(api, exec_probe, box):
    serve(api, ContainerEnds(box))
    assert lose(exec_probe) == LOST_WITH_ITS_CONTAINER
    assert len(api.seen(is_pod_read)) == 1


@pytest.mark.parametrize("fault,most", [
    (status(500, "InternalError"), 4), (status(403, "Forbidden"), 4), (drop(), 4), (stall(), 1)])
def test_pod_that_cannot_be_read(api, exec_probe, box, fault, most):
    serve(api, ContainerEnds(box))
    api.rule(is_pod_read, fault)
    assert lose(exec_probe) == LOST
    assert 1 <= len(api.seen(is_pod_read)) <= most


def test_fault_of_one_read(api, exec_probe, box):
    serve(api, ContainerEnds(box))
    api.rule(is_pod_read, status(500, "InternalError"), times=1)
    reads(api, lambda: runs("c://2", ended()))
    assert lose(exec_probe) == OOM


def test_nothing_is_asked_where_the_container_is_not_known(api, exec_probe, box):
    serve(api, ContainerEnds(box))
    assert lose(exec_probe, flags=()) == LOST
    assert not api.seen(is_pod_read)


# --- what cannot start ---

def pod(api, **fields):
    api.store.create(PODS, "ns", {"metadata": {"name": "pod"}, "status": fields})


RUNNING = {"phase": "Running", "containerStatuses": [{"name": "main", "state": {"running": {}}}]}
CRASHED = {"phase": "Running", "containerStatuses": [
    {"name": "main", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]}


@pytest.mark.parametrize("verb", ["run", "upload", "download", "list", "exists"])
def test_image_without_a_shell(api, exec_probe, box, verb):
    fake = serve(api, FakeExec(box))
    fake.start_failure = lambda _request: failure(NO_SHELL)
    result = exec_probe(verb, "f")
    assert result.first["error"] == "invalid" and "no shell" in result.first["message"]
    assert result.took < 20


@pytest.mark.parametrize("message,pod_status,kind,part", [
    ('container not found ("main")', CRASHED, "unavailable", "CrashLoopBackOff"),
    ('container not found ("main")', RUNNING, "unavailable", "not running"),
    ("something else", {"phase": "Failed"}, "unavailable", "has ended (Failed)"),
    ("something else", None, "not_found", "is not there"),
    ('chdir to cwd ("/gone") failed: no such file', RUNNING, "invalid", "working directory"),
])
def test_runtime_says_no(api, exec_probe, box, message, pod_status, kind, part):
    if pod_status:
        pod(api, **pod_status)
    fake = serve(api, FakeExec(box))
    fake.start_failure = lambda _request: failure(message)
    result = exec_probe("run", "true")
    assert result.first["error"] == kind and part in result.first["message"]


@pytest.mark.parametrize("code,reason,pod_status,kind,part", [
    (403, "Forbidden", RUNNING, "denied", "get and create pods/exec in namespace 'ns'"),
    (404, "NotFound", None, "not_found", "pod 'ns/pod' is not there"),
    (400, "BadRequest", {"phase": "Pending"}, "unavailable", "not running yet (Pending)"),
    (400, "BadRequest", {"phase": "Running", "containerStatuses": [{"name": "x"}]}, "invalid",
     "no container 'main'"),
    (500, "InternalError", {"phase": "Succeeded"}, "unavailable", "has ended (Succeeded)"),
    (503, "ServiceUnavailable", RUNNING, "unavailable", "HTTP 503"),
    (429, "TooManyRequests", RUNNING, "exhausted", "too much to do"),
])
def test_refused_upgrades(api, exec_probe, code, reason, pod_status, kind, part):
    if pod_status:
        pod(api, **pod_status)
    api.rule(is_exec, status(code, reason))
    result = exec_probe("run", "true")
    assert result.first["error"] == kind and part in result.first["message"]
    assert len(execs(api)) == 1 and result.took < 20


def test_server_away(api, exec_probe):
    api.rule(lambda r: True, drop(rst=True))
    assert exec_probe("run", "true").first["error"] == "unavailable"
    api.go_down()
    assert exec_probe("run", "true").first["error"] == "unavailable"


def test_foreign_subprotocol(api, exec_probe, box):
    serve(api, FakeExec(box, subprotocol="v4.channel.k8s.io"))
    assert exec_probe("run", "true").first["error"] == "unavailable"


def replace_token(api, exec_probe, tmp_path):
    """The old token is refused from now on, the file has a new one as soon as it was."""
    token = tmp_path / "token"
    token.write_text("old")
    config = json.loads(open(exec_probe.kubeconfig, encoding="utf-8").read())
    config["users"][0]["user"] = {"tokenFile": str(token)}
    with open(exec_probe.kubeconfig, "w", encoding="utf-8") as file:
        json.dump(config, file)

    def refuse_old(_wire, request):
        if request.token == "new":
            return None
        token.write_text("new")
        raise ApiError(401, "Unauthorized", "Unauthorized")

    with api._lock:  # in front of the exec rule
        rules, api._rules = api._rules, []
    api.rule(lambda r: r.token != "new", refuse_old)
    with api._lock:
        api._rules += rules


def test_token_that_was_replaced(api, exec_probe, box, tmp_path):
    """The job is repeated, as nothing ran."""
    pod(api, **RUNNING)
    serve(api, FakeExec(box))
    replace_token(api, exec_probe, tmp_path)
    run = exec_probe("run", "echo ran >> once; exit 9")
    assert run.first.get("exit_code") == "9", run.out
    assert (box / "once").read_text() == "ran\n"
    assert [r.token for r in execs(api)] == ["old", "new"]


def test_repeated_job_that_is_lost_is_not_repeated_again(api, exec_probe, box, tmp_path):
    """It is between two questions about its end when its stream is gone."""
    serve(api, ContainerEnds(box))
    reads(api, runs, runs, lambda: runs("c://2", ended()))
    replace_token(api, exec_probe, tmp_path)
    run = exec_probe("run", "echo ran >> once; echo out; sleep 99", flags=["-i", "c://1"])
    assert (run.first["ended"], run.content) == ("oom", b"out\n")
    assert (box / "once").read_text() == "ran\n"
    assert [r.token for r in execs(api)] == ["old", "new"]


# --- deadlines that take their time, side by side ---

@pytest.mark.long_wait
def test_slow_servers(api, exec_probe, box):
    """No answer to the upgrade; an open stream without a shell; a download that stops."""
    class Mute(FakeExec):
        def _run(self, stream, request, command):
            while stream.read_frame()[0] != 8:
                pass

    mute = Mute(box)
    api.rule(lambda r: is_exec(r) and r.name == "mute", mute)
    api.rule(lambda r: is_exec(r) and r.name == "stall", stall())
    results = {}

    def run(name):
        process = subprocess.Popen(
            [os.path.join(BUILD_DIR, "bin/exec_probe"), "-k", exec_probe.kubeconfig, "ns", name,
             "run", "true"], stdout=subprocess.PIPE)
        started = time.monotonic()
        out, _ = process.communicate(timeout=60)
        results[name] = (Result(out, b"", process.returncode, 0).first, time.monotonic() - started)

    threads = [threading.Thread(target=run, args=(name,)) for name in ("mute", "stall")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    first, took = results["stall"]
    assert first["error"] == "timeout" and 9 < took < 30
    first, took = results["mute"]
    assert first["error"] == "timeout" and "no shell started" in first["message"] and 14 < took < 40
