# SPDX-License-Identifier: Apache-2.0
"""How claims end: by time, after finishing, by idleness, and what stays."""

import os
import signal
import time

import pytest

from support.kube import condition, is_ready, name_of, reason_is, uid_of
from support.space import BUSYBOX_IMAGE, OWN_PREFIX, container, in_seconds, parse_time, unique
from support.system import default_folder


@pytest.fixture(name="warm", scope="module")
def warm_fixture(space):
    space.template("box")
    space.pool("pool", "box", 2)
    space.pool("cold", "box", 0)
    # Runs for two seconds and ends well.
    spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
            "containers": [container(BUSYBOX_IMAGE, command=["/bin/sleep", "2"])]}
    space.template("ends", {"podTemplate": {"spec": spec}})
    space.pool("ends", "ends", 0)
    space.pool_ready("pool")


def gone(space, claim, deadline=None, late=3.0):
    """Waits until claim, sandbox and pod are gone; the seconds the claim lived beyond its deadline."""
    box = (claim.get("status") or {}).get("sandbox", {}).get("name") or name_of(claim)
    space.wait_gone("SandboxClaim", name_of(claim), timeout=60)
    beyond = time.time() - deadline if deadline else 0.0
    space.wait_gone("Sandbox", box)
    space.wait_gone("Pod", box)
    assert -0.05 <= beyond < late, f"gone {beyond:.2f} s after its deadline"
    return beyond


@pytest.mark.parametrize("pool", ["pool", "cold"])
def test_shutdown_time_delete(space, warm, pool):
    assert warm is None
    end = in_seconds(4)
    claim = space.ready_claim(pool=pool, lifecycle={"shutdownTime": end, "shutdownPolicy": "Delete"})
    gone(space, claim, parse_time(end))
    events = [e for e in space.events(name_of(claim)) if e["reason"] == "ClaimExpired"]
    assert any("ShutdownPolicy=Delete" in e["message"] for e in events)
    space.pool_ready("pool")


@pytest.fixture(name="no_garbage_collector")
def no_garbage_collector_fixture():
    """The cluster's garbage collector stands still for the test."""
    pid = int((default_folder() / "run/kube-controller-manager.pid").read_text().split()[0])
    os.kill(pid, signal.SIGSTOP)
    yield
    os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize("how", ["expires", "deleted"])
def test_a_slow_garbage_collector_keeps_nothing(space, warm, no_garbage_collector, how):
    """A busy one, or one that has not heard of the kinds yet: sandbox and pod go all the same."""
    assert warm is None and no_garbage_collector is None
    end = in_seconds(4 if how == "expires" else 600)
    claim = space.ready_claim(lifecycle={"shutdownTime": end, "shutdownPolicy": "Delete"})
    if how == "deleted":
        space.delete("SandboxClaim", name_of(claim))
    gone(space, claim, parse_time(end) if how == "expires" else None)
    space.pool_ready("pool")


def test_shutdown_time_delete_foreground(space, warm):
    """The claim stays, being deleted, until its sandbox and pod are gone."""
    assert warm is None
    end = in_seconds(3)
    claim = space.ready_claim(lifecycle={"shutdownTime": end, "shutdownPolicy": "DeleteForeground"})
    box = claim["status"]["sandbox"]["name"]
    left = []
    for held in space.kube.follow("SandboxClaim", space.name, 30, fields=f"metadata.name={name_of(claim)}"):
        if not held:
            left = [b for b in (space.find("Sandbox", box), space.find("Pod", box)) if b]
            break
    assert left == [] and time.time() >= parse_time(end)


def test_shutdown_time_retain(space, warm):
    assert warm is None
    claim = space.ready_claim(lifecycle={"shutdownTime": in_seconds(3), "shutdownPolicy": "Retain"})
    box = claim["status"]["sandbox"]["name"]
    expired = space.wait("SandboxClaim", name_of(claim), "expired", reason_is("ClaimExpired"))
    assert condition(expired)["message"].startswith("Claim expired.")
    space.wait_gone("Sandbox", box)
    space.wait_gone("Pod", box)
    space.wait("SandboxClaim", name_of(claim), "emptied", lambda c: not c["status"].get("sandbox", {}).get("name"))
    # It is over for good: nothing is bound to it again.
    space.kube.stays("SandboxClaim", space.name, "expired", lambda claims: all(
        not is_ready(c) for c in claims if name_of(c) == name_of(claim)), 1)
    space.delete("SandboxClaim", name_of(claim))


