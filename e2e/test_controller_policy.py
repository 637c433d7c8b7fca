# SPDX-License-Identifier: Apache-2.0
"""The NetworkPolicy of a template: what it says, that it is kept, and whose it is."""

import pytest

from support.kube import controller_uid, name_of, uid_of
from support.space import blueprint, unique

HASH = "agents.x-k8s.io/sandbox-template-ref-hash"


@pytest.fixture(name="template")
def template_fixture(space):
    name = unique("t")
    yield space.template(name)
    space.delete("SandboxTemplate", name)


def policy_of(space, template, what="there", predicate=lambda p: True):
    return space.wait("NetworkPolicy", f"{name_of(template)}-network-policy", what, predicate)


def test_default(space, template):
    policy = policy_of(space, template)
    labelled = space.wait("SandboxTemplate", name_of(template), "labelled",
                          lambda t: HASH in (t["metadata"].get("labels") or {}))
    assert controller_uid(policy) == uid_of(template)
    assert policy["spec"] == {
        "podSelector": {"matchLabels": {HASH: labelled["metadata"]["labels"][HASH]}},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [{"from": [{"namespaceSelector": {"matchLabels": {
            "kubernetes.io/metadata.name": "agent-sandbox-system"}},
            "podSelector": {"matchLabels": {"app": "sandbox-router"}}}]}],
        "egress": [{"to": [
            {"ipBlock": {"cidr": "0.0.0.0/0", "except": ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16",
                                                         "169.254.0.0/16"]}},
            {"ipBlock": {"cidr": "::/0", "except": ["fc00::/7", "fe80::/10"]}}]}]}


def test_it_selects_the_pods(space, template):
    space.pool(name_of(template), name_of(template), 1)
    space.pool_ready(name_of(template))
    claim = space.ready_claim(pool=name_of(template))
    policy = policy_of(space, template)
    wanted = policy["spec"]["podSelector"]["matchLabels"]
    pod = space.get("Pod", claim["status"]["sandbox"]["name"])
    assert wanted.items() <= pod["metadata"]["labels"].items()
    space.delete("SandboxClaim", name_of(claim))
    space.delete("SandboxWarmPool", name_of(template))


def test_the_gateway_is_let_in(space, template, system):
    """The peer of the default policy is the gateway's own label and namespace."""
    peer = policy_of(space, template)["spec"]["ingress"][0]["from"][0]
    for deployment in [system.kube.get("Deployment", "agent-sandbox-system", "sandbox-gateway")]:
        labels = deployment["spec"]["template"]["metadata"]["labels"]
        assert peer["podSelector"]["matchLabels"].items() <= labels.items()
        assert deployment["metadata"]["namespace"] in peer["namespaceSelector"]["matchLabels"].values()


@pytest.mark.parametrize("custom", [{}, {"ingress": [{"from": [{"podSelector": {"matchLabels": {"a": "b"}}}]}]},
                                    {"egress": [{"ports": [{"protocol": "TCP", "port": 443}]}]}])
def test_custom(space, custom):
    name = unique("custom")
    template = space.template(name, networkPolicy=custom)
    spec = policy_of(space, template)["spec"]
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    assert {k: spec.get(k) or [] for k in ("ingress", "egress")} == {k: custom.get(k, []) for k in ("ingress", "egress")}
    # With rules of their own, the sandboxes use the cluster's DNS.
    space.pool(name, name, 0)
    claim = space.ready_claim(pool=name)
    assert space.get("Pod", name_of(claim))["spec"]["dnsPolicy"] == "ClusterFirst"
    space.delete("SandboxClaim", name_of(claim))
    space.delete("SandboxTemplate", name)


def test_drift_is_repaired(space, template):
    before = policy_of(space, template)
    space.patch("NetworkPolicy", name_of(before), {"spec": {"egress": []}})
    policy_of(space, template, "repaired", lambda p: p["spec"].get("egress") == before["spec"]["egress"])
    space.delete("NetworkPolicy", name_of(before))
    again = policy_of(space, template, "made again", lambda p: uid_of(p) != uid_of(before))
    assert again["spec"] == before["spec"]


def test_unmanaged(space, template):
    policy = policy_of(space, template)
    space.patch("SandboxTemplate", name_of(template), {"spec": {"networkPolicyManagement": "Unmanaged"}})
    space.wait_gone("NetworkPolicy", name_of(policy))
    space.patch("SandboxTemplate", name_of(template), {"spec": {"networkPolicyManagement": "Managed"}})
    policy_of(space, template)


def test_one_of_somebody_else(space):
    name = unique("foreign")
    spec = {"podSelector": {"matchLabels": {"mine": "1"}}, "policyTypes": ["Ingress"]}
    before = space.create("NetworkPolicy", f"{name}-network-policy", spec)
    template = space.template(name, blueprint())
    space.wait("SandboxTemplate", name, "labelled", lambda t: HASH in (t["metadata"].get("labels") or {}))
    space.kube.stays("NetworkPolicy", space.name, "as it was", lambda found: all(
        p["spec"] == before["spec"] and not p["metadata"].get("ownerReferences") for p in found
        if name_of(p) == name_of(before)), 2)
    space.delete("SandboxTemplate", name_of(template))
    space.wait_gone("SandboxTemplate", name)
    assert uid_of(space.get("NetworkPolicy", name_of(before))) == uid_of(before)
    space.delete("NetworkPolicy", name_of(before))


def test_it_goes_with_its_template(space):
    name = unique("going")
    policy = policy_of(space, space.template(name))
    space.delete("SandboxTemplate", name)
    space.wait_gone("NetworkPolicy", name_of(policy))
