# SPDX-License-Identifier: Apache-2.0
"""Each wrong input of a user gets a clear answer: what happened, whether a retry helps, what to call next."""

import concurrent.futures
import re
import time

import pytest

from support.daemons import Gateway, account_kubeconfig
from support.kube import name_of
from support.mcp_raw import Raw, create
from support.proxy import CuttableProxy
from support.space import BUSYBOX_IMAGE, IDLE, PAUSE_IMAGE, blueprint, container, unique

CLAIM_COUNT = "count/sandboxclaims.extensions.agents.x-k8s.io"


def is_clear(text, *words, next_call=None, retry=None):
    """Says all the words, names the next call, and nothing of the inside."""
    for word in words:
        assert word.lower() in text.lower(), f"{word!r} is not in: {text}"
    if next_call:
        assert next_call in text, text
    if retry is not None:
        assert (("may succeed later" in text) is retry) and (("does not help" in text) is not retry), text
    for inside in (r"10\.\d+\.\d+\.\d+", r"https?://", r"Bearer", r"eyJ", r"/apis?/", r"0x[0-9a-f]{6}", r"errno"):
        assert not re.search(inside, text), f"{inside} in: {text}"
    return text


# ---- create_sandbox

def test_unknown_warm_pool(raw, space):
    started = time.monotonic()
    said = raw.error("create_sandbox", warmpool="no-such-pool", namespace=space.name)
    is_clear(said, "no-such-pool", "not found", next_call="create_sandbox", retry=False)
    assert time.monotonic() - started < 10
    # Nothing is left behind.
    space.kube.wait_all("SandboxClaim", space.name, "without it",
                        lambda claims: not any(c["spec"]["warmPoolRef"]["name"] == "no-such-pool" for c in claims))


def test_a_pool_without_its_template(raw, space):
    space.pool("hollow", "no-such-template", 0)
    is_clear(raw.error("create_sandbox", warmpool="hollow", namespace=space.name), "no-such-template", "not found")


@pytest.mark.parametrize("arguments,words", [
    ({"warmpool": ""}, ["warmpool"]), ({"warmpool": "Not A Name"}, ["warmpool"]),
    ({"shutdown_after_seconds": 0}, ["shutdown_after_seconds", "1"]),
    ({"shutdown_after_seconds": -1}, ["shutdown_after_seconds"]),
    ({"shutdown_after_seconds": 10**18}, ["shutdown_after_seconds"]),
    ({"shutdown_after_seconds": 1.5}, ["shutdown_after_seconds"]),
    ({"sandbox_ready_timeout": 0}, ["sandbox_ready_timeout"]),
    ({"labels": {"no good": "x"}}, ["labels", "no good"]), ({"labels": {"a": "no good"}}, ["labels", "no good"]),
    ({"labels": ["x"]}, ["labels"]), ({"labels": {"agents.x-k8s.io/x": "1"}}, ["reserved"]),
    ({"pod_labels": {"agents.x-k8s.io/claim-uid": "x"}}, ["pod_labels", "reserved"]),
    ({"pod_annotations": {"/": "x"}}, ["pod_annotations"])])
def test_arguments_of_create(raw, space, arguments, words):
    said = raw.error("create_sandbox", **{"warmpool": "pool", "namespace": space.name, **arguments})
    is_clear(said, *words, next_call="create_sandbox", retry=False)


def test_pod_labels_that_the_cluster_does_not_allow(raw, space, warmpool):
    said = raw.error("create_sandbox", warmpool=warmpool, namespace=space.name, pod_labels={"example.com/x": "1"})
    is_clear(said, "example.com", "allowlist", retry=False)


def test_not_ready_in_time(raw, space):
    """No node can take the pod: the answer comes in time, and the claim is gone again."""
    space.template("nowhere", blueprint(nodeSelector={"nowhere": "1"}))
    space.pool("nowhere", "nowhere", 0)
    started = time.monotonic()
    said = raw.error("create_sandbox", warmpool="nowhere", namespace=space.name, sandbox_ready_timeout=2)
    assert 1.5 < time.monotonic() - started < 30
    is_clear(said, "was not ready within 2 seconds", "deleted", next_call="sandbox_ready_timeout", retry=True)
    claim = re.search(r"sandbox-claim-[0-9a-f]+", said).group()
    space.wait_gone("SandboxClaim", claim)


