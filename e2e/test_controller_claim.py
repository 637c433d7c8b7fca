# SPDX-License-Identifier: Apache-2.0
"""Claims: warm and cold, what they carry to the pod, what refuses them, and what people see."""

import threading

import pytest
from kubernetes import client, watch

from support.kube import condition, controller_uid, is_ready, name_of, reason_is, uid_of
from support.space import container, unique

PREFIX = "agents.x-k8s.io/"
GROUP, VERSION, PLURAL = "extensions.agents.x-k8s.io", "v1beta1", "sandboxclaims"


@pytest.fixture(name="warm", scope="module")
def warm_fixture(space):
    space.template("box")
    space.pool("pool", "box", 3)
    space.pool("cold", "box", 0)
    return space.pool_ready("pool")


def test_warm(space, warm):
    name = unique("warm")
    space.claim(name, labels={f"{PREFIX}created-by": "python-client"})
    claim = space.wait_ready("SandboxClaim", name)
    box = space.get("Sandbox", claim["status"]["sandbox"]["name"])
    pod = space.get("Pod", name_of(box))
    assert name_of(box).startswith("pool-") and claim["metadata"]["annotations"][f"{PREFIX}sandbox-name"] == name_of(box)
    assert claim["status"]["sandbox"]["podIPs"] == box["status"]["podIPs"]
    assert controller_uid(box) == uid_of(claim) and len(box["metadata"]["ownerReferences"]) == 1
    labels = box["metadata"]["labels"]
    assert labels[f"{PREFIX}claim-uid"] == uid_of(claim)
    assert (labels[f"{PREFIX}launch-type"], labels[f"{PREFIX}created-by"]) == ("warm", "python-client")
    assert not {PREFIX + k for k in ("warm-pool-sandbox", "sandbox-template-hash", "sandbox-pod-template-hash")} & set(labels)
    template = box["spec"]["podTemplate"]["metadata"]
    assert "cluster-autoscaler.kubernetes.io/safe-to-evict" not in (template.get("annotations") or {})
    ready = condition(claim)
    assert (ready["reason"], ready["message"]) == ("DependenciesReady", "Pod is Ready")
    assert ready["observedGeneration"] == claim["metadata"]["generation"]
    # The pod is the one that waited, and shortly says whose it is.
    assert pod["metadata"]["creationTimestamp"] <= claim["metadata"]["creationTimestamp"]
    after = space.wait("Pod", name_of(box), "labelled", lambda p: f"{PREFIX}claim-uid" in p["metadata"]["labels"])
    assert uid_of(after) == uid_of(pod)
    assert after["metadata"]["labels"][f"{PREFIX}claim-uid"] == uid_of(claim)
    assert f"{PREFIX}warm-pool-sandbox" not in after["metadata"]["labels"]
    assert after["metadata"]["labels"][f"{PREFIX}created-by"] == "python-client"
    space.wait("SandboxClaim", name, "stamped", lambda c: {
        f"{PREFIX}controller-first-observed-at", f"{PREFIX}claim-first-ready-at"} <= set(c["metadata"]["annotations"]))
    assert space.kube.wait_event(space.name, "SandboxAdopted", name)["message"].endswith(f'"{name_of(box)}"')
    space.delete("SandboxClaim", name)
    space.wait_gone("Sandbox", name_of(box))
    space.wait_gone("Pod", name_of(box))
    assert warm


def test_cold(space, warm):
    name = unique("cold")
    space.claim(name, pool="cold")
    claim = space.wait_ready("SandboxClaim", name)
    box = space.get("Sandbox", name)
    assert claim["status"]["sandbox"]["name"] == name and controller_uid(box) == uid_of(claim)
    assert box["metadata"]["labels"][f"{PREFIX}launch-type"] == "cold"
    assert box["metadata"]["labels"][f"{PREFIX}claim-uid"] == uid_of(claim)
    assert f"{PREFIX}sandbox-name" not in claim["metadata"].get("annotations", {})
    pod = space.get("Pod", name)
    assert pod["metadata"]["labels"][f"{PREFIX}claim-uid"] == uid_of(claim)
    assert pod["spec"]["automountServiceAccountToken"] is False and pod["spec"]["dnsPolicy"] == "None"
    space.kube.wait_event(space.name, "SandboxProvisioned", name)
    space.delete("SandboxClaim", name)
    space.wait_gone("Pod", name)
    assert warm


def test_with_the_typed_client(space, warm):
    """The way programs use the API: CustomObjectsApi and Watch of the Python client."""
    api, name = client.CustomObjectsApi(space.kube.api_client), unique("typed")
    body = {"apiVersion": f"{GROUP}/{VERSION}", "kind": "SandboxClaim", "metadata": {"name": name},
            "spec": {"warmPoolRef": {"name": "pool"}}}
    created = api.create_namespaced_custom_object(GROUP, VERSION, space.name, PLURAL, body)
    version = created["metadata"]["resourceVersion"]
    stream, seen = watch.Watch(), None
    for event in stream.stream(api.list_namespaced_custom_object, GROUP, VERSION, space.name, PLURAL,
                               field_selector=f"metadata.name={name}", resource_version=version, timeout_seconds=30):
        if is_ready(event["object"]):
            seen = event["object"]
            stream.stop()
    assert seen and seen["status"]["sandbox"]["name"]
    api.delete_namespaced_custom_object(GROUP, VERSION, space.name, PLURAL, name)
    space.wait_gone("SandboxClaim", name)
    assert warm


