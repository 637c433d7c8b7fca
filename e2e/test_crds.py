# SPDX-License-Identifier: Apache-2.0
"""The four kinds and the roles, as a real API server takes them. Needs KUBECONFIG.

Nearly all requests are dry runs: they pass defaulting, validation and printing as any other, and
leave nothing behind that a running controller could react to.
"""
import copy
import json
import os
import pathlib
import subprocess
import uuid
from urllib.parse import urlencode

import pytest
import yaml
from kubernetes import client, config

ROOT = pathlib.Path(__file__).resolve().parents[1]
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
NOW = "2020-01-31T12:00:00Z"
LATER = "2096-01-31T12:00:00Z"

GROUPS = {"Sandbox": "agents.x-k8s.io"}
PLURALS = {"Sandbox": "sandboxes", "SandboxClaim": "sandboxclaims",
           "SandboxTemplate": "sandboxtemplates", "SandboxWarmPool": "sandboxwarmpools"}


def group(kind):
    return GROUPS.get(kind, "extensions.agents.x-k8s.io")


def kubectl(*arguments, text=None):
    return subprocess.run(["kubectl", *arguments], input=text, capture_output=True, text=True,
                          timeout=120, check=False)


def kubectl_ok(*arguments, text=None):
    run = kubectl(*arguments, text=text)
    assert run.returncode == 0, f"kubectl {' '.join(arguments)}: {run.stderr}"
    return run.stdout


class Refused(Exception):
    """The API server's no, with its HTTP status and message."""

    def __init__(self, status, message):
        super().__init__(f"{status}: {message}")
        self.status = status
        self.message = message


class Api:
    """Plain requests for our kinds, in a namespace of the test's own."""

    def __init__(self, api, namespace):
        self.api = api
        self.namespace = namespace

    def path(self, kind, name="", sub=""):
        parts = ["/apis", group(kind), "v1beta1/namespaces", self.namespace, PLURALS[kind], name, sub]
        return "/".join(part for part in parts if part)

    def request(self, method, path, body=None, accept="application/json",
                content="application/json", **query):
        headers = {"Accept": accept, "Content-Type": content}
        for setting in self.api.configuration.auth_settings().values():
            headers[setting["key"]] = setting["value"]
        url = self.api.configuration.host + path + ("?" + urlencode(query) if query else "")
        answer = self.api.rest_client.pool_manager.request(
            method, url, headers=headers, body=None if body is None else json.dumps(body))
        document = json.loads(answer.data)
        if answer.status >= 300:
            raise Refused(answer.status, document.get("message", ""))
        return document

    def create(self, kind, spec, dry=True, **metadata):
        body = {"apiVersion": f"{group(kind)}/v1beta1", "kind": kind,
                "metadata": {"name": "x", **metadata}}
        if spec is not None:
            body["spec"] = spec
        query = {"dryRun": "All"} if dry else {}
        return self.request("POST", self.path(kind), body, **query)

    def patch(self, kind, name, body, sub="", **options):
        options.setdefault("dryRun", "All")
        return self.request("PATCH", self.path(kind, name, sub), body,
                            content="application/merge-patch+json", **options)

    def refused(self, *arguments, **options):
        """The API server's reason for not creating this."""
        with pytest.raises(Refused) as error:
            self.create(*arguments, **options)
        assert error.value.status == 422, error.value
        return error.value.message


@pytest.fixture(scope="module", name="api")
def api_fixture():
    kubectl_ok("apply", "--server-side", "-k", str(ROOT / "crds"))
    for kind, plural in PLURALS.items():
        kubectl_ok("wait", "--for=condition=Established", "--timeout=60s",
                   f"crd/{plural}.{group(kind)}")
    config.load_kube_config(os.environ["KUBECONFIG"])
    core = client.CoreV1Api()
    namespace = f"test-crds-{uuid.uuid4().hex[:8]}"
    core.create_namespace({"metadata": {"name": namespace}})
    yield Api(client.ApiClient(), namespace)
    core.delete_namespace(namespace)


