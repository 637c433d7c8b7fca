# SPDX-License-Identifier: Apache-2.0
"""What can be said of crds/ and manifests/ without a cluster."""
import copy
import functools
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
import yaml

pytestmark = pytest.mark.xdist_group("crds")  # what kubectl makes of manifests/ is made once

ROOT = pathlib.Path(__file__).resolve().parents[2]
CRDS = ROOT / "crds"
MANIFESTS = ROOT / "manifests"
BASES = ["crds", "manifests/namespace", "manifests/controller", "manifests/gateway",
         "manifests/default", "manifests/examples"]

NAMES = {
    "Sandbox": "agents.x-k8s.io_sandboxes.yaml",
    "SandboxClaim": "extensions.agents.x-k8s.io_sandboxclaims.yaml",
    "SandboxTemplate": "extensions.agents.x-k8s.io_sandboxtemplates.yaml",
    "SandboxWarmPool": "extensions.agents.x-k8s.io_sandboxwarmpools.yaml",
}

needs_kubectl = pytest.mark.skipif(not shutil.which("kubectl"), reason="no kubectl here")
needs_go = pytest.mark.skipif(not shutil.which("go"), reason="no go here")


LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read(path):
    return yaml.load(path.read_text(encoding="utf-8"), LOADER)


CRD = {kind: read(CRDS / name) for kind, name in NAMES.items()}


def version(kind):
    return CRD[kind]["spec"]["versions"][0]


def schema(kind):
    return version(kind)["schema"]["openAPIV3Schema"]


def at(kind, path):
    """The schema node of a field, by its path; [] goes into the items of a list."""
    node = schema(kind)
    for part in path.split("."):
        node = node["items"] if part == "[]" else node["properties"][part]
    return node


def nodes(node, path=""):
    """Every schema node with its path."""
    yield path, node
    for name, child in node.get("properties", {}).items():
        yield from nodes(child, f"{path}.{name}" if path else name)
    if "items" in node:
        yield from nodes(node["items"], f"{path}.[]")
    if isinstance(node.get("additionalProperties"), dict):
        yield from nodes(node["additionalProperties"], f"{path}.*")


