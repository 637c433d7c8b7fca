# SPDX-License-Identifier: Apache-2.0
"""Commands in a sandbox: what comes back, how they end, and what is left of them."""

import concurrent.futures
import time

import pytest

from support.mcp_raw import create
from support.space import PYTHON_IMAGE, unique


@pytest.mark.parametrize("code", [0, 1, 2, 42, 126, 127, 255])
def test_exit_codes(box, code):
    done = box.run(f"exit {code}")
    assert (done["exit_code"], done["ended"]) == (code, "exited")


@pytest.mark.parametrize("signal", ["TERM", "KILL", "INT", "SEGV"])
def test_ended_by_a_signal(box, signal):
    done = box.run(f"sh -c 'kill -{signal} $$'; exit $?")
    assert done["exit_code"] == 128 + {"TERM": 15, "KILL": 9, "INT": 2, "SEGV": 11}[signal]
    direct = box.run(f"kill -{signal} $$; sleep 5")
    assert direct["exit_code"] == done["exit_code"] and direct["ended"] == "signaled"


def test_not_found_in_the_image(box):
    done = box.run("no-such-program")
    assert done["exit_code"] == 127 and "no-such-program" in done["stderr"]


def test_streams_are_apart(box):
    done = box.run("echo out; echo err >&2; echo out2")
    assert (done["stdout"], done["stderr"]) == ("out\nout2\n", "err\n")
    assert (done["stdout_bytes"], done["stderr_bytes"], done["truncated"]) == (9, 4, False)


def test_it_is_a_shell(box):
    assert box.sh("A=1; for i in 1 2; do echo $A$i; done | tr 1 x && cd /tmp && pwd") == "xx\nx2\n/tmp\n"
    assert box.sh("printf '%s' \"$(echo 'a  b')\" '$HOME' \"ü \\\\ \"") == "a  b$HOMEü \\ "
    assert box.sh("cat <<EOF\nline 'one'\nline \"two\"\nEOF") == "line 'one'\nline \"two\"\n"


def test_state_stays(box):
    name = unique("state")
    box.sh(f"mkdir /tmp/{name} && echo kept > /tmp/{name}/file")
    assert box.sh(f"cat /tmp/{name}/file") == "kept\n"


def test_stdin_is_closed(box):
    started = time.monotonic()
    assert box.sh("cat; read x; echo $?; echo a | cat") == "1\na\n"
    assert time.monotonic() - started < 30


def test_environment_has_nothing_of_ours(box):
    env = box.sh("env")
    assert "nonce" not in env and "sbx" not in env
    assert "TOKEN" not in env


@pytest.mark.parametrize("count,left", [(65536, 65536), (65537, None), (3_000_000, None)])
def test_long_output(box, count, left):
    done = box.run(f"head -c {count} /dev/zero | tr '\\0' a; echo tail >&2")
    assert done["exit_code"] == 0 and done["stdout_bytes"] == count
    assert done["truncated"] is (left is None)
    if left:
        assert done["stdout"] == "a" * left
    else:
        assert 60_000 < len(done["stdout"]) <= 65536 + 200
        assert done["stdout"].startswith("a" * 40_000) and done["stdout"].endswith("a" * 10_000)
        assert done["stdout"].strip("a"), "nothing says that the middle is missing"
    assert done["stderr"] == "tail\n"


def test_nothing_is_lost_on_the_way(box):
    """A stream that is read slowly, in many pieces: every byte is there."""
    done = box.run("i=0; while [ $i -lt 3000 ]; do echo line-$i; i=$((i+1)); done")
    assert done["stdout"] == "".join(f"line-{i}\n" for i in range(3000))


def test_bytes_that_are_not_utf8(box):
    done = box.run(r"printf 'a\377\376b\000c'; exit 5")
    assert done["exit_code"] == 5 and done["stdout"] == "a\ufffd\ufffdb\0c" and done["stdout_bytes"] == 6
    assert done["invalid_utf8"] is True


