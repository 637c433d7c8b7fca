# SPDX-License-Identifier: Apache-2.0
"""What things cost in requests to the API server, counted in its audit log by user name."""

import statistics
import time

import pytest

from support.audit import CONTROLLER, GATEWAY, WRITES, longest_chain, tally
from support.kube import condition, name_of
from support.mcp_raw import create
from support.space import OWN_PREFIX

# Of a warm claim.
ONE_AFTER_ANOTHER, IN_ALL, WITH_EVENTS, REFILL = 2, 5, 6, 4
REVIEW_TTL = 30
REVIEWS = ("create tokenreviews", "create subjectaccessreviews")


def settle(audit, mark, namespace, quiet=1.5, timeout=30):
    """Until the controller has written nothing there for a while; everything it has written since mark."""
    end, pause = time.monotonic() + timeout, 0.1
    count, since = -1, time.monotonic()
    while time.monotonic() < end:
        records = [r for r in audit.since(mark, CONTROLLER, namespace) if r.is_write]
        if len(records) != count:
            count, since = len(records), time.monotonic()
        elif time.monotonic() - since > quiet:
            return records
        time.sleep(pause)
    raise AssertionError(f"the controller goes on writing: {records[-10:]}")


def split(records, claim, box):
    """(of the claim, its events, of the refill)"""
    own, events, refill = [], [], []
    for record in records:
        if record.resource == "events":
            events.append(record)
        elif record.name in (claim, box):
            own.append(record)
        else:
            refill.append(record)
    return own, events, refill


@pytest.fixture(name="pool", scope="module")
def pool_fixture(space, warmpool, audit):
    mark = audit.mark()
    space.pool_ready(warmpool)
    settle(audit, mark, space.name)
    return warmpool


def test_a_warm_claim(space, pool, audit, figure):
    counts, chains = [], []
    for _ in range(5):
        mark = audit.mark()
        claim = space.ready_claim(pool=pool)
        name, box = name_of(claim), claim["status"]["sandbox"]["name"]
        space.pool_ready(pool)
        records = settle(audit, mark, space.name)
        own, events, refill = split(records, name, box)
        shown = f"claim: {own}\nevents: {events}\nrefill: {refill}"
        assert all(r.code < 300 for r in records), f"a write was in vain: {shown}"
        ready = next(r for r in own if r.resource == "sandboxclaims/status")
        # The Sandbox's status and its Pod's labels follow the transfer on keys of their own: the claim does not
        # wait for them (the simulation counts what waits for what), they may just happen to be quicker.
        before = [r for r in own if r.at <= ready.at and r.resource not in ("sandboxes/status", "pods")]
        chain = longest_chain(before)
        chains.append(chain)
        assert len(own) <= IN_ALL and len(own) + len(events) <= WITH_EVENTS, shown
        assert len(refill) <= REFILL, shown
        # What says Ready comes after the commit has been answered.
        commit = next(r for r in own if r.resource == "sandboxes")
        assert commit.done <= ready.at and condition(claim)["status"] == "True", shown
        counts.append((len(chain), len(own), len(events), len(refill)))
        space.delete("SandboxClaim", name)
        space.wait_gone("Sandbox", box)
        settle(audit, mark, space.name)
    # Two writes that are sent together may arrive one behind the other (a connection has to be opened first), so a
    # claim may look as if it had waited once more; one that does wait does so each time.
    assert min(map(len, chains)) <= ONE_AFTER_ANOTHER, f"one after another: {chains}"
    figure(f"writes of a warm claim (one after another, in all, events, refill): {counts}")


def writes_for_a_deleted_claim(space, pool, audit):
    claim = space.ready_claim(pool=pool)
    mark = audit.mark()
    space.pool_ready(pool)
    settle(audit, mark, space.name)
    mark = audit.mark()
    space.delete("SandboxClaim", name_of(claim))
    space.wait_gone("Sandbox", claim["status"]["sandbox"]["name"])
    return tally(settle(audit, mark, space.name))


