# SPDX-License-Identifier: Apache-2.0
"""Long calls: the switch to an event stream, keepalive, progress, and clients that go away."""

import concurrent.futures
import json
import time

import pytest

from support.mcp_raw import create
from support.space import unique

SSE_AFTER = 5.0


def execute(raw, box, command, meta=None, **headers):
    return raw.tool("execute_command", {**box.where, "command": command}, meta, headers)


# All of these wait for real time to pass: they do it together.

@pytest.fixture(scope="module", name="long_calls")
def long_calls_fixture(raw, box):
    modern = raw.with_(era="modern")
    calls = {
        "legacy": lambda: execute(raw, box, "sleep 36; echo done", {"progressToken": "tok"}),
        "modern": lambda: execute(modern, box, "sleep 6; echo done", {"progressToken": 7}),
        "no token": lambda: execute(raw, box, "sleep 6; echo done"),
        "json only": lambda: execute(raw, box, "sleep 6; echo done", Accept="application/json"),
        "under": lambda: execute(raw, box, "sleep 3; echo done"),
    }
    with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
        futures = {name: pool.submit(call) for name, call in calls.items()}
        return {name: future.result() for name, future in futures.items()}


@pytest.mark.parametrize("name", ["legacy", "modern", "no token"])
def test_long_calls_become_streams(long_calls, name):
    answer = long_calls[name]
    assert answer.status == 200 and answer.type == "text/event-stream"
    assert SSE_AFTER - 1 < answer.headers_after < SSE_AFTER + 1.5
    assert "no-cache" in answer.headers["cache-control"] and answer.headers["x-accel-buffering"] == "no"
    assert answer.json["result"]["structuredContent"]["stdout"] == "done\n"
    # The answer is the last that comes.
    assert answer.messages[-1][1] == answer.json


def test_keepalive(long_calls):
    times = [at for at, _ in long_calls["legacy"].comments]
    gaps = [b - a for a, b in zip([long_calls["legacy"].headers_after, *times], [*times, long_calls["legacy"].took])]
    assert max(gaps) < 16.5, "quiet for longer than proxies wait"


@pytest.mark.parametrize("name,token", [("legacy", "tok"), ("modern", 7)])
def test_progress(long_calls, name, token):
    progress = long_calls[name].progress
    assert progress
    assert {type(p["progressToken"]) for _, p in progress} == {type(token)}
    assert {p["progressToken"] for _, p in progress} == {token}
    values = [p["progress"] for _, p in progress]
    assert values == sorted(set(values)), "progress has to grow"
    times = [at for at, _ in progress] + [long_calls[name].took]
    assert all(b - a < 60 for a, b in zip(times, times[1:]))


def test_no_progress_without_a_token(long_calls):
    assert not long_calls["no token"].progress and len(long_calls["no token"].messages) == 1


def test_a_client_that_takes_no_stream(long_calls):
    answer = long_calls["json only"]
    assert answer.type == "application/json" and answer.took > 6
    assert answer.json["result"]["structuredContent"]["stdout"] == "done\n"


def test_short_calls_are_plain(long_calls):
    answer = long_calls["under"]
    assert answer.type == "application/json" and int(answer.headers["content-length"]) == len(answer.body)


# ---- clients that go away

def pids(box, word):
    """Processes with this word in their command line, but for the one that asks."""
    return box.sh(f'for p in /proc/[0-9]*; do [ $p = /proc/$$ ] || ! tr "\\0" " " <$p/cmdline 2>/dev/null | '
                  f'grep -q "{word[0]}[{word[1]}]{word[2:]}" || echo ${{p#/proc/}}; done').split()


def wait_pids(box, word, there, timeout=10):
    end = time.monotonic() + timeout
    while bool(pids(box, word)) is not there:
        assert time.monotonic() < end, f"processes with {word}: {pids(box, word)}"