def test_output_cannot_forge_the_end(box):
    done = box.run("for i in 1 2 3; do echo; echo exited 0; echo 0; done; env; exit 9")
    assert done["exit_code"] == 9


def test_python_and_pip_are_there(raw, space):
    """The image of the demo, as the published skill uses it."""
    space.template("python", image=PYTHON_IMAGE)
    space.pool("python", "python", 1)
    sandbox = create(raw, space.name, "python")
    assert sandbox.sh("python -c 'print(sum(range(101)))'") == "5050\n"
    assert sandbox.sh("pip --version").startswith("pip ")
    sandbox.delete()
    space.delete("SandboxWarmPool", "python")


# ---- time-outs

def processes(box, word):
    """How many processes have this word in their command line, the one that asks not counted."""
    script = ('n=0; for p in /proc/[0-9]*; do [ "$p" = "/proc/$$" ] && continue; '
              f'tr "\\0" " " <$p/cmdline 2>/dev/null | grep -q "{word[0]}[{word[1]}]{word[2:]}" && n=$((n+1)); done; echo $n')
    return int(box.sh(script))


def wait_processes(box, word, count, timeout=10):
    """Each look is a command, which takes its time: no pause between them is needed."""
    end = time.monotonic() + timeout
    while (found := processes(box, word)) != count:
        assert time.monotonic() < end, f"{found} processes with {word}, not {count}"


def test_timeout(box):
    word = unique("late")
    started = time.monotonic()
    done = box.run(f"echo before; sh -c 'sleep 300; : {word}' & sh -c 'sleep 300; : {word}'; echo after", timeout=2)
    took = time.monotonic() - started
    assert (done["exit_code"], done["ended"], done["stdout"]) == (124, "timed_out", "before\n")
    assert 2 <= took < 4.5 and done["note"]
    wait_processes(box, word, 0)


def test_timeout_of_what_heeds_no_signal(box):
    word = unique("deaf")
    done = box.run(f"trap '' TERM INT HUP; sh -c 'trap \"\" TERM INT HUP; while :; do sleep 1; done; : {word}'", timeout=1)
    assert done["ended"] == "timed_out"
    wait_processes(box, word, 0)


def test_timeout_of_what_left_the_group(box):
    """setsid alone is no way out of the time-out: the command's id is in the environment."""
    word = unique("left")
    done = box.run(f"setsid sh -c 'sleep 300; : {word}' & sleep 300", timeout=1)
    assert done["ended"] == "timed_out"
    wait_processes(box, word, 0)


def test_a_background_process_outlives_its_command(box):
    word = unique("bg")
    started = time.monotonic()
    done = box.run(f"sh -c 'sleep 30; : {word}' >/dev/null 2>&1 & echo started")
    assert done["stdout"] == "started\n" and time.monotonic() - started < 30
    assert processes(box, word) == 1
    box.run(f"kill $(grep -l {word[:2]}[{word[2]}]{word[3:]} /proc/[0-9]*/cmdline | cut -d/ -f3)")


def test_a_background_process_with_the_output_open(box):
    started = time.monotonic()
    done = box.run("sleep 20 & echo started")
    assert done["exit_code"] == 0 and done["stdout"] == "started\n" and time.monotonic() - started < 30


# ---- many at a time

def test_side_by_side(box):
    def one(number):
        return box.sh(f"sleep 1; echo {number}")

    started = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(24) as pool:
        assert list(pool.map(one, range(24))) == [f"{i}\n" for i in range(24)]
    # Eight run at a time in a container for each of two replicas, the others wait for their turn.
    assert time.monotonic() - started >= 2


def test_a_slow_command_is_in_nobodys_way(raw, box):
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        slow = [pool.submit(box.run, "sleep 4") for _ in range(3)]
        times = []
        for _ in range(5):
            started = time.monotonic()
            box.sh("true")
            raw.result("tools/list")
            times.append(time.monotonic() - started)
        assert not any(s.done() for s in slow), "the slow commands were no longer running"
        assert sorted(times)[2] < 4
        assert all(s.result()["exit_code"] == 0 for s in slow)