def test_the_end_of_a_claim(space, pool, audit):
    """Somebody deletes it: the garbage collector does the rest. It expires: status, then delete."""
    end = time.monotonic() + 90
    # For half a minute the garbage collector may not know new kinds, and the controller does its work.
    while (counted := writes_for_a_deleted_claim(space, pool, audit)) and time.monotonic() < end:
        assert set(counted) <= {"delete sandboxes", "delete pods"}, counted
    assert counted == {}
    mark = audit.mark()
    claim = space.ready_claim(pool=pool)
    space.pool_ready(pool)
    settle(audit, mark, space.name)
    mark = audit.mark()
    space.patch("SandboxClaim", name_of(claim), {"spec": {"lifecycle": {
        "shutdownTime": "2020-01-01T00:00:00Z", "shutdownPolicy": "Delete"}}})
    space.wait_gone("SandboxClaim", name_of(claim))
    counted = tally(settle(audit, mark, space.name))
    events = sum(n for what, n in counted.items() if what.endswith(" events"))
    assert {k: n for k, n in counted.items() if not k.endswith(" events")} == {
        "patch sandboxclaims/status": 1, "delete sandboxclaims": 1} and events <= 2


def test_a_full_pool_costs_nothing(space, pool, audit):
    """Nobody does anything: nothing is written."""
    space.pool_ready(pool)
    settle(audit, audit.mark(), space.name)
    mark = audit.mark()
    settle(audit, mark, space.name, quiet=5)
    assert [r for r in audit.since(mark, CONTROLLER, space.name) if r.verb not in ("list", "watch")] == []


@pytest.fixture(name="one", scope="module")
def one_fixture(raw, system):
    """One replica: reviews are cached in each."""
    return raw.with_(url=next(iter(system.addresses().values())))


def commands(one, box, audit, count=100):
    """Runs that many; (what the gateway asked for, seconds)."""
    mark, started, latencies = audit.mark(), time.monotonic(), []
    here = box.seen_by(one)
    for _ in range(count):
        begun = time.monotonic()
        assert here.run("true")["exit_code"] == 0
        latencies.append(time.monotonic() - begun)
    took = time.monotonic() - started
    records = [r for r in audit.since(mark, GATEWAY) if r.verb != "watch"]
    return tally(records), took, latencies, records


def check_commands(counted, took, patches):
    execs = sum(n for what, n in counted.items() if what.endswith(" pods/exec"))
    assert execs == 100
    assert counted.get("patch sandboxclaims", 0) == patches
    for review in REVIEWS:
        assert counted.get(review, 0) <= 1 + took // REVIEW_TTL
    rest = {what: n for what, n in counted.items()
            if not what.endswith(" pods/exec") and what not in REVIEWS and what != "patch sandboxclaims"}
    assert rest == {}, rest


def test_commands_on_a_claim_with_an_idle_timeout(raw, one, space, pool, audit, figure):
    box = create(raw, space.name, pool, shutdown_after_seconds=900)
    space.kube.annotate("SandboxClaim", space.name, box.claim, **{f"{OWN_PREFIX}idle-timeout-seconds": "600"})
    settle(audit, audit.mark(), space.name)
    mark = audit.mark()
    counted, took, latencies, records = commands(one, box, audit)
    assert took < 30, f"100 commands took {took:.1f} s"
    check_commands(counted, took, patches=1)
    stamped = space.get("SandboxClaim", box.claim)["metadata"]["annotations"]
    assert f"{OWN_PREFIX}last-activity" in stamped and f"{OWN_PREFIX}exec-lease" in stamped
    # And the controller has nothing to do with it.
    assert [r for r in audit.since(mark, CONTROLLER, space.name) if r.verb in WRITES] == []
    figure(f"100 commands in {took:.1f} s, p50 {statistics.median(latencies) * 1000:.0f} ms: {counted}")
    assert len(records) >= 101
    box.delete()


def test_commands_on_a_claim_without(raw, one, space, pool, audit):
    box = create(raw, space.name, pool, shutdown_after_seconds=900)
    settle(audit, audit.mark(), space.name)
    counted, took, *_ = commands(one, box, audit)
    check_commands(counted, took, patches=0)
    assert f"{OWN_PREFIX}last-activity" not in space.get("SandboxClaim", box.claim)["metadata"]["annotations"]
    box.delete()


def test_a_bad_token_costs_one_review(one, audit):
    """Asking again and again with the same one does not: a refusal is remembered, too."""
    bad = one.with_(token=one.token[:-4] + "AAAA")
    mark, started = audit.mark(), time.monotonic()
    for _ in range(20):
        assert bad.request("tools/list").status == 401
    took = time.monotonic() - started
    assert tally(audit.since(mark, GATEWAY)).get("create tokenreviews", 0) <= 1 + took // 5
