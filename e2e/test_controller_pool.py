# SPDX-License-Identifier: Apache-2.0
"""Warm pools: filling, refilling, scaling, and what a changed template does."""

import pytest

from support.kube import condition, controller_uid, is_ready, name_of, uid_of
from support.space import blueprint, container, pod_spec, unique

PREFIX = "agents.x-k8s.io/"


def members(space, pool):
    uid = uid_of(space.get("SandboxWarmPool", pool))
    return [b for b in space.list("Sandbox") if controller_uid(b) == uid]


@pytest.fixture(name="pool", scope="module")
def pool_fixture(space):
    """A full pool of two that tests may use up but not change."""
    space.template("box")
    space.pool("pool", "box", 2)
    return space.pool_ready("pool")


def test_members(space, pool):
    for box in members(space, "pool"):
        labels = box["metadata"]["labels"]
        assert name_of(box).startswith("pool-")
        assert labels[f"{PREFIX}launch-type"] == "warm" and labels[f"{PREFIX}created-by"] == "controller"
        assert f"{PREFIX}warm-pool-sandbox={labels[PREFIX + 'warm-pool-sandbox']}" == pool["status"]["selector"]
        assert box["metadata"]["annotations"][f"{PREFIX}sandbox-template-ref"] == "box"
        template = box["spec"]["podTemplate"]
        assert template["metadata"]["annotations"]["cluster-autoscaler.kubernetes.io/safe-to-evict"] == "true"
        assert is_ready(box)
        pod = space.get("Pod", name_of(box))
        assert set(pod["metadata"]["labels"]) == {PREFIX + key for key in (
            "sandbox-name-hash", "sandbox-template-ref-hash", "warm-pool-sandbox", "created-by")}
        assert pod["metadata"]["labels"][f"{PREFIX}warm-pool-sandbox"] == labels[f"{PREFIX}warm-pool-sandbox"]


def test_secure_defaults(space, pool):
    """Sandboxes made from a template get no token of the API server, and public DNS servers only."""
    assert pool
    for box in members(space, "pool"):
        spec = space.get("Pod", name_of(box))["spec"]
        assert spec["automountServiceAccountToken"] is False
        assert spec["dnsPolicy"] == "None" and spec["dnsConfig"]["nameservers"] == ["8.8.8.8", "1.1.1.1"]
        assert not any("serviceaccount" in m["mountPath"] for c in spec["containers"]
                       for m in c.get("volumeMounts") or [])


def test_refill(space, pool):
    claim = space.ready_claim()
    taken = claim["status"]["sandbox"]["name"]
    space.pool_ready("pool")
    assert taken not in map(name_of, members(space, "pool"))
    assert pool["spec"]["replicas"] == len(members(space, "pool"))
    space.delete("SandboxClaim", name_of(claim))
    # What was used once never returns to a pool.
    space.wait_gone("Sandbox", taken)
    space.wait_gone("Pod", taken)
    assert len(members(space, "pool")) == pool["spec"]["replicas"]


def test_a_member_that_somebody_deletes_is_replaced(space, pool):
    victim = name_of(members(space, "pool")[0])
    space.delete("Sandbox", victim)
    space.wait_gone("Sandbox", victim)
    space.pool_ready("pool")
    assert len(members(space, "pool")) == pool["spec"]["replicas"]


def test_look_alikes_are_not_taken_in(space, pool):
    """Labels of a pool on a sandbox that the pool does not own mean nothing."""
    labels = {k: v for k, v in members(space, "pool")[0]["metadata"]["labels"].items()}
    space.sandbox("pool-alike", labels=labels)
    space.wait_ready("Sandbox", "pool-alike")
    space.kube.stays("SandboxWarmPool", space.name, "two",
                     lambda pools: all(p["status"]["replicas"] == 2 for p in pools if name_of(p) == "pool"), 2)
    assert not space.get("Sandbox", "pool-alike")["metadata"].get("ownerReferences")
    claims = [space.ready_claim() for _ in range(3)]
    assert "pool-alike" not in [c["status"]["sandbox"]["name"] for c in claims]
    for claim in claims:
        space.delete("SandboxClaim", name_of(claim))
    space.delete("Sandbox", "pool-alike")
    space.pool_ready("pool")
    assert pool


def test_scaling(space):
    space.template("scaled")
    space.pool("scaled", "scaled", 1)
    space.pool_ready("scaled")
    keep = name_of(members(space, "scaled")[0])
    space.kube.kubectl("-n", space.name, "scale", "sandboxwarmpool/scaled", "--replicas=3")
    space.pool_ready("scaled", 3)
    scale = space.get("SandboxWarmPool", "scaled/scale")
    assert (scale["spec"]["replicas"], scale["status"]["replicas"]) == (3, 3)
    assert scale["status"]["selector"].startswith(f"{PREFIX}warm-pool-sandbox=")
    space.kube.kubectl("-n", space.name, "scale", "sandboxwarmpool/scaled", "--replicas=1")
    space.pool_ready("scaled", 1)
    # The newest go first.
    assert [name_of(b) for b in members(space, "scaled") if not b["metadata"].get("deletionTimestamp")] == [keep]
    space.kube.kubectl("-n", space.name, "scale", "sandboxwarmpool/scaled", "--replicas=0")
    empty = space.pool_ready("scaled", 0)
    assert empty["status"].get("observedGeneration") == empty["metadata"]["generation"]
    space.delete("SandboxWarmPool", "scaled")