def generator():
    spec = importlib.util.spec_from_file_location("crds_generate", CRDS / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# ---- the four kinds

@pytest.mark.parametrize("kind", NAMES)
def test_one_version_and_no_conversion(kind):
    spec = CRD[kind]["spec"]
    assert spec["names"]["kind"] == kind
    assert spec["scope"] == "Namespaced"
    assert "conversion" not in spec
    assert [v["name"] for v in spec["versions"]] == ["v1beta1"]
    assert version(kind)["served"] and version(kind)["storage"]
    assert "selectableFields" not in version(kind)
    assert schema(kind)["required"] == ["spec"]
    assert CRD[kind]["metadata"]["name"] == f"{spec['names']['plural']}.{spec['group']}"


@pytest.mark.parametrize("kind,short", [
    ("Sandbox", "sandbox"), ("SandboxClaim", "sandboxclaim"),
    ("SandboxTemplate", "sandboxtemplate"), ("SandboxWarmPool", "swp"),
])
def test_short_name(kind, short):
    assert CRD[kind]["spec"]["names"]["shortNames"] == [short]


@pytest.mark.parametrize("kind,field", [
    ("Sandbox", "service"), ("Sandbox", "volumeClaimTemplates"),
    ("SandboxTemplate", "service"), ("SandboxTemplate", "volumeClaimTemplates"),
    ("SandboxTemplate", "envVarsInjectionPolicy"),
    ("SandboxTemplate", "volumeClaimTemplatesPolicy"),
    ("SandboxClaim", "env"), ("SandboxClaim", "volumeClaimTemplates"),
])
def test_what_is_not_carried_out_yet_says_so(kind, field):
    text = at(kind, f"spec.{field}")["description"]
    assert "not carried out yet by this version" in text.lower()
    assert "Ready=False" in text and "ReconcilerError" in text or field.endswith("Policy")


def test_fields_that_the_controller_refuses_are_those():
    # A field that the controller learns to carry out, or to refuse, changes descriptions as well.
    text = "".join((ROOT / "controller" / f).read_text() for f in ("plan_pod.c", "claim_bind.c"))
    refused = {f for f in ("env", "service", "volumeClaimTemplates") if f'"spec.{f}"' in text}
    assert refused == {"env", "service", "volumeClaimTemplates"}


@pytest.mark.parametrize("kind,path", [
    ("SandboxClaim", "spec.lifecycle.shutdownPolicy"), ("Sandbox", "spec.shutdownPolicy")])
def test_shutdown_policy_names_its_default(kind, path):
    node = at(kind, path)  # kubectl explain does not show defaults
    assert f"Left out, it is {node['default']}." in node["description"]


@pytest.mark.parametrize("kind", NAMES)
def test_size_as_compact_json(kind):
    size = len(json.dumps(CRD[kind], separators=(",", ":")).encode())
    assert 1_000 < size < 200_000


@pytest.mark.parametrize("kind,subresources", [
    ("Sandbox", {"status": {}}),
    ("SandboxClaim", {"status": {}}),
    ("SandboxTemplate", None),
    ("SandboxWarmPool", {"status": {}, "scale": {
        "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector"}}),
])
def test_subresources(kind, subresources):
    assert version(kind).get("subresources") == subresources


@pytest.mark.parametrize("kind,columns", [
    ("Sandbox", ["Ready", "Reason", "Age"]),
    ("SandboxClaim", ["Ready", "Sandbox", "Reason", "Age"]),
    ("SandboxWarmPool", ["Ready", "Desired", "Age"]),
])
def test_established_columns_are_kept_in_their_order(kind, columns):
    ours = [c["name"] for c in version(kind)["additionalPrinterColumns"] if not c.get("priority")]
    assert [name for name in ours if name in columns] == columns


@pytest.mark.parametrize("kind", NAMES)
def test_no_date_column_shows_a_time_to_come(kind):
    # kubectl prints the age of a date; one in the future reads <invalid>.
    for column in version(kind)["additionalPrinterColumns"]:
        if column["type"] == "date":
            assert "shutdownTime" not in column["jsonPath"]


@pytest.mark.parametrize("kind", ["Sandbox", "SandboxClaim"])
def test_conditions_are_a_plain_list(kind):
    conditions = at(kind, "status.conditions")
    assert not [key for key in conditions if key.startswith("x-kubernetes")]
    item = conditions["items"]
    assert set(item["required"]) == {"lastTransitionTime", "message", "reason", "status", "type"}
    assert item["properties"]["message"]["maxLength"] == 32768
    assert "minLength" not in item["properties"]["message"]
    assert item["properties"]["status"]["enum"] == ["True", "False", "Unknown"]


def test_only_rule_is_on_the_spec_of_sandboxes():
    rules = [(kind, path) for kind in NAMES for path, node in nodes(schema(kind))
             if "x-kubernetes-validations" in node]
    assert rules == [("Sandbox", "spec")]
    rule, = at("Sandbox", "spec")["x-kubernetes-validations"]
    assert rule["message"] == "volumeClaimTemplates is immutable"


# ---- descriptions

EMBEDDED = ("podTemplate.spec", "volumeClaimTemplates.[].spec",
            "networkPolicy.ingress", "networkPolicy.egress")


def embedded_in(path):
    """The path of the embedded Kubernetes type that a field lies in, or None."""
    for part in EMBEDDED:
        if path.startswith(f"spec.{part}."):
            return f"spec.{part}"
    return None


@pytest.mark.parametrize("kind", NAMES)
def test_no_descriptions_below_embedded_types(kind):
    for path, node in nodes(schema(kind)):
        if embedded_in(path):
            assert "description" not in node, path


@pytest.mark.parametrize("kind", NAMES)
def test_each_field_of_ours_is_described(kind):
    for path, node in nodes(schema(kind)):
        if embedded_in(path) or path in ("apiVersion", "kind", "metadata"):
            continue
        if path.endswith((".*", "podIPs.[]")):  # a string in a map or list that is described
            continue
        assert len(node.get("description", "")) > 15, path


# ---- defaults

OWN_DEFAULTS = {
    "Sandbox": {"spec.operatingMode": "Running", "spec.shutdownPolicy": "Retain"},
    "SandboxClaim": {"spec.lifecycle.shutdownPolicy": "Retain"},
    "SandboxTemplate": {"spec.networkPolicyManagement": "Managed",
                        "spec.envVarsInjectionPolicy": "Disallowed",
                        "spec.volumeClaimTemplatesPolicy": "Disallowed"},
    "SandboxWarmPool": {"spec.replicas": 1, "spec.updateStrategy.type": "OnReplenish"},
}

# By the last two parts of the path, list markers left out.
POD_DEFAULTS = {
    "configMapKeyRef.name": "", "secretKeyRef.name": "", "configMapRef.name": "",
    "secretRef.name": "", "imagePullSecrets.name": "", "configMap.name": "", "secret.name": "",
    "nodePublishSecretRef.name": "", "fileKeyRef.optional": False, "grpc.service": "",
    "azureDisk.fsType": "ext4", "azureDisk.readOnly": False, "iscsi.iscsiInterface": "default",
    "rbd.keyring": "/etc/ceph/keyring", "rbd.pool": "rbd", "rbd.user": "admin",
    "scaleIO.fsType": "xfs", "scaleIO.storageMode": "ThinProvisioned", "ports.protocol": "TCP",
}


@pytest.mark.parametrize("kind", NAMES)
def test_own_defaults(kind):
    assert {path: node["default"] for path, node in nodes(schema(kind))
            if "default" in node and not embedded_in(path)} == OWN_DEFAULTS[kind]


@pytest.mark.parametrize("kind", ["Sandbox", "SandboxTemplate"])
def test_defaults_within_a_pod_spec(kind):
    found = {}
    for path, node in nodes(schema(kind)):
        if "default" in node and embedded_in(path):
            assert embedded_in(path) == "spec.podTemplate.spec", path
            found[".".join([p for p in path.split(".") if p != "[]"][-2:])] = node["default"]
    assert found == POD_DEFAULTS


# ---- the embedded pod spec

@pytest.mark.parametrize("kind", ["Sandbox", "SandboxTemplate"])
def test_pod_spec_is_that_of_kubernetes_1_37(kind):
    pod = at(kind, "spec.podTemplate.spec")
    assert pod["required"] == ["containers"]
    fields = {path for path, _ in nodes(pod)}
    for field in ("evictionResponders.[].priority", "containers.[].volumeMounts.[].bindMountOptions",
                  "containers.[].livenessProbe.httpGet.protocol",
                  "containers.[].livenessProbe.grpc.mode", "volumes.[].emptyDir.mode",
                  "volumes.[].configMap.defaultUser", "volumes.[].secret.items.[].user",
                  "volumes.[].projected.sources.[].serviceAccountToken.user", "hostnameOverride",
                  "schedulingGroup.podGroupName", "resources.limits.*",
                  "containers.[].restartPolicyRules.[].exitCodes.values.[]",
                  "containers.[].env.[].valueFrom.fileKeyRef.path"):
        assert field in fields, field


@pytest.mark.parametrize("path,keys", [
    ("containers", ["name"]), ("containers.[].env", ["name"]),
    ("containers.[].ports", ["containerPort", "protocol"]),
    ("containers.[].volumeMounts", ["mountPath"]), ("volumes", ["name"]),
    ("hostAliases", ["ip"]), ("evictionResponders", ["name"]), ("imagePullSecrets", ["name"]),
    ("topologySpreadConstraints", ["topologyKey", "whenUnsatisfiable"]),
])
def test_lists_with_keys(path, keys):
    node = at("Sandbox", "spec.podTemplate.spec." + path)
    assert node["x-kubernetes-list-type"] == "map"
    assert node["x-kubernetes-list-map-keys"] == keys


@pytest.mark.parametrize("kind", NAMES)
def test_keys_of_lists_are_required_or_have_a_default(kind):
    for path, node in nodes(schema(kind)):
        for key in node.get("x-kubernetes-list-map-keys", []):
            item = node["items"]
            assert key in item.get("required", []) or "default" in item["properties"][key], path


# ---- the generator

def run_generator(folder, *arguments):
    return subprocess.run([sys.executable, str(folder / "generate.py"), *arguments],
                          capture_output=True, text=True, timeout=600, check=False)


@needs_go
def test_committed_crds_are_up_to_date():
    run = run_generator(CRDS, "--check")
    assert run.returncode == 0, run.stdout + run.stderr


@needs_go
def test_check_notices_a_change(tmp_path):
    folder = tmp_path / "crds"
    shutil.copytree(CRDS, folder)
    path = folder / NAMES["SandboxWarmPool"]
    path.write_text(path.read_text().replace("minimum: 0", "minimum: 1", 1))
    changed = path.read_text()
    run = run_generator(folder, "--check")
    assert run.returncode == 1
    assert "+                  minimum: 0" in run.stdout
    assert path.read_text() == changed, "--check wrote"


def test_generator_refuses_what_it_does_not_know():
    module = generator()
    with pytest.raises(module.GenerateError, match="no rule for oneOf"):
        module.Kubernetes({"a": {"type": "object", "oneOf": []}}).expand("a")
    with pytest.raises(module.GenerateError, match="no definition b"):
        module.Kubernetes({"a": {"$ref": "#/definitions/b"}}).expand("a")
    with pytest.raises(module.GenerateError, match="unknown reference common#/x"):
        module.Expander({}, None).expand({"$ref": "common#/x"})


def test_generator_keeps_a_field_called_like_a_keyword():
    module = generator()
    definitions = {"a": {"type": "object", "properties": {
        "description": {"type": "string", "description": "words"}}}}
    assert module.Kubernetes(definitions).expand("a") == {
        "type": "object", "properties": {"description": {"type": "string"}}}


# ---- manifests

@functools.lru_cache(maxsize=None)
def build(folder):
    run = subprocess.run(["kubectl", "kustomize", str(folder)], capture_output=True, text=True,
                         timeout=60, check=False)
    assert run.returncode == 0, run.stderr
    return [doc for doc in yaml.load_all(run.stdout, LOADER) if doc]


def of_kind(objects, kind):
    return {o["metadata"]["name"]: o for o in objects if o["kind"] == kind}


@needs_kubectl
@pytest.mark.parametrize("base", BASES)
def test_kustomize_builds(base):
    assert build(ROOT / base)


@needs_kubectl
def test_default_has_all_of_it():
    objects = build(MANIFESTS / "default")
    assert set(of_kind(objects, "CustomResourceDefinition")) == {
        crd["metadata"]["name"] for crd in CRD.values()}
    assert set(of_kind(objects, "Namespace")) == {"agent-sandbox-system"}
    names = {"agent-sandbox-controller", "sandbox-gateway"}
    for kind in ("Deployment", "ServiceAccount", "Service", "NetworkPolicy"):
        found = of_kind(objects, kind)
        assert set(found) == names, kind
        assert {o["metadata"]["namespace"] for o in found.values()} == {"agent-sandbox-system"}


@needs_kubectl
def test_images_can_be_replaced_by_an_overlay(tmp_path):
    overlay = {"resources": [os.path.relpath(MANIFESTS / "default", tmp_path)],
               "images": [{"name": f"k8s-agent-sandbox/sandbox-{part}",
                           "newName": f"registry.test/{part}", "newTag": "1"}
                          for part in ("controller", "gateway")]}
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    images = {c["image"] for d in of_kind(build(tmp_path), "Deployment").values()
              for c in d["spec"]["template"]["spec"]["containers"]}
    assert images == {"registry.test/controller:1", "registry.test/gateway:1"}


@needs_kubectl
@pytest.mark.parametrize("name,container", [
    ("agent-sandbox-controller", "agent-sandbox-controller"),
    ("sandbox-gateway", "sandbox-gateway"),
])
def test_workloads_are_hardened(name, container):
    objects = build(MANIFESTS / "default")
    deployment = of_kind(objects, "Deployment")[name]
    pod = deployment["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] == 65532
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
    only, = pod["containers"]
    assert only["name"] == container
    assert only["securityContext"] == {"allowPrivilegeEscalation": False,
                                       "readOnlyRootFilesystem": True,
                                       "capabilities": {"drop": ["ALL"]}}
    assert only["resources"]["requests"].keys() == {"cpu", "memory"}
    assert "memory" in only["resources"]["limits"]
    ports = {port["name"]: port["containerPort"] for port in only["ports"]}
    for probe, path in (("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")):
        assert only[probe]["httpGet"]["path"] == path
        assert ports[only[probe]["httpGet"]["port"]] == 9090
    service = of_kind(objects, "Service")[name]
    assert {port["targetPort"] for port in service["spec"]["ports"]} <= set(ports)


@needs_kubectl
@pytest.mark.parametrize("name", ["agent-sandbox-controller", "sandbox-gateway"])
def test_selectors_meet_their_own_pods_only(name):
    objects = build(MANIFESTS / "default")
    deployments = of_kind(objects, "Deployment")

    def selected(selector):
        return {d for d, o in deployments.items()
                if selector.items() <= o["spec"]["template"]["metadata"]["labels"].items()}

    assert selected(deployments[name]["spec"]["selector"]["matchLabels"]) == {name}
    assert selected(of_kind(objects, "Service")[name]["spec"]["selector"]) == {name}
    policy = of_kind(objects, "NetworkPolicy")[name]["spec"]
    assert selected(policy["podSelector"]["matchLabels"]) == {name}
    assert set(policy["policyTypes"]) == {"Ingress", "Egress"}


@needs_kubectl
def test_gateway_carries_the_label_that_sandboxes_let_in():
    gateway = of_kind(build(MANIFESTS / "gateway"), "Deployment")["sandbox-gateway"]
    assert gateway["spec"]["template"]["metadata"]["labels"]["app"] == "sandbox-router"


@needs_kubectl
def test_only_one_controller_at_a_time():
    spec = of_kind(build(MANIFESTS / "controller"), "Deployment")["agent-sandbox-controller"]["spec"]
    assert spec["replicas"] == 1
    assert spec["strategy"] == {"type": "Recreate"}


RBAC_FILES = sorted(p for p in MANIFESTS.rglob("*.yaml") if "\nrules:" in p.read_text())


@pytest.mark.parametrize("path", RBAC_FILES, ids=lambda p: str(p.relative_to(MANIFESTS)))
def test_each_rule_says_why(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    starts = [n for n, line in enumerate(lines) if line.startswith("  - apiGroups:")]
    rules = [rule for doc in yaml.safe_load_all(path.read_text()) for rule in doc.get("rules", [])]
    assert len(starts) == len(rules) > 0
    for n in starts:
        assert lines[n - 1].startswith("  # "), f"{path.name}:{n + 1} has no reason"


def test_roles_are_where_the_tests_look():
    assert [str(p.relative_to(MANIFESTS)) for p in RBAC_FILES] == [
        "controller/rbac.yaml", "gateway/rbac.yaml", "gateway/user-role.yaml"]


# A change here is a change of what an admin has to trust.
FORBIDDEN = {"*", "secrets", "configmaps", "nodes", "namespaces", "serviceaccounts",
             "serviceaccounts/token", "customresourcedefinitions", "clusterroles", "roles",
             "rolebindings", "clusterrolebindings", "pods/attach", "pods/portforward",
             "pods/ephemeralcontainers"}


@pytest.mark.parametrize("path", RBAC_FILES, ids=lambda p: str(p.relative_to(MANIFESTS)))
def test_no_role_is_wider_than_it_looks(path):
    for doc in yaml.safe_load_all(path.read_text()):
        for rule in doc.get("rules", []):
            assert not FORBIDDEN & set(rule["resources"])
            assert "*" not in rule["verbs"] + rule["apiGroups"]
            assert not {"escalate", "bind", "impersonate", "deletecollection"} & set(rule["verbs"])


def granted(path, role):
    """{(group, resource): verbs} of a role in a file."""
    rights = {}
    for doc in yaml.safe_load_all(path.read_text()):
        if doc["kind"] == "ClusterRole" and doc["metadata"]["name"] == role:
            for rule in doc["rules"]:
                for group in rule["apiGroups"]:
                    for resource in rule["resources"]:
                        rights.setdefault((group, resource), set()).update(rule["verbs"])
    return rights


def test_gateway_may_exec_and_change_nothing_but_claims():
    rights = granted(MANIFESTS / "gateway/rbac.yaml", "sandbox-gateway-sandboxes")
    assert rights["", "pods/exec"] == {"create", "get"}
    changing = {key for key, verbs in rights.items()
                if verbs & {"create", "update", "patch", "delete"}}
    assert changing == {("", "pods/exec"), ("extensions.agents.x-k8s.io", "sandboxclaims")}


def test_controller_may_not_exec_and_makes_no_claims():
    rights = granted(MANIFESTS / "controller/rbac.yaml", "agent-sandbox-controller")
    assert ("", "pods/exec") not in rights
    assert "create" not in rights["extensions.agents.x-k8s.io", "sandboxclaims"]
    # For owner references that block deletion, of each kind that owns something.
    for group, kind in (("agents.x-k8s.io", "sandboxes"),
                        ("extensions.agents.x-k8s.io", "sandboxclaims"),
                        ("extensions.agents.x-k8s.io", "sandboxtemplates"),
                        ("extensions.agents.x-k8s.io", "sandboxwarmpools")):
        assert rights[group, f"{kind}/finalizers"] == {"update"}


@needs_kubectl
def test_example_refers_to_what_is_there():
    objects = build(MANIFESTS / "examples")
    pool = of_kind(objects, "SandboxWarmPool")["simple-sandbox-warmpool"]
    template = of_kind(objects, "SandboxTemplate")[pool["spec"]["sandboxTemplateRef"]["name"]]
    assert {o["metadata"]["namespace"] for o in (pool, template)} == {"default"}
    container, = template["spec"]["podTemplate"]["spec"]["containers"]
    assert container["image"] == "k8s-agent-sandbox/sandbox-python:dev"
    binding = of_kind(objects, "RoleBinding")["example-agent"]
    roles = of_kind(build(MANIFESTS / "gateway"), "ClusterRole")
    assert binding["roleRef"]["name"] in roles


def test_example_fits_the_schema():
    """Every field of the example exists; an API server would drop the others in silence."""
    def unknown(node, value, path):
        if isinstance(value, dict):
            for name, child in value.items():
                inner = node.get("properties", {}).get(name) or node.get("additionalProperties")
                if inner is None:
                    yield f"{path}.{name}"
                else:
                    yield from unknown(inner, child, f"{path}.{name}")
        elif isinstance(value, list):
            for child in value:
                yield from unknown(node["items"], child, path + "[]")

    for name in ("sandboxtemplate.yaml", "sandboxwarmpool.yaml"):
        document = read(MANIFESTS / "examples" / name)
        spec = at(document["kind"], "spec")
        assert list(unknown(spec, document["spec"], "spec")) == []
        broken = copy.deepcopy(document["spec"])
        broken["nonsense"] = {}
        assert list(unknown(spec, broken, "spec")) == ["spec.nonsense"]


# ---- what the pages tell to type

def blocks(page, language):
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def test_readme_makes_the_account_that_it_binds():
    text = "\n".join(blocks("README.md", "sh"))
    bound = re.findall(r"--serviceaccount=(\S+):(\S+)", text)
    assert bound
    for namespace, name in bound:
        made = text.index(f"kubectl create serviceaccount {name} -n {namespace}")
        assert made < text.index(f"--serviceaccount={namespace}:{name}")
        assert f"kubectl create token {name} -n {namespace} " in text


def test_pages_apply_on_the_server_as_the_demo_does():
    for page in ("README.md", "manifests/README.md"):
        for line in "\n".join(blocks(page, "sh")).splitlines():
            assert "kubectl apply" not in line or "--server-side" in line, f"{page}: {line}"


@needs_kubectl
def test_overlays_of_the_manifests_page(tmp_path):
    for part in ("crds", "manifests"):
        shutil.copytree(ROOT / part, tmp_path / part)
    overlays = [b for b in blocks("manifests/README.md", "yaml") if "kind: Kustomization" in b]
    assert len(overlays) == 2
    rendered = ""
    for name, text in zip(("my-system", "my-examples"), overlays):
        folder = tmp_path / "manifests" / name
        folder.mkdir()
        (folder / "kustomization.yaml").write_text(text, encoding="utf-8")
        run = subprocess.run(["kubectl", "kustomize", str(folder)], capture_output=True, text=True,
                             check=True)
        rendered += run.stdout
    for image in ("sandbox-controller", "sandbox-gateway", "sandbox-python"):
        assert f"image: registry.example/{image}:1.0" in rendered
    assert "image: k8s-agent-sandbox/" not in rendered


def test_the_policy_of_the_security_page_closes_both_directions():
    policies = [yaml.safe_load(b) for b in blocks("docs/security.md", "yaml")]
    policy, = [p for p in policies if p["kind"] == "NetworkPolicy"]
    assert sorted(policy["spec"]["policyTypes"]) == ["Egress", "Ingress"]
    assert not {"ingress", "egress"} & set(policy["spec"])
    label, = policy["spec"]["podSelector"]["matchExpressions"]
    names = (ROOT / "controller/names.h").read_text(encoding="utf-8")
    assert f'#define LABEL_TEMPLATE_REF "{label["key"]}"' in names and label["operator"] == "Exists"