def test_a_burst_shares_nothing(space, warm):
    """More claims than warm members, all at once: each gets a sandbox and a pod of its own."""
    space.pool_ready("pool")
    names = [unique("burst") for _ in range(9)]
    threads = [threading.Thread(target=space.claim, args=(n,)) for n in names]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    claims = [space.wait_ready("SandboxClaim", n, 90) for n in names]
    boxes = [c["status"]["sandbox"]["name"] for c in claims]
    assert len(set(boxes)) == len(names)
    pods = {name_of(p): p for p in space.list("Pod")}
    for claim, box in zip(claims, boxes):
        sandbox = space.get("Sandbox", box)
        assert controller_uid(sandbox) == uid_of(claim) and controller_uid(pods[box]) == uid_of(sandbox)
    assert len({uid_of(pods[b]) for b in boxes}) == len(names)
    owned = [b for b in space.list("Sandbox") if controller_uid(b) in map(uid_of, claims)]
    assert len(owned) == len(names), "a claim has more than one sandbox"
    assert sum(not b.startswith("burst-") for b in boxes) >= warm["spec"]["replicas"]
    for name in names:
        space.delete("SandboxClaim", name)
    space.wait_gone("Sandbox", *boxes)
    space.pool_ready("pool")


# ---- pod metadata

