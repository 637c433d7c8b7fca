# SPDX-License-Identifier: Apache-2.0
"""Both programs are killed at every write of a claim's life, and at random under load. Nothing is
lost, nothing leaks.

They run outside the cluster, through proxies that see each of their writes, and are started again at
once. SANDBOX_KILL_SEED repeats the instants of a run; they are printed with a failure."""

import collections
import concurrent.futures
import http.client
import os
import random
import threading
import time

import pytest

from support.daemons import Controller, Gateway, account_kubeconfig, cluster_ca
from support.kube import controller_uid, is_ready, name_of, uid_of
from support.mcp_raw import Box, Raw, text_of
from support.proxy import ApiProxy, Gate
from support.space import BUSYBOX_IMAGE, OWN_PREFIX
from support.system import CONTROLLER, GATEWAY, NAMESPACE

POOL = 3
KILLS = 50
LOST = (OSError, http.client.HTTPException, AssertionError, ValueError)


class KillGate(Gate):
    """Kills the daemon at a write, before or after its answer, once. A write is known by what it is
    and the how-manieth of its kind since arm(): which of two that run side by side comes first may
    differ from life to life."""

    def __init__(self):
        self.daemon = None
        self.lock = threading.Lock()
        self.phase, self.target = None, None
        self.counts, self.seen = collections.Counter(), []
        self.killed = threading.Event()

    def arm(self, phase=None, target=None):
        with self.lock:
            self.phase, self.target = phase, target
            self.counts, self.seen = collections.Counter(), []
            self.killed.clear()

    def before(self, seen):
        with self.lock:
            self.counts[seen.what] += 1
            seen.label = (seen.what, self.counts[seen.what])
            if not self.killed.is_set():
                self.seen.append(seen.label)
        return True

    def meets(self, phase, seen):
        return self.phase == phase and self.target == seen.label and not self.killed.is_set()

    def die(self):
        self.daemon.kill()
        self.daemon.spawn()
        self.killed.set()

    def between(self, seen):
        if self.meets("before", seen):
            self.die()
            return False
        return True

    def after(self, seen):
        if self.meets("after", seen):
            self.die()


def kill_at_every_write(gate, life):
    """{phase: the writes it was killed at}. Lives are lived until each write that was seen in one
    has been died at, or has not come again."""
    gate.arm()
    life()
    died = {"before": [], "after": []}
    for phase, done in died.items():
        todo, tries = list(dict.fromkeys(gate.seen)), collections.Counter()
        while todo:
            target = todo.pop(0)
            gate.arm(phase, target)
            life()
            if gate.killed.is_set():
                done.append(target)
            elif tries[target] == 0:
                tries[target] += 1
                todo.append(target)
            todo += [s for s in dict.fromkeys(gate.seen) if s not in todo + done and not tries[s]]
            assert len(done) + len(todo) < 40, f"a life never ends: {gate.seen}"
        gate.arm()
        life()
    gate.arm()
    return died


class Rig:
    """One daemon behind its proxy."""

    def __init__(self, kube, folder, kind, *arguments):
        account = CONTROLLER if kind is Controller else GATEWAY
        folder.mkdir()
        self.gate = KillGate()
        self.proxy = ApiProxy(kube.host, cluster_ca(kube), folder, self.gate)
        # pylint: disable=unnecessary-dunder-call
        self.proxy.__enter__()
        config = account_kubeconfig(kube, folder / "kubeconfig", NAMESPACE, account, server=self.proxy.url,
                                    ca=self.proxy.ca)
        self.daemon = self.gate.daemon = kind(config, folder, *arguments)

    def close(self):
        self.daemon.stop()
        self.proxy.__exit__()


@pytest.fixture(scope="module", name="rigs")
def rigs_fixture(kube, system, space, tmp_path_factory):
    """(controller, gateway); the deployed controller rests meanwhile."""
    folder = tmp_path_factory.mktemp("kill")
    system.scale(CONTROLLER, 0)
    rigs = []
    try:
        rigs.append(Rig(kube, folder / "controller", Controller, "--orphan-sweep-interval=5s"))
        rigs.append(Rig(kube, folder / "gateway", Gateway))
        space.template("box", image=BUSYBOX_IMAGE)
        space.pool("pool", "box", POOL)
        space.pool_ready("pool")
        yield rigs
    finally:
        for rig in rigs:
            rig.close()
        system.scale(CONTROLLER, 1)


