# SPDX-License-Identifier: Apache-2.0
"""What nobody owns any more is collected; what somebody may still want is not."""

import pytest

from support.daemons import Controller, account_kubeconfig
from support.kube import controller_uid, is_ready, name_of, uid_of
from support.space import blueprint, container, owner_reference, unique
from support.system import CONTROLLER, NAMESPACE

MANAGER = "sandbox-controller"
PREFIX = "agents.x-k8s.io/"
PATIENCE = 60


@pytest.fixture(name="warm", scope="module")
def warm_fixture(space):
    space.template("box")
    space.pool("pool", "box", 2)
    space.pool("cold", "box", 0)
    space.pool_ready("pool")


def orphan(space, kind, name):
    """Deletes it and leaves what it owns."""
    space.delete(kind, name, propagation="Orphan")
    space.wait_gone(kind, name)


@pytest.mark.parametrize("pool", ["pool", "cold"])
def test_of_a_claim(space, warm, pool):
    assert warm is None
    claim = space.ready_claim(pool=pool)
    box = claim["status"]["sandbox"]["name"]
    space.wait("Pod", box, "labelled", lambda p: f"{PREFIX}claim-uid" in p["metadata"]["labels"])
    orphan(space, "SandboxClaim", name_of(claim))
    space.wait_gone("Sandbox", box, timeout=PATIENCE)
    space.wait_gone("Pod", box)
    # It says when, why and by whom.
    told = [e for e in space.events(box, "Sandbox") if "orphan" in (e["reason"] + e["message"]).lower()]
    assert told and "sandbox-controller" in str(told[0].get("source")) + str(told[0].get("reportingComponent"))
    space.pool_ready("pool")


def test_of_a_pool(space, warm):
    assert warm is None
    name = unique("lost")
    space.pool(name, "box", 2)
    space.pool_ready(name)
    uid = uid_of(space.get("SandboxWarmPool", name))
    boxes = [name_of(b) for b in space.list("Sandbox")
             if any(o["uid"] == uid for o in b["metadata"].get("ownerReferences") or [])]
    assert len(boxes) == 2
    orphan(space, "SandboxWarmPool", name)
    space.wait_gone("Sandbox", *boxes, timeout=PATIENCE)
    space.wait_gone("Pod", *boxes)


def test_of_a_sandbox_from_a_template(space, warm):
    """The pod of a sandbox that is gone, with its claim still there: the pod goes, the claim gets another."""
    assert warm is None
    claim = space.ready_claim()
    box = claim["status"]["sandbox"]["name"]
    pod = uid_of(space.get("Pod", box))
    orphan(space, "Sandbox", box)
    space.wait_gone("Pod", uids=(pod,), timeout=PATIENCE)
    again = space.wait("SandboxClaim", name_of(claim), "Ready with another",
                       lambda c: is_ready(c) and c["status"]["sandbox"]["name"] != box, 90)
    assert uid_of(space.get("Pod", again["status"]["sandbox"]["name"])) != pod
    space.delete("SandboxClaim", name_of(claim))
    space.pool_ready("pool")


def test_of_a_sandbox_that_its_claim_makes_again(space, warm):
    """A cold claim's next sandbox has the same name: it takes over the pod that was left for that name."""
    assert warm is None
    claim = space.ready_claim(pool="cold")
    name = name_of(claim)
    box, pod = uid_of(space.get("Sandbox", name)), uid_of(space.get("Pod", name))
    space.delete("Sandbox", name, propagation="Orphan")
    again = space.wait("Sandbox", name, "another", lambda b: uid_of(b) != box and is_ready(b))
    taken = space.wait("Pod", name, "owned", lambda p: controller_uid(p) == uid_of(again))
    assert uid_of(taken) == pod
    space.delete("SandboxClaim", name)


def stays_there(space, kind, name, seconds=6):
    space.kube.stays(kind, space.name, "there", lambda found: any(
        name_of(o) == name and not o["metadata"].get("deletionTimestamp") for o in found), seconds)


def test_of_a_bare_sandbox(space, warm):
    """Somebody may have left its pod to be adopted: it is reported, and stays."""
    assert warm is None
    name = unique("bare")
    space.sandbox(name)
    space.wait_ready("Sandbox", name)
    orphan(space, "Sandbox", name)
    stays_there(space, "Pod", name)
    space.delete("Pod", name)