def test_quota(raw, space, warmpool):
    """Claims beyond the quota are refused by the API server, pods beyond it by way of the controller."""
    with space.quota(**{CLAIM_COUNT: len(space.list("SandboxClaim"))}):
        said = raw.error("create_sandbox", warmpool=warmpool, namespace=space.name)
        is_clear(said, "exceeded quota", next_call="delete_sandbox", retry=True)
    space.pool("cold", "box", 0)
    with space.quota(pods=0):
        started = time.monotonic()
        said = raw.error("create_sandbox", warmpool="cold", namespace=space.name)
        is_clear(said, "exceeded quota", next_call="delete_sandbox", retry=True)
        assert time.monotonic() - started < 15


@pytest.fixture(name="admission")
def admission_fixture(space):
    """The API server refuses every pod of this namespace that is labelled so."""
    name = space.name
    space.kube.create("ValidatingAdmissionPolicy", None, name, {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                                                "resources": ["pods"]}]},
        "validations": [{"expression": "!('denied' in object.metadata.?labels.orValue({}))",
                         "message": "no such pods on this cluster"}]})
    space.kube.create("ValidatingAdmissionPolicyBinding", None, name, {
        "policyName": name, "validationActions": ["Deny"],
        "matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}}})
    yield
    space.kube.delete("ValidatingAdmissionPolicyBinding", None, name)
    space.kube.delete("ValidatingAdmissionPolicy", None, name)


def test_admission(raw, space, admission):
    assert admission is None
    # The policy works from some moment on.
    space.kube.wait_all("Namespace", None, "there", lambda found: space.name in map(name_of, found))
    space.template("denied", blueprint(labels={"denied": "1"}))
    space.pool("denied", "denied", 0)
    end = time.monotonic() + 20
    while space.kube.kubectl("-n", space.name, "run", "probe", "--image=x", "--labels=denied=1", "--dry-run=server",
                             check=False).returncode == 0:
        assert time.monotonic() < end, "the policy does not come into force"
    said = raw.error("create_sandbox", warmpool="denied", namespace=space.name)
    is_clear(said, "no such pods on this cluster")
    space.delete("SandboxWarmPool", "denied")


def test_a_namespace_that_is_not_there(raw, system):
    """To somebody who may do something everywhere."""
    token = cluster_wide_token(system)
    said = raw.with_(token=token).error("create_sandbox", warmpool="pool", namespace="no-such-namespace")
    is_clear(said, "no-such-namespace", next_call="create_sandbox", retry=False)


def cluster_wide_token(system):
    kube, name = system.kube, "e2e-everywhere"
    if not kube.find("ServiceAccount", "default", name):
        kube.create("ServiceAccount", "default", name)
        kube.create("ClusterRoleBinding", None, name, subjects=[
            {"kind": "ServiceAccount", "name": name, "namespace": "default"}],
            roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "sandbox-user"})
    return kube.token("default", name, "k8s-agent-sandbox-mcp")


@pytest.fixture(scope="module", autouse=True)
def remove_cluster_wide(kube):
    yield
    kube.delete("ServiceAccount", "default", "e2e-everywhere")
    kube.delete("ClusterRoleBinding", None, "e2e-everywhere")


# ---- a sandbox that one may not use

ARGUMENTS = {"execute_command": {"command": "true"}, "upload_file": {"path": "/tmp/x", "content": ""},
             "download_file": {"path": "/x"}, "list_files": {"path": "/"}, "file_exists": {"path": "/"},
             "delete_sandbox": {}, "get_sandbox_status": {}}


@pytest.fixture(scope="module", name="other")
def other_fixture(raw, space):
    """Somebody else with the same rights in the same namespace."""
    return raw.with_(token=space.user("other"))


@pytest.mark.parametrize("tool", ARGUMENTS)
def test_foreign_and_unknown_are_the_same(raw, space, box, other, tool):
    """Whose a sandbox is, or that it exists, is nobody else's business."""
    space.claim("without-owner")
    unknown = {"namespace": space.name, "sandbox_claim_name": "sandbox-claim-unknown"}
    if tool == "get_sandbox_status":
        answers = [other.call(tool, **box.where), raw.call(tool, **unknown),
                   raw.call(tool, namespace=space.name, sandbox_claim_name="without-owner")]
        assert all((a["status"], a["ready"]) == ("SandboxNotFound", False) for a in answers)
        texts = [a["message"] for a in answers]
    else:
        texts = [other.error(tool, **box.where, **ARGUMENTS[tool]), raw.error(tool, **unknown, **ARGUMENTS[tool]),
                 raw.error(tool, namespace=space.name, sandbox_claim_name="without-owner", **ARGUMENTS[tool])]
        is_clear(texts[0], f"Sandbox claim '{box.claim}' is not found in namespace '{space.name}'",
                 next_call="nothing is left to do" if tool == "delete_sandbox" else "create_sandbox", retry=False)
    names = [box.claim, "sandbox-claim-unknown", "without-owner"]
    assert len({t.replace(n, "NAME") for t, n in zip(texts, names)}) == 1, texts
    space.delete("SandboxClaim", "without-owner")
    assert box.sh("echo still here") == "still here\n"


@pytest.mark.parametrize("name", ["", "UPPER", "../secrets/x", "a b", "x" * 300, "a/b", "a%2fb", "a?b"])
def test_names_that_are_none(raw, space, name):
    for arguments in ({"namespace": space.name, "sandbox_claim_name": name},
                      {"namespace": name, "sandbox_claim_name": "x"}):
        said = raw.error("file_exists", path="/", **arguments)
        is_clear(said, retry=False)


def test_after_deletion(raw, space, warmpool):
    box = create(raw, space.name, warmpool)
    box.sh("true")
    box.delete()
    is_clear(box.error("execute_command", command="true"), "not found", next_call="create_sandbox")
    assert box.call("get_sandbox_status")["status"] == "SandboxNotFound"
    is_clear(box.error("delete_sandbox"), "not found")


# ---- inside

@pytest.fixture(scope="module", name="fenced")
def fenced_fixture(raw, space):
    """A sandbox that may write little: another user than root, a small and full disk."""
    one = container(BUSYBOX_IMAGE, command=IDLE, volumeMounts=[{"name": "small", "mountPath": "/small"}])
    spec = {"terminationGracePeriodSeconds": 1, "containers": [one],
            "securityContext": {"runAsUser": 1000, "runAsGroup": 1000, "fsGroup": 1000},
            "volumes": [{"name": "small", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}]}
    space.template("fenced", {"podTemplate": {"spec": spec}})
    space.pool("fenced", "fenced", 0)
    return create(raw, space.name, "fenced", shutdown_after_seconds=900)


def test_permission_denied(fenced):
    is_clear(fenced.error("upload_file", path="/etc/x", content="x"), "Permission denied", "/etc", retry=False)
    is_clear(fenced.error("upload_file", path="/new/x", content="x"), "Permission denied", retry=False)
    fenced.sh("mkdir -p /tmp/shut && : > /tmp/shut/file && : > /tmp/unreadable && chmod 0 /tmp/unreadable /tmp/shut")
    is_clear(fenced.error("download_file", path="/tmp/unreadable"), "Permission denied", retry=False)
    is_clear(fenced.error("list_files", path="/tmp/shut"), "Permission denied", retry=False)
    # It cannot be told: that is no "false".
    is_clear(fenced.error("file_exists", path="/tmp/shut/file"), "Permission denied", retry=False)
    assert fenced.run("cat /tmp/unreadable")["exit_code"] == 1


def test_no_space_left(fenced):
    said = fenced.error("upload_file", path="/small/x", content="x" * (3 << 20))
    is_clear(said, "space")
    assert fenced.sh("ls -A /small") == ""


def test_path_not_there_and_directories(box):
    is_clear(box.error("download_file", path="/tmp/nothing"), "No such file", "/tmp/nothing", next_call="list_files",
             retry=False)
    is_clear(box.error("download_file", path="/tmp"), "/tmp", "directory", retry=False)
    is_clear(box.error("upload_file", path="/tmp", content="x"), "/tmp", "directory", retry=False)


# ---- a command that does not start

def test_an_image_without_a_shell(raw, space):
    space.template("bare", blueprint(PAUSE_IMAGE))
    space.pool("bare", "bare", 0)
    box = create(raw, space.name, "bare")
    started = time.monotonic()
    for tool in ("execute_command", "upload_file", "list_files"):
        is_clear(box.error(tool, **ARGUMENTS[tool]), "shell", retry=False)
    assert time.monotonic() - started < 15
    box.delete()


def test_the_pod_is_killed_before_the_command_starts(raw, space, warmpool):
    """The pod is gone, the claim says Ready for another moment: nothing ran, and it is said."""
    box = create(raw, space.name, warmpool)
    pod = space.get("SandboxClaim", box.claim)["status"]["sandbox"]["name"]
    space.kube.request("DELETE", space.kube.path("Pod", space.name, pod), {"gracePeriodSeconds": 0})
    result = raw.try_call("execute_command", command="echo ran", **box.where)
    if result.get("isError"):
        is_clear(result["content"][0]["text"], next_call="get_sandbox_status")
    else:
        # It came before the end of the pod: then it ran, to its end or not.
        assert result["structuredContent"]["ended"] in ("exited", "lost", "signaled")
    # The controller makes another pod, and the sandbox can be used again.
    end = time.monotonic() + 60
    while not box.call("get_sandbox_status")["ready"]:
        assert time.monotonic() < end
    assert box.sh("echo again") == "again\n"
    box.delete()


def test_the_pod_is_killed_during_a_command(raw, space, warmpool):
    box = create(raw, space.name, warmpool)
    pod = space.get("SandboxClaim", box.claim)["status"]["sandbox"]["name"]
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        running = pool.submit(box.run, "echo begun; sleep 60")
        box.sh("while ! grep -q 'sleep.60' /proc/[0-9]*/cmdline; do sleep 0.1; done")
        space.kube.request("DELETE", space.kube.path("Pod", space.name, pod), {"gracePeriodSeconds": 0})
        done = running.result(timeout=45)
    assert done["ended"] in ("lost", "signaled", "exited") and done["exit_code"] != 0, done
    if done["ended"] == "lost":
        assert done["exit_code"] == 255 and "Check its effects" in done["note"]
    box.delete()


def test_out_of_memory(raw, space):
    one = container(BUSYBOX_IMAGE, command=IDLE)
    one["resources"]["limits"] = {"memory": "48Mi"}
    space.template("lean", {"podTemplate": {"spec": {"terminationGracePeriodSeconds": 1, "containers": [one]}}})
    space.pool("lean", "lean", 0)
    box = create(raw, space.name, "lean")
    done = box.run("head -c 200000000 /dev/zero | tail -c 150000000", timeout=60)
    if done["ended"] != "lost":
        assert (done["ended"], done["exit_code"]) == ("oom", 137), done
        assert "memory" in done["note"]
    box.delete()


# ---- the API server is away

@pytest.fixture(name="outside")
def outside_fixture(space, system, tmp_path):
    """A gateway outside the cluster, behind a proxy that can be cut."""
    with CuttableProxy(system.kube.host) as proxy:
        config = account_kubeconfig(system.kube, tmp_path / "kubeconfig", "agent-sandbox-system", "sandbox-gateway",
                                    server=proxy.url)
        with Gateway(config, tmp_path) as gateway:
            yield gateway, proxy
    assert space


def test_the_api_server_is_away(outside, raw, space, warmpool):
    gateway, proxy = outside
    here = Raw(gateway.url, raw.token)
    box = create(here, space.name, warmpool)
    assert box.sh("echo before") == "before\n"
    proxy.cut()
    # What needs no API server goes on.
    assert here.result("tools/list")["tools"]
    for tool in ("execute_command", "file_exists"):
        started = time.monotonic()
        is_clear(box.error(tool, **ARGUMENTS[tool]), retry=True)
        assert time.monotonic() - started < 40
    is_clear(here.error("create_sandbox", warmpool=warmpool, namespace=space.name), retry=True)
    # A token that nobody has looked at yet cannot be checked: not "401", for it may be good.
    answer = here.with_(token=space.token("agent", seconds=700)).request("tools/list")
    assert answer.status == 503 and "retry-after" in answer.headers
    proxy.mend()
    end = time.monotonic() + 60
    while box.raw.try_call("execute_command", command="echo after", **box.where).get("isError"):
        assert time.monotonic() < end
    box.delete()
    unused = unique("x")
    assert unused and gateway.alive()