@pytest.fixture(scope="module", name="agent")
def agent_fixture(rigs, space):
    """Calls the gateway that is killed; a call that was lost is made again."""
    return Agent(Raw(rigs[1].daemon.url, space.user(), timeout=60), space.name)


class Agent:
    def __init__(self, raw, namespace):
        self.raw = raw
        self.namespace = namespace
        self.lost = 0

    def call(self, tool, timeout=90, **arguments):
        """The result of the first call that was answered, and not with "try again"."""
        end = time.monotonic() + timeout
        while True:
            try:
                result = self.raw.try_call(tool, namespace=self.namespace, **arguments)
                if not (result.get("isError") and "may succeed later" in text_of(result)):
                    return result
                problem = text_of(result)
            except LOST as error:
                problem = repr(error)
            self.lost += 1
            assert time.monotonic() < end, f"{tool} has no answer for {timeout} s, at last: {problem}"
            time.sleep(0.05)

    def create(self, ttl):
        result = self.call("create_sandbox", warmpool="pool", shutdown_after_seconds=ttl)
        assert not result.get("isError"), text_of(result)
        return Box(self.raw, self.namespace, result["structuredContent"]["sandbox_claim_name"])

    def run(self, box, command):
        """A command that may be repeated; the output of the time it ran to its end."""
        result = self.call("execute_command", sandbox_claim_name=box.claim, command=command)
        assert not result.get("isError"), text_of(result)
        done = result["structuredContent"]
        assert done["exit_code"] == 0 and done["ended"] == "exited", done
        return done["stdout"]

    def delete(self, box):
        result = self.call("delete_sandbox", sandbox_claim_name=box.claim)
        # Where the answer to a deletion was lost, the next one finds nothing.
        assert not result.get("isError") or "is not found" in text_of(result), text_of(result)


def check_nothing_leaks(space, timeout=60):
    """No claim is left, the pool is full, and there is nothing but its members and their pods."""
    space.kube.wait_empty("SandboxClaim", space.name, timeout)
    space.pool_ready("pool", timeout=timeout)
    pool = uid_of(space.get("SandboxWarmPool", "pool"))

    def members_only(boxes):
        return len(boxes) == POOL and all(controller_uid(b) == pool and is_ready(b) for b in boxes)

    boxes = space.kube.wait_all("Sandbox", space.name, "the members alone", members_only, timeout)
    owners = {uid_of(b) for b in boxes}
    space.kube.wait_all("Pod", space.name, "a pod each", lambda pods: len(pods) == POOL and {
        controller_uid(p) for p in pods} == owners, timeout)


# ---- at every write

def whole_life(agent, space):
    """Created through the gateway, used, and ended by time, which the controller carries out."""
    box = agent.create(600)
    assert agent.run(box, "echo kept > /tmp/file && cat /tmp/file") == "kept\n"
    space.patch("SandboxClaim", box.claim, {"spec": {"lifecycle": {"shutdownTime": "2020-01-01T00:00:00Z"}}})
    space.wait_gone("SandboxClaim", box.claim)


def test_controller_at_every_write(rigs, agent, space, figure):
    def life():
        whole_life(agent, space)
        check_nothing_leaks(space)

    died = kill_at_every_write(rigs[0].gate, life)
    for phase, writes in died.items():
        # Transfer, both statuses, the claim's annotations, the pod; refill; and the end.
        assert {"PATCH sandboxes", "PATCH sandboxclaims", "PATCH sandboxclaims/status", "PATCH pods", "POST sandboxes",
                "POST pods", "PATCH sandboxes/status", "DELETE sandboxclaims"} <= {w for w, _ in writes}, (phase, writes)
    figure(f"controller killed before {len(died['before'])} and after {len(died['after'])} answers to writes")