def planted_sandbox(space, name, manager, uid="11111111-2222-3333-4444-555555555555", suspended=False):
    spec = {**blueprint(), **({"operatingMode": "Suspended"} if suspended else {})}
    labels = {f"{PREFIX}claim-uid": uid, f"{PREFIX}sandbox-template-ref-hash": "0"}
    space.create("Sandbox", name, spec, labels=labels, manager=manager)


def test_planted_by_a_controller(space, warm):
    assert warm is None
    planted_sandbox(space, "planted", MANAGER)
    space.wait_gone("Sandbox", "planted", timeout=PATIENCE)


def test_planted_by_a_user(space, warm):
    """No controller made it: it is only reported."""
    assert warm is None
    planted_sandbox(space, "users-own", "kubectl")
    stays_there(space, "Sandbox", "users-own")
    space.delete("Sandbox", "users-own")


def test_with_a_living_claim(space, warm):
    """Its owner reference was stripped, its claim is there: it is no orphan."""
    assert warm is None
    claim = space.ready_claim(pool="cold")
    planted_sandbox(space, "stripped", MANAGER, uid_of(claim), suspended=True)
    stays_there(space, "Sandbox", "stripped")
    space.delete("Sandbox", "stripped")
    space.delete("SandboxClaim", name_of(claim))


def test_a_pod_that_a_living_sandbox_owns(space, warm):
    assert warm is None
    name = unique("owned")
    space.sandbox(name, {**blueprint(), "operatingMode": "Suspended"})
    box = space.wait("Sandbox", name, "seen", lambda b: b.get("status"))
    labels = {f"{PREFIX}sandbox-template-ref-hash": "0", f"{PREFIX}sandbox-name-hash": "0"}
    space.create("Pod", "child", {"terminationGracePeriodSeconds": 1, "containers": [container()]}, labels=labels,
                 owners=[owner_reference(space.get("SandboxTemplate", "box"))], manager=MANAGER)
    stays_there(space, "Pod", "child")
    space.delete("Pod", "child")
    space.delete("Sandbox", name_of(box))


def test_from_a_time_without_a_controller(space, warm, system, tmp_path):
    """Orphaned while nobody looked: the next start finds it."""
    assert warm is None
    claim, lost = space.ready_claim(pool="cold"), unique("lost")
    space.pool(lost, "box", 1)
    space.pool_ready(lost)
    member, = [name_of(b) for b in space.list("Sandbox") if name_of(b).startswith(lost)]
    system.scale(CONTROLLER, 0)
    try:
        orphan(space, "SandboxClaim", name_of(claim))
        orphan(space, "SandboxWarmPool", lost)
        # Also what was to end meanwhile ends at once.
        space.kube.stays("Sandbox", space.name, "all there", lambda found: {name_of(claim), member} <= set(
            map(name_of, found)), 1)
    finally:
        system.scale(CONTROLLER, 1)
    space.wait_gone("Sandbox", name_of(claim), member, timeout=PATIENCE)
    space.wait_gone("Pod", name_of(claim), member)
    assert tmp_path


def test_only_some_namespaces(space, warm, system, kube, tmp_path):
    """--namespaces: rights in one namespace are enough, and nothing happens in another."""
    assert warm is None
    elsewhere = unique("e2e-elsewhere")
    kube.create("Namespace", None, elsewhere)
    account = unique("narrow")
    space.create("ServiceAccount", account)
    space.create("RoleBinding", account, roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                                                  "name": CONTROLLER},
                 subjects=[{"kind": "ServiceAccount", "name": account, "namespace": space.name}])
    config = account_kubeconfig(kube, tmp_path / "kubeconfig", space.name, account)
    system.scale(CONTROLLER, 0)
    try:
        with Controller(config, tmp_path, f"--namespaces={space.name}") as controller:
            kube.create("Sandbox", elsewhere, "outside", blueprint())
            space.sandbox("inside")
            space.wait_ready("Sandbox", "inside")
            claim = space.ready_claim()
            assert kube.find("Pod", elsewhere, "outside") is None
            assert not kube.get("Sandbox", elsewhere, "outside").get("status")
            assert controller.alive()
            space.delete("SandboxClaim", name_of(claim))
            space.delete("Sandbox", "inside")
    finally:
        system.scale(CONTROLLER, 1)
    kube.wait_ready("Sandbox", elsewhere, "outside")
    kube.delete("Namespace", None, elsewhere)
    assert NAMESPACE