POD = {"containers": [{"name": "main", "image": "img"}]}
BLUEPRINT = {"podTemplate": {"spec": POD}}
VOLUME = {"metadata": {"name": "data"},
          "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
SPECS = {"Sandbox": BLUEPRINT, "SandboxTemplate": BLUEPRINT,
         "SandboxClaim": {"warmPoolRef": {"name": "p"}},
         "SandboxWarmPool": {"sandboxTemplateRef": {"name": "t"}}}


def with_pod(**fields):
    return {"podTemplate": {"spec": {**copy.deepcopy(POD), **fields}}}


def with_container(**fields):
    return {"podTemplate": {"spec": {"containers": [{"name": "main", "image": "img", **fields}]}}}


# ---- installing

@pytest.mark.parametrize("kind", PLURALS)
def test_accepted_and_structural(api, kind):
    crd = api.request("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
                             f"{PLURALS[kind]}.{group(kind)}")
    conditions = {c["type"]: c["status"] for c in crd["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}
    assert crd["status"]["storedVersions"] == ["v1beta1"]
    assert crd["spec"]["conversion"] == {"strategy": "None"}


def test_applying_again_changes_nothing(api):
    def versions():
        return {crd["metadata"]["name"]: crd["metadata"]["resourceVersion"]
                for crd in (api.request("GET", "/apis/apiextensions.k8s.io/v1/"
                                               f"customresourcedefinitions/{plural}.{group(kind)}")
                            for kind, plural in PLURALS.items())}

    before = versions()
    kubectl_ok("apply", "--server-side", "-k", str(ROOT / "crds"))
    assert versions() == before


def test_client_side_apply_fits_its_annotation(api):
    """`kubectl apply` without --server-side stores the whole CRD in an annotation of the CRD."""
    assert api
    out = kubectl_ok("apply", "--dry-run=server", "-k", str(ROOT / "crds"))
    assert len(out.splitlines()) == 4


# ---- defaults

@pytest.mark.parametrize("kind,spec,added", [
    ("Sandbox", BLUEPRINT, {"operatingMode": "Running", "shutdownPolicy": "Retain"}),
    ("SandboxTemplate", BLUEPRINT, {"networkPolicyManagement": "Managed",
                                    "envVarsInjectionPolicy": "Disallowed",
                                    "volumeClaimTemplatesPolicy": "Disallowed"}),
    ("SandboxClaim", SPECS["SandboxClaim"], {}),
    ("SandboxClaim", {"warmPoolRef": {"name": "p"}, "lifecycle": {}},
     {"lifecycle": {"shutdownPolicy": "Retain"}}),
    ("SandboxWarmPool", SPECS["SandboxWarmPool"], {"replicas": 1}),
    ("SandboxWarmPool", {"sandboxTemplateRef": {"name": "t"}, "replicas": 0, "updateStrategy": {}},
     {"updateStrategy": {"type": "OnReplenish"}}),
])
def test_own_defaults(api, kind, spec, added):
    assert api.create(kind, spec)["spec"] == {**spec, **added}


@pytest.mark.parametrize("service", [True, False, None])
def test_service_has_three_states(api, service):
    spec = {**BLUEPRINT, **({} if service is None else {"service": service})}
    assert api.create("Sandbox", spec)["spec"].get("service") is service


@pytest.mark.parametrize("given,stored", [
    (with_container(ports=[{"containerPort": 80}]),
     with_container(ports=[{"containerPort": 80, "protocol": "TCP"}])),
    (with_pod(imagePullSecrets=[{}]), with_pod(imagePullSecrets=[{"name": ""}])),
    (with_container(env=[{"name": "A", "valueFrom": {"secretKeyRef": {"key": "k"}}}]),
     with_container(env=[{"name": "A", "valueFrom": {"secretKeyRef": {"key": "k", "name": ""}}}])),
    (with_container(envFrom=[{"configMapRef": {}}]),
     with_container(envFrom=[{"configMapRef": {"name": ""}}])),
    (with_container(livenessProbe={"grpc": {"port": 1}}),
     with_container(livenessProbe={"grpc": {"port": 1, "service": ""}})),
    (with_pod(volumes=[{"name": "v", "rbd": {"image": "i", "monitors": ["m"]}}]),
     with_pod(volumes=[{"name": "v", "rbd": {
         "image": "i", "monitors": ["m"], "keyring": "/etc/ceph/keyring", "pool": "rbd",
         "user": "admin"}}])),
])
def test_defaults_within_the_pod_spec(api, given, stored):
    assert api.create("Sandbox", given)["spec"]["podTemplate"] == stored["podTemplate"]


@pytest.mark.parametrize("spec", [
    BLUEPRINT,
    with_pod(evictionResponders=[{"name": "a.example/b", "priority": 1}]),
    with_container(volumeMounts=[{"name": "v", "mountPath": "/v", "bindMountOptions": ["noexec"]}]),
    with_pod(volumes=[{"name": "v", "emptyDir": {"mode": 448, "sizeLimit": "1Gi"}}]),
    with_pod(volumes=[{"name": "v", "secret": {"secretName": "s", "defaultUser": 5}}]),
    with_pod(volumes=[{"name": "v", "ephemeral": {"volumeClaimTemplate": {
        "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}, "spec": {}}}}]),
    with_container(resources={"requests": {"cpu": 1, "memory": "64Mi"}, "limits": {"cpu": "0.5"}}),
    with_container(readinessProbe={"httpGet": {"port": 8080, "path": "/"}}),
    with_container(readinessProbe={"httpGet": {"port": "http", "protocol": "HTTP1"}}),
    with_pod(initContainers=[{"name": "i", "image": "x", "restartPolicy": "Always"}],
             nodeSelector={"a": "b"}, tolerations=[{"operator": "Exists"}], hostUsers=False),
])
def test_pod_spec_is_kept_as_it_is(api, spec):
    """Fields up to 1.37 are kept, and nothing of a Pod's own defaulting is filled in."""
    for kind in ("Sandbox", "SandboxTemplate"):
        assert api.create(kind, spec)["spec"]["podTemplate"] == spec["podTemplate"]


def test_unknown_fields_are_dropped(api):
    spec = {**with_pod(nonsense=1), "nonsense": 1}
    assert "nonsense" not in json.dumps(api.create("Sandbox", spec)["spec"])


def test_metadata_of_the_pod_template(api):
    metadata = {"labels": {"a": "b"}, "annotations": {"c": "d"}}
    spec = {"podTemplate": {"metadata": metadata, "spec": POD}}
    assert api.create("Sandbox", spec)["spec"]["podTemplate"]["metadata"] == metadata


def test_network_rules(api):
    rules = {"egress": [{"to": [{"ipBlock": {"cidr": "0.0.0.0/0", "except": ["10.0.0.0/8"]}}],
                         "ports": [{"port": 53, "protocol": "UDP"}, {"port": "http", "endPort": 9}]}],
             "ingress": [{"from": [{"podSelector": {"matchExpressions": [
                 {"key": "a", "operator": "In", "values": ["b"]}]}, "namespaceSelector": {}}]}]}
    spec = {**BLUEPRINT, "networkPolicy": rules}
    assert api.create("SandboxTemplate", spec)["spec"]["networkPolicy"] == rules


# ---- what is refused

@pytest.mark.parametrize("kind,spec,reason", [
    *[(kind, None, "spec: Required value") for kind in PLURALS],
    ("Sandbox", {}, "spec.podTemplate: Required value"),
    ("Sandbox", {"podTemplate": {}}, "spec.podTemplate.spec: Required value"),
    ("Sandbox", {"podTemplate": {"spec": {}}}, "spec.podTemplate.spec.containers: Required value"),
    ("Sandbox", {**BLUEPRINT, "operatingMode": "Paused"}, 'supported values: "Running", "Suspended"'),
    ("Sandbox", {**BLUEPRINT, "shutdownPolicy": "DeleteForeground"}, 'supported values: "Delete", "Retain"'),
    ("Sandbox", {**BLUEPRINT, "shutdownTime": "tomorrow"}, "spec.shutdownTime"),
    ("Sandbox", {**BLUEPRINT, "volumeClaimTemplates": [{"metadata": {"name": "v"}}]},
     "spec.volumeClaimTemplates[0].spec: Required value"),
    ("Sandbox", {"podTemplate": {"spec": {"containers": [{"name": "a"}, {"name": "a"}]}}},
     "Duplicate value"),
    ("Sandbox", with_container(resources={"limits": {"memory": "lots"}}), "limits.memory"),
    ("SandboxClaim", {}, "spec.warmPoolRef: Required value"),
    ("SandboxClaim", {"warmPoolRef": {}}, "spec.warmPoolRef.name: Required value"),
    ("SandboxClaim", {"warmPoolRef": {"name": "p"}, "env": [{"name": "A"}]}, "spec.env[0].value: Required value"),
    ("SandboxClaim", {"warmPoolRef": {"name": "p"}, "lifecycle": {"ttlSecondsAfterFinished": -1}},
     "greater than or equal to 0"),
    ("SandboxClaim", {"warmPoolRef": {"name": "p"}, "lifecycle": {"shutdownPolicy": "Stop"}},
     'supported values: "Delete", "DeleteForeground", "Retain"'),
    ("SandboxTemplate", {**BLUEPRINT, "networkPolicyManagement": "Off"}, 'supported values: "Managed", "Unmanaged"'),
    ("SandboxTemplate", {**BLUEPRINT, "envVarsInjectionPolicy": "Yes"}, "spec.envVarsInjectionPolicy"),
    ("SandboxWarmPool", {"sandboxTemplateRef": {}}, "spec.sandboxTemplateRef.name: Required value"),
    ("SandboxWarmPool", {"sandboxTemplateRef": {"name": "t"}, "replicas": -1}, "greater than or equal to 0"),
    ("SandboxWarmPool", {"sandboxTemplateRef": {"name": "t"}, "updateStrategy": {"type": "Rolling"}},
     'supported values: "Recreate", "OnReplenish"'),
])
def test_refused(api, kind, spec, reason):
    assert reason in api.refused(kind, spec)


# ---- rules on updates

@pytest.fixture(name="suspended")
def suspended_fixture(api):
    """Makes real Sandboxes that run nothing; a pod would only be in the way."""
    made = []

    def make(**fields):
        name = f"s-{uuid.uuid4().hex[:8]}"
        api.create("Sandbox", {**BLUEPRINT, "operatingMode": "Suspended", **fields}, dry=False, name=name)
        made.append(name)
        return name

    yield make
    for name in made:
        api.request("DELETE", api.path("Sandbox", name))


@pytest.mark.parametrize("before,after", [
    (None, [VOLUME]),
    ([VOLUME], None),
    ([VOLUME], []),
    ([VOLUME], [VOLUME, {**VOLUME, "metadata": {"name": "more"}}]),
    ([VOLUME], [{**VOLUME, "metadata": {"name": "other"}}]),
])
def test_volume_claim_templates_cannot_change(api, suspended, before, after):
    name = suspended(**({} if before is None else {"volumeClaimTemplates": before}))
    with pytest.raises(Refused) as error:
        api.patch("Sandbox", name, {"spec": {"volumeClaimTemplates": after}})
    assert error.value.status == 422
    assert "volumeClaimTemplates is immutable" in error.value.message


@pytest.mark.parametrize("volumes", [None, [VOLUME]])
def test_all_else_may_change(api, suspended, volumes):
    name = suspended(**({} if volumes is None else {"volumeClaimTemplates": volumes}))
    change = {"operatingMode": "Running", "shutdownTime": LATER, "service": True}
    if volumes:
        change["volumeClaimTemplates"] = volumes
    answer = api.patch("Sandbox", name, {"spec": change})
    assert change.items() <= answer["spec"].items()


def test_templates_may_change_their_volumes(api):
    api.create("SandboxTemplate", {**BLUEPRINT, "networkPolicyManagement": "Unmanaged"}, dry=False, name="t")
    answer = api.patch("SandboxTemplate", "t", {"spec": {"volumeClaimTemplates": [VOLUME]}})
    assert answer["spec"]["volumeClaimTemplates"] == [VOLUME]


# ---- status

READY = {"type": "Ready", "status": "True", "reason": "DependenciesReady", "message": "Pod is Ready",
         "lastTransitionTime": NOW, "observedGeneration": 1}


def condition_error(api, name, **change):
    condition = {key: value for key, value in {**READY, **change}.items() if value is not None}
    with pytest.raises(Refused) as error:
        api.patch("Sandbox", name, {"status": {"conditions": [condition]}}, "status")
    assert error.value.status == 422
    return error.value.message


def test_conditions(api, suspended):
    name = suspended()
    empty = {**READY, "message": ""}
    answer = api.patch("Sandbox", name, {"status": {"conditions": [empty]}}, "status")
    assert answer["status"]["conditions"] == [empty]
    assert "message: Required value" in condition_error(api, name, message=None)
    assert "lastTransitionTime: Required value" in condition_error(api, name, lastTransitionTime=None)
    assert "supported values" in condition_error(api, name, status="Maybe")
    assert "reason" in condition_error(api, name, reason="two words")
    assert "type" in condition_error(api, name, type="-x")
    assert "observedGeneration" in condition_error(api, name, observedGeneration=-1)


def test_a_merge_patch_replaces_all_conditions(api, suspended):
    name = suspended()
    both = [READY, {**READY, "type": "Suspended"}]
    answer = api.patch("Sandbox", name, {"status": {"conditions": both}}, "status")
    assert answer["status"]["conditions"] == both
    # Twice the same type is no error: there is no key.
    twice = [READY, READY]
    assert api.patch("Sandbox", name, {"status": {"conditions": twice}}, "status")["status"]["conditions"] == twice


def test_status_and_spec_are_written_apart(api, suspended):
    name = suspended()
    answer = api.patch("Sandbox", name, {"spec": {"service": True}, "status": {"nodeName": "n"}}, "status")
    assert answer["status"]["nodeName"] == "n" and "service" not in answer["spec"]
    answer = api.patch("Sandbox", name, {"spec": {"service": True}, "status": {"nodeName": "n"}})
    assert answer["spec"]["service"] is True and answer.get("status", {}).get("nodeName") != "n"


def test_subresources_that_are_not_there(api, suspended):
    api.create("SandboxTemplate", {**BLUEPRINT, "networkPolicyManagement": "Unmanaged"}, dry=False, name="u")
    for kind, name, sub in (("Sandbox", suspended(), "scale"), ("SandboxTemplate", "u", "status")):
        with pytest.raises(Refused) as error:
            api.request("GET", api.path(kind, name, sub))
        assert error.value.status == 404


def test_pools_scale(api):
    # No such template: a pool that makes nothing.
    api.create("SandboxWarmPool", {"sandboxTemplateRef": {"name": "none"}, "replicas": 3}, dry=False, name="p")
    scale = api.request("GET", api.path("SandboxWarmPool", "p", "scale"))
    assert scale["spec"]["replicas"] == 3
    answer = api.patch("SandboxWarmPool", "p", {"spec": {"replicas": 5}}, "scale")
    assert answer["spec"]["replicas"] == 5
    kubectl_ok("scale", "-n", api.namespace, "swp/p", "--replicas=0")
    assert api.request("GET", api.path("SandboxWarmPool", "p"))["spec"]["replicas"] == 0
    # An autoscaler finds the pods by a selector that the status holds.
    answer = api.patch("SandboxWarmPool", "p", {"status": {"selector": "a=b", "replicas": 2}}, "status")
    assert answer["status"]["selector"] == "a=b"


# ---- what people see

def row(table, wide=False):
    """{column: cell} of a table of one row."""
    cells = table["rows"][0]["cells"]
    return {c["name"]: cell for c, cell in zip(table["columnDefinitions"], cells)
            if wide or not c["priority"]}


def test_columns_of_sandboxes(api, suspended):
    name = suspended(shutdownTime=LATER)
    status = {"status": {"conditions": [READY], "podIPs": ["10.0.0.7"], "nodeName": "node-1"}}
    table = api.patch("Sandbox", name, status, "status", accept=TABLE)
    shown = row(table)
    assert list(shown) == ["Name", "Ready", "Reason", "Mode", "Owner", "Expires", "Age"]
    assert (shown["Ready"], shown["Reason"]) == ("True", "DependenciesReady")
    assert (shown["Mode"], shown["Expires"]) == ("Suspended", LATER)
    wide = row(table, wide=True)
    assert (wide["Pod-IP"], wide["Node"], wide["Message"]) == ("10.0.0.7", "node-1", "Pod is Ready")


def test_owner_and_template_of_a_sandbox(api):
    body = {"apiVersion": "agents.x-k8s.io/v1beta1", "kind": "Sandbox", "spec": BLUEPRINT,
            "metadata": {"name": "x", "annotations": {"agents.x-k8s.io/sandbox-template-ref": "t"},
                         "ownerReferences": [
                             {"apiVersion": "v1", "kind": "Pod", "name": "other", "uid": "1"},
                             {"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxClaim",
                              "name": "c", "uid": "2", "controller": True}]}}
    shown = row(api.request("POST", api.path("Sandbox"), body, accept=TABLE, dryRun="All"), wide=True)
    assert (shown["Owner"], shown["Template"]) == ("c", "t")


def test_columns_of_claims(api):
    annotations = {"k8s-agent-sandbox-mcp/owner": "0a1b", "k8s-agent-sandbox-mcp/created-by": "alice",
                   "k8s-agent-sandbox-mcp/last-activity": NOW,
                   "k8s-agent-sandbox-mcp/idle-timeout-seconds": "600"}
    spec = {"warmPoolRef": {"name": "none"},
            "lifecycle": {"shutdownTime": LATER, "shutdownPolicy": "Delete"}}
    name = f"c-{uuid.uuid4().hex[:8]}"
    api.create("SandboxClaim", spec, dry=False, name=name, annotations=annotations)
    status = {"status": {"conditions": [READY], "sandbox": {"name": "s-1", "podIPs": ["10.0.0.7"]}}}
    table = api.patch("SandboxClaim", name, status, "status", accept=TABLE)
    shown = row(table)
    assert list(shown) == ["Name", "Ready", "Sandbox", "Reason", "Expires", "Last-Active", "Created-By", "Age"]
    assert (shown["Ready"], shown["Sandbox"], shown["Reason"]) == ("True", "s-1", "DependenciesReady")
    assert (shown["Expires"], shown["Created-By"]) == (LATER, "alice")
    # A date is shown as its age: digits and a unit, and neither <invalid> nor <unknown>.
    assert shown["Last-Active"][0].isdigit()
    wide = row(table, wide=True)
    assert (wide["Pool"], wide["Owner"]) == ("none", "0a1b")
    assert (wide["Idle-Timeout"], wide["At-End"]) == ("600", "Delete")
    api.request("DELETE", api.path("SandboxClaim", name))


def test_columns_of_templates(api):
    spec = {**with_pod(runtimeClassName="gvisor"), "envVarsInjectionPolicy": "Allowed"}
    body = {"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxTemplate",
            "metadata": {"name": "x"}, "spec": spec}
    table = api.request("POST", api.path("SandboxTemplate"), body, accept=TABLE, dryRun="All")
    shown = row(table)
    assert (shown["Image"], shown["Runtime"], shown["Network"]) == ("img", "gvisor", "Managed")
    assert row(table, wide=True)["Env"] == "Allowed"


def test_columns_of_pools(api):
    api.create("SandboxWarmPool", {"sandboxTemplateRef": {"name": "none"}, "replicas": 3}, dry=False, name="q")
    status = {"status": {"replicas": 3, "readyReplicas": 2}}
    shown = row(api.patch("SandboxWarmPool", "q", status, "status", accept=TABLE))
    assert list(shown) == ["Name", "Ready", "Desired", "Current", "Template", "Age"]
    assert (shown["Ready"], shown["Desired"], shown["Current"], shown["Template"]) == (2, 3, 3, "none")


@pytest.mark.parametrize("what,said", [
    ("sandbox", "An isolated place to run code"),
    ("sandboxclaim.spec.lifecycle.shutdownPolicy", "DeleteForeground does the same"),
    ("sandboxclaim.status.sandbox", "The sandbox that belongs to the claim"),
    ("sandboxtemplate.spec.networkPolicyManagement", "sandboxes use public DNS servers"),
    ("swp.spec.updateStrategy.type", "none of the old sort is handed out"),
])
def test_explain(api, what, said):
    assert api
    assert said in " ".join(kubectl_ok("explain", what).split())


# ---- roles

CONTROLLER = "system:serviceaccount:agent-sandbox-system:agent-sandbox-controller"
GATEWAY = "system:serviceaccount:agent-sandbox-system:sandbox-gateway"


@pytest.fixture(scope="module", name="can")
def can_fixture(api):
    for path in ("controller/rbac.yaml", "gateway/rbac.yaml", "gateway/user-role.yaml"):
        kubectl_ok("apply", "--server-side", "-f", str(ROOT / "manifests" / path))
    reviews = client.AuthorizationV1Api()
    assert api

    def can(user, verb, resource, namespace="default"):
        name, _, group_name = resource.partition(".")
        name, _, sub = name.partition("/")
        attributes = {"verb": verb, "resource": name, "subresource": sub, "group": group_name,
                      "namespace": namespace}
        body = {"spec": {"user": user, "resourceAttributes": attributes}}
        return reviews.create_subject_access_review(body).status.allowed

    return can


EXT = "extensions.agents.x-k8s.io"


@pytest.mark.parametrize("user,verb,resource,allowed", [
    (CONTROLLER, "create", "pods", True),
    (CONTROLLER, "create", "sandboxes.agents.x-k8s.io", True),
    (CONTROLLER, "update", "sandboxes/finalizers.agents.x-k8s.io", True),
    (CONTROLLER, "patch", f"sandboxclaims/status.{EXT}", True),
    (CONTROLLER, "update", f"sandboxclaims/finalizers.{EXT}", True),
    (CONTROLLER, "update", f"sandboxwarmpools/finalizers.{EXT}", True),
    (CONTROLLER, "create", "networkpolicies.networking.k8s.io", True),
    (CONTROLLER, "create", "events", True),
    (CONTROLLER, "create", f"sandboxclaims.{EXT}", False),
    (CONTROLLER, "create", "pods/exec", False),
    (CONTROLLER, "get", "secrets", False),
    (GATEWAY, "get", "pods/exec", True),
    (GATEWAY, "create", "pods/exec", True),
    (GATEWAY, "watch", "pods", True),
    (GATEWAY, "patch", f"sandboxclaims.{EXT}", True),
    (GATEWAY, "create", "tokenreviews.authentication.k8s.io", True),
    (GATEWAY, "create", "subjectaccessreviews.authorization.k8s.io", True),
    (GATEWAY, "delete", "pods", False),
    (GATEWAY, "patch", "sandboxes.agents.x-k8s.io", False),
    (GATEWAY, "get", "secrets", False),
    (GATEWAY, "delete", "nodes", False),
])
def test_rights(can, user, verb, resource, allowed):
    assert can(user, verb, resource) is allowed


def test_rights_of_a_user(api, can):
    account = f"system:serviceaccount:{api.namespace}:agent"
    asked = [("create", f"sandboxclaims.{EXT}"), ("get", f"sandboxclaims.{EXT}"),
             ("delete", f"sandboxclaims.{EXT}"), ("create", f"sandboxclaims/exec.{EXT}"),
             ("create", f"sandboxclaims/files.{EXT}")]
    assert not any(can(account, *question, api.namespace) for question in asked)
    kubectl_ok("create", "rolebinding", "agent", "--clusterrole=sandbox-user",
               f"--serviceaccount={api.namespace}:agent", "-n", api.namespace)
    assert all(can(account, *question, api.namespace) for question in asked)
    assert not any(can(account, *question, "default") for question in asked)
    assert not can(account, "create", "pods/exec", api.namespace)
    assert not can(account, "list", f"sandboxclaims.{EXT}", api.namespace)
    # And kubectl can explain it, although no API server serves the subresource.
    run = kubectl("auth", "can-i", "create", f"sandboxclaims.{EXT}", "--subresource=exec",
                  "-n", api.namespace, "--as", account)
    assert run.stdout.strip() == "yes", run.stderr


@pytest.mark.parametrize("owner,version,child", [
    ("Sandbox", "v1", {"kind": "Pod", "spec": POD}),
    ("SandboxClaim", "agents.x-k8s.io/v1beta1", {"kind": "Sandbox", "spec": BLUEPRINT}),
    ("SandboxWarmPool", "agents.x-k8s.io/v1beta1", {"kind": "Sandbox", "spec": BLUEPRINT}),
    ("SandboxTemplate", "networking.k8s.io/v1", {"kind": "NetworkPolicy", "spec": {"podSelector": {}}}),
])
def test_controller_may_make_children_that_block_their_owner(api, can, owner, version, child):
    """Also where OwnerReferencesPermissionEnforcement is on, as on the tests' own cluster."""
    assert can(CONTROLLER, "create", "pods")
    name = f"o-{uuid.uuid4().hex[:8]}"
    spec = {**SPECS[owner], **{"Sandbox": {"operatingMode": "Suspended"},
                               "SandboxWarmPool": {"replicas": 0},
                               "SandboxTemplate": {"networkPolicyManagement": "Unmanaged"}}.get(owner, {})}
    uid = api.create(owner, spec, dry=False, name=name)["metadata"]["uid"]
    reference = {"apiVersion": f"{group(owner)}/v1beta1", "kind": owner, "name": name, "uid": uid,
                 "controller": True, "blockOwnerDeletion": True}
    body = {"apiVersion": version, **child, "metadata": {
        "name": name, "namespace": api.namespace, "ownerReferences": [reference]}}
    run = kubectl("create", "--dry-run=server", "--as", CONTROLLER, "-f", "-", text=json.dumps(body))
    assert run.returncode == 0, run.stderr
    api.request("DELETE", api.path(owner, name))


def test_default_passes_the_restricted_level(api):
    """Both Deployments' pods are let into a namespace that enforces Pod Security `restricted`."""
    built = kubectl_ok("kustomize", str(ROOT / "manifests/default"))
    deployments = [d for d in yaml.safe_load_all(built) if d["kind"] == "Deployment"]
    assert len(deployments) == 2
    name = f"{api.namespace}-restricted"
    client.CoreV1Api().create_namespace({"metadata": {
        "name": name, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}})
    try:
        for deployment in deployments:
            template = deployment["spec"]["template"]
            pod = {"apiVersion": "v1", "kind": "Pod", "spec": {**template["spec"],
                   "serviceAccountName": "default"}, "metadata": {"name": "x", "namespace": name}}
            run = kubectl("apply", "--dry-run=server", "-f", "-", text=json.dumps(pod))
            assert run.returncode == 0, run.stderr
            # The same pod without one of the measures is refused: the level is enforced.
            del pod["spec"]["containers"][0]["securityContext"]["capabilities"]
            run = kubectl("apply", "--dry-run=server", "-f", "-", text=json.dumps(pod))
            assert run.returncode != 0 and "restricted" in run.stderr
    finally:
        client.CoreV1Api().delete_namespace(name)