def test_additional_pod_metadata(space, warm):
    wanted = {"labels": {"sandbox.users.io/team": "red"},
              "annotations": {"note": "hello", "cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}}
    for pool in ("pool", "cold"):
        name = unique("meta")
        space.claim(name, pool=pool, additionalPodMetadata=wanted)
        claim = space.wait_ready("SandboxClaim", name)
        pod = space.wait("Pod", claim["status"]["sandbox"]["name"], "marked",
                         lambda p: p["metadata"]["labels"].get("sandbox.users.io/team") == "red")
        for key, value in wanted["annotations"].items():
            assert pod["metadata"]["annotations"][key] == value
        space.delete("SandboxClaim", name)
    assert warm


@pytest.mark.parametrize("metadata,said", [
    ({"labels": {"team": "red"}}, "team"),
    ({"labels": {"example.com/team": "red"}}, 'label domain "example.com" is not in the allowlist'),
    ({"labels": {"agents.x-k8s.io/claim-uid": "x"}}, "agents.x-k8s.io"),
    ({"labels": {"app": "sandbox-router"}}, "app"),
    ({"labels": {"sandbox.users.io/team": "no good"}}, "no good"),
    ({"annotations": {"agents.x-k8s.io/x": "1"}}, "agents.x-k8s.io"),
    ({"annotations": {"kubernetes.io/x": "1"}}, "kubernetes.io"),
])
def test_pod_metadata_that_is_refused(space, warm, metadata, said):
    name = unique("bad")
    space.claim(name, additionalPodMetadata=metadata)
    refused = space.wait("SandboxClaim", name, "refused", reason_is("InvalidMetadata"))
    assert said in condition(refused)["message"] and not refused["status"].get("sandbox")
    assert not [b for b in space.list("Sandbox") if controller_uid(b) == uid_of(refused)]
    space.delete("SandboxClaim", name)
    assert warm


def test_pod_metadata_against_the_templates(space):
    space.template("labelled", {"podTemplate": {
        "metadata": {"labels": {"sandbox.users.io/team": "blue"}}, "spec": {"containers": [container()]}}})
    space.pool("labelled", "labelled", 0)
    space.claim("against", pool="labelled", additionalPodMetadata={"labels": {"sandbox.users.io/team": "red"}})
    refused = space.wait("SandboxClaim", "against", "refused", reason_is("ReconcilerError"))
    assert 'metadata override conflict: label "sandbox.users.io/team"' in condition(refused)["message"]
    space.delete("SandboxClaim", "against")


# ---- what is missing, and comes later

def test_without_its_pool(space, warm):
    space.claim("early", pool="later")
    refused = space.wait("SandboxClaim", "early", "refused", reason_is("WarmPoolNotFound"))
    assert condition(refused)["message"] == 'SandboxWarmPool "later" not found'
    space.pool("later", "box", 0)
    space.wait_ready("SandboxClaim", "early")
    space.delete("SandboxClaim", "early")
    assert warm


def test_without_its_template(space):
    space.pool("hollow", "not-yet", 0)
    space.claim("waits", pool="hollow")
    refused = space.wait("SandboxClaim", "waits", "refused", reason_is("TemplateNotFound"))
    assert condition(refused)["message"] == 'SandboxTemplate "not-yet" not found'
    space.template("not-yet")
    space.wait_ready("SandboxClaim", "waits")
    space.delete("SandboxClaim", "waits")


def test_a_sandbox_of_that_name_is_there(space, warm):
    space.sandbox("taken")
    box = space.wait_ready("Sandbox", "taken")
    space.claim("taken", pool="cold")
    refused = space.wait("SandboxClaim", "taken", "refused", reason_is("ReconcilerError"))
    assert 'sandbox "taken" is not controlled by claim "taken"' in condition(refused)["message"]
    space.delete("SandboxClaim", "taken")
    space.wait_gone("SandboxClaim", "taken")
    assert uid_of(space.get("Sandbox", "taken")) == uid_of(box)
    space.delete("Sandbox", "taken")
    assert warm


VOLUMES = [{"metadata": {"name": "data"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]


@pytest.mark.parametrize("field,value,reason", [
    ("env", [{"name": "A", "value": "1"}], "EnvVarsInjectionRejected"),
    ("volumeClaimTemplates", VOLUMES, "VolumeClaimTemplatesError")])
def test_fields_that_the_template_does_not_allow(space, warm, field, value, reason):
    name = unique("field")
    space.claim(name, **{field: value})
    refused = space.wait("SandboxClaim", name, "refused", reason_is(reason))
    assert '"box"' in condition(refused)["message"] and not refused["status"].get("sandbox")
    space.delete("SandboxClaim", name)
    assert warm


@pytest.mark.parametrize("field,value", [("env", [{"name": "A", "value": "1"}]), ("volumeClaimTemplates", VOLUMES)])
def test_fields_that_are_not_carried_out_yet(space, warm, field, value):
    name = unique("field")
    space.template(name, envVarsInjectionPolicy="Allowed", volumeClaimTemplatesPolicy="Allowed")
    space.pool(name, name, 0)
    space.claim(name, pool=name, **{field: value})
    refused = space.wait("SandboxClaim", name, "refused", reason_is("ReconcilerError"))
    assert field in condition(refused)["message"]
    assert [c["type"] for c in refused["status"]["conditions"]] == ["Ready"]
    space.delete("SandboxClaim", name)
    assert warm


def test_the_api_server_refuses_the_pod(space, warm):
    """A quota that leaves no room: the claim says so, and is served when there is room."""
    name = unique("denied")
    with space.quota(pods=0):
        space.claim(name, pool="cold")
        refused = space.wait("SandboxClaim", name, "refused",
                             lambda c: "exceeded quota" in condition(c).get("message", ""))
        assert condition(refused)["reason"] == "ReconcilerError"
    space.wait_ready("SandboxClaim", name, 90)
    space.delete("SandboxClaim", name)
    assert warm


# ---- a long life

def test_suspended_and_resumed_underneath(space, warm):
    claim = space.ready_claim()
    name, box = name_of(claim), claim["status"]["sandbox"]["name"]
    space.patch("Sandbox", box, {"spec": {"operatingMode": "Suspended"}})
    space.wait("SandboxClaim", name, "suspended", reason_is("SandboxSuspended"))
    space.patch("Sandbox", box, {"spec": {"operatingMode": "Running"}})
    again = space.wait_ready("SandboxClaim", name)
    assert again["status"]["sandbox"]["name"] == box
    space.delete("SandboxClaim", name)
    assert warm


def test_a_new_claim_of_the_same_name(space, warm):
    """It never gets what belonged to its namesake."""
    first = space.ready_claim("again", pool="cold")
    pod = uid_of(space.get("Pod", "again"))
    space.delete("SandboxClaim", "again")
    space.wait_gone("SandboxClaim", "again")
    space.claim("again", pool="cold")
    second = space.wait_ready("SandboxClaim", "again", 90)
    assert uid_of(second) != uid_of(first)
    assert controller_uid(space.get("Sandbox", "again")) == uid_of(second)
    assert uid_of(space.get("Pod", "again")) != pod
    space.delete("SandboxClaim", "again")
    assert warm


def test_long_names(space, warm):
    name = "n" * 63
    space.claim(name, pool="cold")
    space.wait_ready("SandboxClaim", name)
    space.delete("SandboxClaim", name)
    assert warm


# ---- what people see

def test_what_get_and_describe_show(space, warm):
    claim = space.ready_claim("shown", lifecycle={"shutdownTime": "2096-01-31T12:00:00Z", "shutdownPolicy": "Delete"},
                              annotations={"k8s-agent-sandbox-mcp/created-by": "alice"})
    space.kube.wait_event(space.name, "SandboxAdopted", "shown")
    out = space.kube.kubectl("-n", space.name, "get", "sandboxclaims", "shown").splitlines()
    assert out[0].split() == ["NAME", "READY", "SANDBOX", "REASON", "EXPIRES", "LAST-ACTIVE", "CREATED-BY", "AGE"]
    cells = out[1].split()
    assert cells[:5] == ["shown", "True", claim["status"]["sandbox"]["name"], "DependenciesReady", "2096-01-31T12:00:00Z"]
    assert "alice" in cells
    told = space.kube.kubectl("-n", space.name, "describe", "sandboxclaim", "shown")
    events = told.partition("Events:")[2]
    assert "SandboxAdopted" in events and claim["status"]["sandbox"]["name"] in events
    space.delete("SandboxClaim", "shown")
    assert warm