def gateway_life(agent, space):
    """All that the gateway writes: the claim, the activity, the deletion."""
    # Where the answer is lost, the caller does not know the claim's name: its time ends it.
    box = agent.create(15)
    space.kube.annotate("SandboxClaim", space.name, box.claim, **{f"{OWN_PREFIX}idle-timeout-seconds": "600"})
    end = time.monotonic() + 10
    while not activity(space, box):
        assert agent.run(box, "echo kept > /tmp/file && cat /tmp/file") == "kept\n"
        assert time.monotonic() < end, "no activity is recorded"
    assert agent.run(box, "cat /tmp/file") == "kept\n"
    agent.delete(box)


def activity(space, box):
    claim = space.get("SandboxClaim", box.claim)
    return claim["metadata"]["annotations"].get(f"{OWN_PREFIX}last-activity")


def test_gateway_at_every_write(rigs, agent, space, figure):
    died = kill_at_every_write(rigs[1].gate, lambda: gateway_life(agent, space))
    for phase, writes in died.items():
        assert {"POST sandboxclaims", "PATCH sandboxclaims", "DELETE sandboxclaims"} <= {w for w, _ in writes}, (
            phase, writes)
    check_nothing_leaks(space)
    figure(f"gateway killed before {len(died['before'])} and after {len(died['after'])} answers to writes")


# ---- at random, under load

class Load:
    """Agents that create, use and delete until told to stop."""

    def __init__(self, agent, space, owned):
        self.agent = agent
        self.space = space
        self.owned = owned
        self.stop = threading.Event()
        self.lives = 0

    def run(self, number):
        while not self.stop.is_set():
            box = self.agent.create(300)
            claim = self.space.find("SandboxClaim", box.claim)
            # A claim that was answered for is there, until its time is over.
            assert claim is not None, f"{box.claim} is lost"
            sandbox = claim["status"]["sandbox"]["name"]
            assert self.owned.setdefault(sandbox, box.claim) == box.claim, f"{sandbox} was given away twice"
            word = f"{number}-{self.lives}-{box.claim}"
            self.agent.run(box, f"echo {word} > /tmp/word")
            for _ in range(3):
                assert self.agent.run(box, "cat /tmp/word") == f"{word}\n", "a sandbox in use was exchanged"
            self.agent.delete(box)
            self.lives += 1


def test_at_random_instants_under_load(rigs, agent, space, figure):
    seed = int(os.environ.get("SANDBOX_KILL_SEED", random.SystemRandom().randrange(1 << 32)))
    print(f"SANDBOX_KILL_SEED={seed}")
    dice = random.Random(seed)
    instants = sorted((dice.uniform(0, KILLS * 0.8), which) for which in (0, 1) for _ in range(KILLS))
    load, started, pause = Load(agent, space, {}), time.monotonic(), threading.Event()
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        workers = [pool.submit(load.run, n) for n in range(3)]
        try:
            for instant, which in instants:
                pause.wait(max(0, started + instant - time.monotonic()))
                rigs[which].daemon.kill()
                rigs[which].daemon.spawn()
                for worker in workers:
                    assert not worker.done(), worker.exception()
        finally:
            load.stop.set()
        for worker in workers:
            worker.result(timeout=120)
    for rig in rigs:
        rig.daemon.wait_ready()
    # Claims that nobody knows of, since the answer was lost, have an end; here it comes now.
    left = space.list("SandboxClaim")
    for claim in left:
        assert claim["spec"]["lifecycle"]["shutdownPolicy"] == "Delete" and claim["spec"]["lifecycle"]["shutdownTime"]
        space.patch("SandboxClaim", name_of(claim), {"spec": {"lifecycle": {"shutdownTime": "2020-01-01T00:00:00Z"}}})
    check_nothing_leaks(space, timeout=90)
    assert load.lives >= 3 and agent.lost > 0, f"{load.lives} lives, {agent.lost} calls lost: that was no test"
    writes = [len(rig.proxy.writes()) for rig in rigs]
    figure(f"{KILLS} kills of each at random instants (seed {seed}): {load.lives} lives under load, {agent.lost} calls "
           f"made again; writes in all: controller {writes[0]}, gateway {writes[1]}")
