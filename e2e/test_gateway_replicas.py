# SPDX-License-Identifier: Apache-2.0
"""Gateways share nothing: any of them serves any call, and killing one, or all, loses nothing."""

import concurrent.futures
import signal
import time

import pytest

from support.daemons import Gateway, account_kubeconfig
from support.kube import uid_of
from support.mcp_raw import Raw, create
from support.system import GATEWAY, NAMESPACE


def test_two_replicas_serve_one_sandbox(raw, space, system, warmpool):
    first, second = [raw.with_(url=u) for u in system.addresses().values()]
    box = create(first, space.name, warmpool)
    there = box.seen_by(second)
    assert there.sh("echo x > /tmp/shared; echo ok") == "ok\n"
    assert box.sh("cat /tmp/shared") == "x\n"
    assert there.call("get_sandbox_status")["ready"] is True
    there.delete()
    # The first one may not have heard of it yet, but soon has.
    end = time.monotonic() + 5
    while box.call("get_sandbox_status")["status"] != "SandboxNotFound":
        assert time.monotonic() < end


def test_right_after_creation_on_the_other(raw, space, system, warmpool):
    """Its watch may be a moment behind: it looks once for itself."""
    first, second = [raw.with_(url=u) for u in system.addresses().values()]
    for _ in range(5):
        box = create(first, space.name, warmpool)
        assert box.seen_by(second).sh("echo there") == "there\n"
        box.delete()


def answers(raw):
    try:
        return raw.request("tools/list").status == 200
    except OSError:
        return False


def test_all_replicas_are_killed(raw, space, system, warmpool):
    box = create(raw, space.name, warmpool)
    box.sh("echo precious > /tmp/file")
    claim = uid_of(space.get("SandboxClaim", box.claim))
    system.kill_all(GATEWAY)
    box = box.seen_by(raw.with_(url=system.address()))
    # The Service leads to the new ones a moment after they are ready.
    end = time.monotonic() + 20
    while not answers(box.raw):
        assert time.monotonic() < end
    assert box.sh("cat /tmp/file") == "precious\n"
    assert uid_of(space.get("SandboxClaim", box.claim)) == claim
    box.delete()


@pytest.fixture(name="outside")
def outside_fixture(system, tmp_path):
    """Starts gateways outside the cluster."""
    config = account_kubeconfig(system.kube, tmp_path / "kubeconfig", NAMESPACE, GATEWAY)
    started = []

    def start(**options):
        started.append(Gateway(config, tmp_path, **options))
        return started[-1]

    yield start
    for gateway in started:
        gateway.stop()


def test_killed_in_the_middle_of_a_command(outside, raw, space, warmpool):
    """The loss of a gateway never kills a command; its time-out does."""
    one = outside()
    box = create(Raw(one.url, raw.token), space.name, warmpool)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        lost = pool.submit(box.run, "echo begun > /tmp/log; sleep 3; echo ended >> /tmp/log")
        here = box.seen_by(raw)
        here.sh("while ! [ -s /tmp/log ]; do sleep 0.1; done")
        one.kill()
        with pytest.raises(Exception):
            lost.result()
    assert here.sh("while ! grep ended /tmp/log; do sleep 0.1; done") == "ended\n"
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        one.start()
        lost = pool.submit(box.run, "echo $$ > /tmp/pid; sleep 300", timeout=4)
        pid = here.sh("while ! [ -s /tmp/pid ]; do sleep 0.1; done; cat /tmp/pid").strip()
        one.kill()
    assert here.sh(f"while kill -0 {pid} 2>/dev/null; do sleep 0.2; done; echo over", timeout=20) == "over\n"
    here.delete()


def test_a_clean_stop(outside, raw, space, warmpool):
    """SIGTERM: what is under way ends with an answer, what runs in sandboxes is not left running,
    no sandbox is deleted, and the exit status is 0."""
    one = outside()
    box = create(Raw(one.url, raw.token), space.name, warmpool)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        short = pool.submit(box.run, "sleep 2; echo whole")
        box.seen_by(raw).sh("while ! grep -q 'sleep.2' /proc/[0-9]*/cmdline; do sleep 0.1; done")
        one.process.send_signal(signal.SIGTERM)
        assert short.result()["stdout"] == "whole\n"
    assert one.process.wait(timeout=70) == 0
    assert box.seen_by(raw).sh("echo still here") == "still here\n"
    box.seen_by(raw).delete()


def test_without_a_token_only_on_loopback(system, tmp_path):
    config = account_kubeconfig(system.kube, tmp_path / "kubeconfig", NAMESPACE, GATEWAY)
    refused = Gateway(config, tmp_path, "--auth=none", address="0.0.0.0", start=False)
    assert refused.run_to_end(10).returncode not in (0, None)
    assert "--i-understand-that-anyone-can-run-code" in refused.log()
    with Gateway(config, tmp_path, "--auth=none") as open_one:
        assert Raw(open_one.url).result("tools/list")["tools"]
        # A page in a browser, on a name that its owner points here, is not let in.
        answer = Raw(open_one.url).request("tools/list", headers={"Host": "evil.example.com"})
        assert answer.status == 403