def test_members_that_are_not_ready_go_first(space):
    space.template("mixed", blueprint())
    space.pool("mixed", "mixed", 1)
    space.pool_ready("mixed")
    ready = name_of(members(space, "mixed")[0])
    # From now on members can go to no node.
    spec = {"podTemplate": {"spec": pod_spec(nodeSelector={"nowhere": "1"})}}
    space.patch("SandboxTemplate", "mixed", {"spec": spec})
    space.patch("SandboxWarmPool", "mixed", {"spec": {"replicas": 3}})
    pool = space.wait("SandboxWarmPool", "mixed", "three, one ready",
                      lambda p: p["status"].get("replicas") == 3 and p["status"].get("readyReplicas") == 1)
    space.patch("SandboxWarmPool", "mixed", {"spec": {"replicas": 1}})
    space.wait("SandboxWarmPool", "mixed", "one", lambda p: p["status"].get("replicas") == 1)
    left = [b for b in members(space, "mixed") if not b["metadata"].get("deletionTimestamp")]
    assert [name_of(b) for b in left] == [ready] and pool
    space.delete("SandboxWarmPool", "mixed")


@pytest.mark.parametrize("strategy,replaced", [("Recreate", True), ("OnReplenish", False)])
def test_a_changed_template(space, strategy, replaced):
    name = f"roll-{strategy.lower()}"
    space.template(name)
    space.pool(name, name, 2, updateStrategy={"type": strategy})
    space.pool_ready(name)
    claim = space.ready_claim(pool=name)
    space.pool_ready(name)
    before = set(map(uid_of, members(space, name)))
    used = uid_of(space.sandbox_of(claim))
    # Metadata is no reason to replace anything.
    space.patch("SandboxTemplate", name, {"spec": {"podTemplate": {"metadata": {"labels": {"x": "1"}}}}})
    space.kube.stays("Sandbox", space.name, "the same members",
                     lambda boxes: before <= {uid_of(b) for b in boxes if not b["metadata"].get("deletionTimestamp")}, 1)
    env = [{**container(), "env": [{"name": "NEW", "value": "1"}]}]
    space.patch("SandboxTemplate", name, {"spec": {"podTemplate": {"spec": {"containers": env}}}})
    if replaced:
        uids = tuple(before)
        space.wait_gone("Sandbox", uids=uids)
        space.pool_ready(name)
        for box in members(space, name):
            assert box["spec"]["podTemplate"]["spec"]["containers"][0]["env"] == [{"name": "NEW", "value": "1"}]
    else:
        space.kube.stays("Sandbox", space.name, "the same members",
                         lambda boxes: before <= {uid_of(b) for b in boxes
                                                  if not b["metadata"].get("deletionTimestamp")}, 2)
    # What somebody uses is not touched.
    assert uid_of(space.sandbox_of(claim)) == used
    assert is_ready(space.get("SandboxClaim", name_of(claim)))
    space.delete("SandboxClaim", name_of(claim))
    space.delete("SandboxWarmPool", name)


def test_a_pool_before_its_template(space):
    space.pool("early", "comes-later", 1)
    space.kube.stays("Sandbox", space.name, "without members",
                     lambda boxes: not any(name_of(b).startswith("early-") for b in boxes), 1)
    space.template("comes-later")
    space.pool_ready("early")
    space.delete("SandboxWarmPool", "early")


def test_deleting_a_pool(space):
    name = unique("gone")
    space.template(name)
    space.pool(name, name, 2)
    space.pool_ready(name)
    claim = space.ready_claim(pool=name)
    used = claim["status"]["sandbox"]["name"]
    space.pool_ready(name)
    boxes = [name_of(b) for b in members(space, name)]
    space.delete("SandboxWarmPool", name)
    space.wait_gone("Sandbox", *boxes)
    space.wait_gone("Pod", *boxes)
    assert is_ready(space.get("SandboxClaim", name_of(claim))), "a used sandbox went with the pool"
    assert is_ready(space.get("Sandbox", used))
    space.delete("SandboxClaim", name_of(claim))


def test_a_quota_is_said_and_got_over(space):
    """Creations that the API server refuses: the pool keeps trying and is full when it may."""
    name = unique("quota")
    space.template(name)
    with space.quota(pods=len(space.list("Pod")) + 1):
        space.pool(name, name, 3)
        space.kube.wait_all("Sandbox", space.name, "refused", lambda found: any(
            "exceeded quota" in condition(b).get("message", "") for b in found))
    space.pool_ready(name, timeout=120)
    space.delete("SandboxWarmPool", name)