@pytest.mark.parametrize("policy", ["Delete", "Retain"])
def test_made_after_its_end(space, warm, policy):
    assert warm is None
    name = unique("late")
    space.claim(name, lifecycle={"shutdownTime": "2020-01-01T00:00:00Z", "shutdownPolicy": policy})
    if policy == "Delete":
        space.wait_gone("SandboxClaim", name, timeout=10)
    else:
        space.wait("SandboxClaim", name, "expired", reason_is("ClaimExpired"), timeout=10)
        space.delete("SandboxClaim", name)
    assert space.find("Sandbox", name) is None
    assert [e["reason"] for e in space.events(name)].count("SandboxAdopted") == 0


@pytest.mark.parametrize("end", ["2096-01-31T12:00:00Z", "9999-12-31T23:59:59Z", "2096-01-31T12:00:00.123456789Z",
                                 "2096-01-31T12:00:00+05:30"])
def test_ends_far_ahead(space, warm, end):
    assert warm is None
    claim = space.ready_claim(pool="cold", lifecycle={"shutdownTime": end, "shutdownPolicy": "Delete"})
    assert is_ready(space.get("SandboxClaim", name_of(claim)))
    space.delete("SandboxClaim", name_of(claim))


def test_an_end_with_an_offset(space, warm):
    """An hour ahead on its clock is three seconds ahead on ours."""
    assert warm is None
    end = in_seconds(3)
    local = in_seconds(3 + 3600).replace("Z", "+01:00")
    claim = space.ready_claim(lifecycle={"shutdownTime": local, "shutdownPolicy": "Delete"})
    gone(space, claim, parse_time(end), late=4.5)


@pytest.mark.parametrize("ttl,policy", [(0, "Delete"), (2, "Delete"), (1, "Retain")])
def test_after_finishing(space, warm, ttl, policy):
    assert warm is None
    name = unique("ttl")
    space.claim(name, pool="ends", lifecycle={"ttlSecondsAfterFinished": ttl, "shutdownPolicy": policy})
    if ttl or policy == "Retain":
        finished = space.wait("SandboxClaim", name, "finished", lambda c: condition(c, "Finished"))
        at = parse_time(condition(finished, "Finished")["lastTransitionTime"])
        assert condition(finished, "Finished")["reason"] == "PodSucceeded"
    if policy == "Retain":
        space.wait("SandboxClaim", name, "expired", reason_is("ClaimExpired"))
        space.wait_gone("Sandbox", name)
        space.delete("SandboxClaim", name)
    else:
        space.wait_gone("SandboxClaim", name, timeout=20)
        if ttl:
            assert ttl - 0.05 <= time.time() - at < ttl + 3
        space.wait_gone("Pod", name)


def test_finishing_is_no_end_without_a_ttl(space, warm):
    assert warm is None
    name = unique("done")
    space.claim(name, pool="ends")
    done = space.wait("SandboxClaim", name, "finished", lambda c: condition(c, "Finished"))
    assert (condition(done)["status"], condition(done)["reason"]) == ("False", "PodSucceeded")
    space.kube.stays("Pod", space.name, "there", lambda pods: name in map(name_of, pods), 1)
    space.delete("SandboxClaim", name)


def test_the_earlier_of_two_ends(space, warm):
    assert warm is None
    end = in_seconds(3)
    claim = space.ready_claim(lifecycle={"shutdownTime": end, "shutdownPolicy": "Delete",
                                         "ttlSecondsAfterFinished": 2147483647})
    gone(space, claim, parse_time(end))