@pytest.mark.parametrize("after", ["json", "stream"])
@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_disconnect_kills_the_command(raw, box, era, after):
    """Before and after the switch to a stream: who hangs up has cancelled."""
    word = unique("orphan")
    here = raw.with_(era=era)
    connection = here.connect()
    command = f"sh -c 'sleep 300; : {word}' & sh -c 'sleep 300; : {word}'"
    here.send(connection, here.message("tools/call", {"name": "execute_command",
                                                      "arguments": {**box.where, "command": command, "timeout": 600}}))
    if after == "stream":
        response = connection.getresponse()
        assert response.getheader("content-type") == "text/event-stream"
        response.close()
    else:
        wait_pids(box, word, True)
    connection.close()
    wait_pids(box, word, False)


def test_a_half_closed_client_has_gone_too(raw, box):
    word = unique("half")
    connection = raw.connect()
    raw.send(connection, raw.message("tools/call", {"name": "execute_command", "arguments": {
        **box.where, "command": f"sh -c 'sleep 300; : {word}'", "timeout": 600}}))
    wait_pids(box, word, True)
    connection.sock.shutdown(1)
    wait_pids(box, word, False)
    connection.close()


def test_a_notice_of_cancellation_cannot_be_matched(raw, box):
    """Ids are the client's own: a notice is taken, and ends nobody's call."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        message = raw.message("tools/call", {"name": "execute_command",
                                             "arguments": {**box.where, "command": "sleep 2; echo whole"}}, number=77)
        running = pool.submit(raw.post, message)
        notice = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 77}}
        assert raw.post(notice).status == 202
        assert running.result().json["result"]["structuredContent"]["stdout"] == "whole\n"


def test_disconnect_during_create(raw, space):
    """The claim under creation goes with its caller."""
    space.template("never", {"podTemplate": {"spec": {"nodeSelector": {"nowhere": "1"}, "containers": [
        {"name": "main", "image": "x", "imagePullPolicy": "Never"}]}}})
    space.pool("never", "never", 0)
    connection = raw.connect()
    raw.send(connection, raw.message("tools/call", {"name": "create_sandbox", "arguments": {
        "warmpool": "never", "namespace": space.name}}))

    def of_never(claims):
        return [c for c in claims if c["spec"]["warmPoolRef"]["name"] == "never"]

    claim, = of_never(space.kube.wait_all("SandboxClaim", space.name, "made", of_never))
    assert claim["spec"]["lifecycle"]["shutdownTime"], "it would live on if the gateway died, too"
    connection.close()
    space.wait_gone("SandboxClaim", claim["metadata"]["name"], timeout=10)


def test_many_clients_go_away_at_once(raw, box, system):
    """A storm of lost connections harms nobody else."""
    before = system.restarts()
    connections = []
    for _ in range(100):
        connection = raw.connect()
        raw.send(connection, raw.message("tools/call", {"name": "execute_command", "arguments": {
            **box.where, "command": "sleep 100"}}))
        connections.append(connection)
    for connection in connections:
        connection.close()
    assert box.sh("echo alive") == "alive\n"
    wait_no_sleep(box)
    assert system.restarts() == before


def wait_no_sleep(box, timeout=30):
    end = time.monotonic() + timeout
    while (left := box.sh("grep -l 'sleep.100$' /proc/[0-9]*/cmdline 2>/dev/null | wc -l").strip()) != "0":
        assert time.monotonic() < end, f"{left} commands are still running"


def test_slow_readers_and_writers(raw):
    """Half a request, and an answer that nobody reads: the others are served meanwhile."""
    slow = [raw.connect() for _ in range(30)]
    for number, connection in enumerate(slow):
        connection.sock.sendall(b"POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Le"[:20 + number])
    started = time.monotonic()
    for _ in range(20):
        assert raw.result("tools/list")
    assert time.monotonic() - started < 30
    for connection in slow:
        connection.close()


def test_a_large_answer_arrives_whole(raw, space, warmpool):
    """Also as an event, where it takes a while."""
    box = create(raw, space.name, warmpool)
    box.sh("head -c 8388608 /dev/zero | tr '\\0' x > /tmp/big")
    answer = raw.tool("download_file", {**box.where, "path": "/tmp/big"})
    assert answer.json["result"]["structuredContent"]["bytes_read"] == 8388608
    assert json.loads(answer.json["result"]["content"][0]["text"])["content"] == "x" * 8388608
    box.delete()