def test_a_successor_of_the_same_name(space, warm):
    """The timer of a deleted claim does not reach its namesake."""
    assert warm is None
    first = space.ready_claim("twin", pool="cold", lifecycle={"shutdownTime": in_seconds(6), "shutdownPolicy": "Delete"})
    space.delete("SandboxClaim", "twin")
    space.wait_gone("SandboxClaim", "twin")
    space.wait_gone("Sandbox", "twin")
    space.wait_gone("Pod", "twin")
    second = space.ready_claim("twin", pool="cold")
    assert uid_of(second) != uid_of(first)
    space.kube.stays("SandboxClaim", space.name, "ready", lambda claims: any(
        uid_of(c) == uid_of(second) and is_ready(c) for c in claims), 5)
    space.delete("SandboxClaim", "twin")


# ---- idleness

def idle(seconds, **more):
    return {f"{OWN_PREFIX}{k.replace('_', '-')}": v for k, v in {"idle_timeout_seconds": str(seconds), **more}.items()}


def test_idle(space, warm):
    """Without any activity the creation counts."""
    assert warm is None
    started = time.time()
    claim = space.ready_claim(lifecycle={"shutdownPolicy": "Delete"}, annotations=idle(4))
    gone(space, claim)
    assert 3 <= time.time() - started < 30
    told = [e["message"] for e in space.events(name_of(claim))]
    assert any("idle" in m.lower() for m in told), told


def test_idle_retain(space, warm):
    """The policy of the claim holds for this end, too."""
    assert warm is None
    claim = space.ready_claim(annotations=idle(2))
    space.wait("SandboxClaim", name_of(claim), "expired", reason_is("ClaimExpired"))
    space.wait_gone("Pod", claim["status"]["sandbox"]["name"])
    space.delete("SandboxClaim", name_of(claim))


def test_activity_puts_it_off(space, warm):
    assert warm is None
    claim = space.ready_claim(lifecycle={"shutdownPolicy": "Delete"}, annotations=idle(8))
    for _ in range(2):
        space.kube.stays("SandboxClaim", space.name, "there", lambda claims: name_of(claim) in map(name_of, claims), 5)
        stamp = in_seconds(-1)
        space.kube.annotate("SandboxClaim", space.name, name_of(claim), **{f"{OWN_PREFIX}last-activity": stamp})
    gone(space, claim, parse_time(stamp) + 8)


def test_a_running_command_holds_it(space, warm):
    """The lease of a command: until it ends, the sandbox is not idle."""
    assert warm is None
    claim = space.ready_claim(lifecycle={"shutdownPolicy": "Delete"}, annotations=idle(3, exec_lease=in_seconds(8)))
    lease = parse_time(space.get("SandboxClaim", name_of(claim))["metadata"]["annotations"][f"{OWN_PREFIX}exec-lease"])
    beyond = gone(space, claim, lease, late=7)
    assert beyond >= 0


@pytest.mark.parametrize("wish", [
    idle(3, exec_lease="2096-01-01T00:00:00Z"), idle(3, last_activity="2096-01-01T00:00:00Z"),
    idle(3, last_activity="nonsense", exec_lease="nonsense")])
def test_wishes_that_are_clamped(space, warm, wish):
    """Whoever may write a claim may write its annotations: they cannot make it live for ever."""
    assert warm is None
    claim = space.ready_claim(lifecycle={"shutdownPolicy": "Delete"}, annotations=wish)
    if "exec-lease" in str(wish) and "2096" in str(wish):
        # A lease holds for 660 s at most: seen in the simulation; here it is only that it does hold.
        space.kube.stays("SandboxClaim", space.name, "there", lambda claims: name_of(claim) in map(name_of, claims), 5)
        space.delete("SandboxClaim", name_of(claim))
    else:
        gone(space, claim)


@pytest.mark.parametrize("value", ["0", "-5", "soon", "", "99999999999999999999"])
def test_idle_timeouts_that_are_none(space, warm, value):
    assert warm is None
    claim = space.ready_claim(lifecycle={"shutdownPolicy": "Delete"}, annotations={f"{OWN_PREFIX}idle-timeout-seconds": value})
    space.kube.stays("SandboxClaim", space.name, "there", lambda claims: name_of(claim) in map(name_of, claims), 1)
    space.delete("SandboxClaim", name_of(claim))
