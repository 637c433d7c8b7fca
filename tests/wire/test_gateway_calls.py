# SPDX-License-Identifier: Apache-2.0
"""The life of tool calls: sandboxes made and lost, commands, streams, disconnects, budgets, the end."""

import base64
import calendar
import hashlib
import json
import os
import re
import threading
import time

import pytest
from cluster import NS, OWNER, OWNER_LABEL, Cluster, Controller, ready, running
from fakeapi import CLAIMS, PODS, SANDBOXES, apply_then_drop, apply_then_hold, status
from fakeexec import FakeExec, failure, is_exec, kill_left_over
from gateway import Gateway, in_background

ALICE = {"username": "system:serviceaccount:team:alice", "uid": "u-alice", "groups": []}
BOB = {"username": "bob", "groups": []}
ALICE_OWNER = hashlib.sha256(b"kubernetes\0system:serviceaccount:team:alice\0u-alice").hexdigest()[:32]


@pytest.fixture
def cluster(api):
    api.users.update({"t-alice": ALICE, "t-bob": BOB})
    return Cluster(api)


@pytest.fixture
def gw(api, cluster, tmp_path):
    with Gateway(api, tmp_path) as gateway:
        yield gateway.ready()


@pytest.fixture
def execs(api, tmp_path):
    folder = tmp_path / "sandbox"
    folder.mkdir()
    fake = FakeExec(cwd=folder)
    api.rule(is_exec, fake)
    yield fake
    kill_left_over()  # a container that goes takes its processes along


def ready_sandbox(gw, cluster):
    """A ready sandbox of alice's; the arguments that name it."""
    cluster.claim("c1", ALICE_OWNER)
    cluster.bind("c1")
    arguments = {"sandbox_claim_name": "c1", "namespace": NS}
    cluster.api.wait_for(lambda: gw.call("get_sandbox_status", **arguments).structured["ready"], what="ready")
    return arguments


@pytest.fixture
def sandbox(cluster, gw, execs):
    return ready_sandbox(gw, cluster)


def claims_posted(api):
    return api.seen(lambda r: r.method == "POST" and r.resource == CLAIMS)


def claims_deleted(api):
    return api.seen(lambda r: r.method == "DELETE" and r.resource == CLAIMS)


# --- create ---

def test_create(gw, api, cluster):
    began = time.time()
    with Controller(cluster):
        made = gw.call("create_sandbox", warmpool="pool", namespace=NS, labels={"team": "a", OWNER_LABEL: "forged"},
                       pod_labels={"sandbox.users.io/x": "y"}, shutdown_after_seconds=600).structured
    request, = claims_posted(api)
    body = request.json
    assert made["sandbox_claim_name"] == body["metadata"]["name"]
    assert body["metadata"]["labels"] == {"team": "a", OWNER_LABEL: ALICE_OWNER}
    assert body["metadata"]["annotations"][OWNER] == ALICE_OWNER
    assert body["metadata"]["annotations"]["k8s-agent-sandbox-mcp/created-by"] == f"kubernetes:{ALICE['username']}"
    assert body["spec"]["warmPoolRef"] == {"name": "pool"}
    assert body["spec"]["additionalPodMetadata"] == {"labels": {"sandbox.users.io/x": "y"}}
    assert body["spec"]["lifecycle"]["shutdownPolicy"] == "Delete"
    assert body["spec"]["lifecycle"]["shutdownTime"] == made["expires_at"]
    expires = calendar.timegm(time.strptime(made["expires_at"], "%Y-%m-%dT%H:%M:%SZ"))
    assert began + 600 <= expires <= time.time() + 601
    assert request.query["fieldManager"] == "sandbox-gateway"
    assert not claims_deleted(api)


def test_create_without_end(gw, api, cluster):
    with Controller(cluster):
        made = gw.call("create_sandbox", warmpool="pool", namespace=NS, shutdown_after_seconds=None).structured
    assert "expires_at" not in made and "lifecycle" not in claims_posted(api)[0].json["spec"]


@pytest.mark.parametrize("reason,message", [
    ("WarmPoolNotFound", 'SandboxWarmPool "nope" not found'), ("TemplateNotFound", 'SandboxTemplate "t" not found'),
    ("InvalidMetadata", 'label domain "x" is not in the allowlist'),
    ("ReconcilerError", 'Error seen: pods "x" is forbidden: exceeded quota: q, requested: pods=1'),
    ("ReconcilerError", 'Error seen: admission webhook "w" denied the request: no')])
def test_create_fails_early_and_leaves_nothing(gw, api, cluster, reason, message):
    wait = in_background(gw.call, "create_sandbox", warmpool="nope", namespace=NS)
    api.wait_for(cluster.claims, what="the claim")
    name = cluster.claims()[0]["metadata"]["name"]
    cluster.status(name, ready("False", reason, message))
    text = wait().error_text
    assert message.split(": ")[-1] in text and "create_sandbox" in text
    assert cluster.claims() == []


def test_create_times_out_and_names_the_claim(gw, cluster):
    began = time.monotonic()
    text = gw.call("create_sandbox", warmpool="pool", namespace=NS, sandbox_ready_timeout=1).error_text
    assert 1 <= time.monotonic() - began < 20
    assert re.search(r"sandbox-claim-[0-9a-f]+", text) and "within 1 seconds" in text
    assert "again with a longer sandbox_ready_timeout" in text
    assert cluster.claims() == []


def test_create_says_why_a_pod_does_not_start(gw, api, cluster):
    wait = in_background(gw.call, "create_sandbox", warmpool="pool", namespace=NS, sandbox_ready_timeout=2)
    api.wait_for(cluster.claims, what="the claim")
    pending = {"phase": "Pending", "containerStatuses": [
        {"name": "main", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}]}
    cluster.bind(cluster.claims()[0]["metadata"]["name"], pod_status=pending,
                 condition=ready("False", "DependenciesNotReady", "Pod exists with phase: Pending"))
    text = wait().error_text
    assert "ImagePullBackOff: no such image" in text
    assert "Tell the administrator" in text and "again with a longer" not in text


def test_create_ends_when_the_claim_is_deleted(gw, api, cluster):
    wait = in_background(gw.call, "create_sandbox", warmpool="pool", namespace=NS)
    api.wait_for(cluster.claims, what="the claim")
    name = cluster.claims()[0]["metadata"]["name"]
    api.wait_for(lambda: gw.call("get_sandbox_status", sandbox_claim_name=name, namespace=NS)
                 .structured["status"] == "SandboxNotReady", what="the gateway sees it")
    api.store.delete(CLAIMS, NS, name)
    assert "deleted before it was ready" in wait().error_text


def test_create_whose_claim_is_deleted_before_it_is_answered(gw, api, cluster):
    """The watch may be quicker than the answer to the create."""
    answered = threading.Event()
    api.rule(lambda r: r.method == "POST" and r.resource == CLAIMS, apply_then_hold(answered), times=1)
    wait = in_background(gw.call, "create_sandbox", warmpool="pool", namespace=NS)
    api.wait_for(cluster.claims, what="the claim")
    name = cluster.claims()[0]["metadata"]["name"]
    for wanted, change in (("SandboxNotReady", lambda: None),
                           ("SandboxNotFound", lambda: api.store.delete(CLAIMS, NS, name))):
        change()
        api.wait_for(lambda status=wanted: gw.call("get_sandbox_status", sandbox_claim_name=name, namespace=NS)
                     .structured["status"] == status, what="the gateway sees it")
    answered.set()
    assert "deleted before it was ready" in wait().error_text


def test_create_abandoned_by_its_caller_is_deleted(gw, api, cluster):
    sock = gw.begin("create_sandbox", warmpool="pool", namespace=NS)
    api.wait_for(cluster.claims, what="the claim")
    sock.close()
    api.wait_for(lambda: cluster.claims() == [], what="the claim is gone")
    gw.wait_log("create_sandbox outcome=cancelled")


def test_create_abandoned_before_the_claim_exists(gw, api, cluster):
    from fakeapi import stall
    rule = api.rule(lambda r: r.method == "POST" and r.resource == CLAIMS, stall(1), times=1)
    sock = gw.begin("create_sandbox", warmpool="pool", namespace=NS)
    api.wait_for(lambda: rule.hits, what="the create")
    sock.close()
    gw.wait_log("create_sandbox outcome=cancelled", timeout=60)
    assert cluster.claims() == []


def test_taken_name_is_tried_again_with_another(gw, api, cluster):
    api.rule(lambda r: r.method == "POST" and r.resource == CLAIMS, status(409, "AlreadyExists", "taken"), times=2)
    with Controller(cluster):
        gw.call("create_sandbox", warmpool="pool", namespace=NS).structured
    names = [r.json["metadata"]["name"] for r in claims_posted(api)]
    assert len(set(names)) == 3 and len(cluster.claims()) == 1


def test_create_whose_answer_was_lost_makes_one_claim(gw, api, cluster):
    api.rule(lambda r: r.method == "POST" and r.resource == CLAIMS, apply_then_drop(), times=1)
    with Controller(cluster):
        made = gw.call("create_sandbox", warmpool="pool", namespace=NS).structured
    assert [c["metadata"]["name"] for c in cluster.claims()] == [made["sandbox_claim_name"]]
    assert len(claims_posted(api)) == 1


@pytest.mark.parametrize("code,reason,message,words", [
    (403, "Forbidden", 'sandboxclaims is forbidden: User "gw" cannot create resource', "create sandboxclaims"),
    (403, "Forbidden", 'sandboxclaims "x" is forbidden: exceeded quota: q', "Call delete_sandbox"),
    (404, "NotFound", 'namespaces "team" not found', "namespace that exists"),
    (400, "BadRequest", 'admission webhook "w" denied the request: no', "denied the request"),
    (422, "Invalid", "spec.warmPoolRef: Invalid value", "Invalid value")])
def test_create_refused_by_the_api(gw, api, cluster, code, reason, message, words):
    api.rule(lambda r: r.method == "POST" and r.resource == CLAIMS, status(code, reason, message))
    assert words in gw.call("create_sandbox", warmpool="pool", namespace=NS).error_text
    assert cluster.claims() == []


# --- whose sandbox ---

TOOLS = {"execute_command": {"command": "true"}, "upload_file": {"path": "/a", "content": "x"},
         "download_file": {"path": "/a"}, "list_files": {"path": "/"}, "file_exists": {"path": "/"}, "delete_sandbox": {}}


@pytest.mark.parametrize("tool", TOOLS)
def test_foreign_and_missing_get_the_same_text(gw, sandbox, execs, cluster, tool):
    def text(name):
        return gw.call(tool, sandbox_claim_name=name, namespace=NS, headers={"token": "t-bob"}, **TOOLS[tool]).error_text

    foreign, missing = text("c1"), text("c2")
    assert foreign.replace("c1", "c2") == missing
    assert ("nothing is left to do" if tool == "delete_sandbox" else "create_sandbox") in missing
    assert not execs.streams and len(cluster.claims()) == 1


def test_status_of_foreign_and_missing(gw, sandbox):
    for name, token in (("c1", "t-bob"), ("c2", "t-bob"), ("c2", "t-alice")):
        said = gw.call("get_sandbox_status", sandbox_claim_name=name, namespace=NS, headers={"token": token}).structured
        assert (said["status"], said["ready"]) == ("SandboxNotFound", False)


def test_claim_without_an_owner_cannot_be_used(gw, api, cluster, execs):
    api.store.create(CLAIMS, NS, {"metadata": {"name": "plain"}, "spec": {"warmPoolRef": {"name": "p"}}})
    cluster.bind("plain")
    assert "not found" in gw.call("execute_command", sandbox_claim_name="plain", namespace=NS, command="true").error_text


def test_rights_are_asked_for_and_named(gw, sandbox, api, execs):
    wanted = []
    api.allow = lambda spec: wanted.append(spec["resourceAttributes"]) or False
    for tool, more in TOOLS.items():
        text = gw.call(tool, **sandbox, **more, headers={"token": "t-bob"}).error_text
        assert "sandboxclaims" in text and NS in text and "bob" in text
    assert {(a["verb"], a.get("subresource")) for a in wanted} == {
        ("create", "exec"), ("create", "files"), ("delete", None)}
    assert all(a["namespace"] == NS and a["group"] == "extensions.agents.x-k8s.io" for a in wanted)
    assert not execs.streams


def test_chain_is_followed_by_uid(gw, sandbox, api, cluster, execs):
    api.store.create(PODS, NS, {"metadata": {"name": "c1", "labels": {"agents.x-k8s.io/sandbox-name-hash": "0"}},
                                "spec": {"containers": [{"name": "main"}]}, "status": running()})
    gw.call("execute_command", **sandbox, command="true").structured
    request, = api.seen(lambda r: r.subresource == "exec")
    assert request.name == "pool-x1"
    api.store.patch(PODS, NS, "pool-x1", {"metadata": {"ownerReferences": [{"controller": True, "uid": "other", "name": "x"}]}},
                    "application/merge-patch+json")
    api.wait_for(lambda: not gw.call("get_sandbox_status", **sandbox).structured["ready"], what="the gateway sees it")
    assert "pod does not exist" in gw.call("execute_command", **sandbox, command="true").error_text
    assert len(execs.streams) == 1


def test_another_replicas_claim_costs_one_read(gw, api, cluster, execs):
    from fakeapi import stall
    api.rule(lambda r: r.is_watch and r.resource == CLAIMS, stall(0.5))
    api.cut_all()
    cluster.claim("new", ALICE_OWNER)
    cluster.bind("new")
    reads = len(api.seen(lambda r: r.method == "GET" and r.name == "new"))
    api.clear_rules()
    api.rule(is_exec, execs)
    assert gw.call("execute_command", sandbox_claim_name="new", namespace=NS, command="echo hi").structured["stdout"] == "hi\n"
    assert len(api.seen(lambda r: r.method == "GET" and r.name == "new")) - reads <= 1


def test_guessing_names_is_limited(gw, api):
    replies = [gw.call("get_sandbox_status", sandbox_claim_name=f"x{i}", namespace=NS) for i in range(40)]
    assert any(r.result.get("isError") and "too many" in r.error_text for r in replies)
    assert len(api.seen(lambda r: r.method == "GET" and (r.name or "").startswith("x"))) < 30


# --- status ---

@pytest.mark.parametrize("condition,pod,status,words", [
    (ready(), running(), "SandboxReady", "Pod is Ready"),
    (ready("False", "SandboxSuspended", "Sandbox is suspended"), None, "SandboxNotReady", "suspended"),
    (ready("False", "ClaimExpired", "Claim expired."), running(), "SandboxNotReady", "expired"),
    (ready("False", "PodFailed", "Pod failed"), {"phase": "Failed"}, "SandboxNotReady", "failed"),
    (ready("False", "DependenciesNotReady", "Pod is Running but not Ready"), running(), "SandboxNotReady", "not Ready")])
def test_status(gw, api, cluster, condition, pod, status, words):
    cluster.claim("c1", ALICE_OWNER)
    cluster.bind("c1", condition=condition, pod_status=pod)

    def said():
        return gw.call("get_sandbox_status", sandbox_claim_name="c1", namespace=NS).structured

    api.wait_for(lambda: words in said()["message"], what=words)
    assert said()["status"] == status and said()["ready"] == (status == "SandboxReady")


# --- commands ---

def test_command(gw, sandbox, execs):
    said = gw.call("execute_command", **sandbox, command="echo out; echo err >&2; exit 3").structured
    assert (said["exit_code"], said["stdout"], said["stderr"], said["ended"]) == (3, "out\n", "err\n", "exited")
    assert len(execs.streams) == 1


def test_bytes_that_are_no_text(gw, sandbox):
    said = gw.call("execute_command", **sandbox, command=r"printf '\377\376ok\0x'").structured
    assert said["stdout"] == "\ufffd\ufffdok\0x" and said["invalid_utf8"] is True and said["exit_code"] == 0
    assert said["stdout_bytes"] == 6


def test_command_past_its_time(gw, sandbox):
    began = time.monotonic()
    said = gw.call("execute_command", **sandbox, command="echo before; sleep 100", timeout=1).structured
    assert (said["exit_code"], said["ended"], said["stdout"]) == (124, "timed_out", "before\n")
    assert "timeout" in said["note"] and time.monotonic() - began < 20


def test_lost_stream_is_no_success(gw, sandbox, execs, tmp_path, api):
    wait = in_background(gw.call, "execute_command", **sandbox, command="touch begun; sleep 5")
    api.wait_for((tmp_path / "sandbox/begun").exists, what="the command runs")
    execs.streams[-1].reset()
    said = wait().structured
    assert (said["exit_code"], said["ended"]) == (255, "lost") and "Check its effects" in said["note"]


def lose(gw, sandbox, api, execs, tmp_path, pod_status):
    """A command whose stream ends with its container; pod_status is what the pod says from then on."""
    wait = in_background(gw.call, "execute_command", **sandbox, command="touch begun; sleep 100", timeout=120)
    api.wait_for((tmp_path / "sandbox/begun").exists, what="the command runs")
    api.store.patch(PODS, NS, "pool-x1", {"status": pod_status}, "application/merge-patch+json", "status")
    execs.streams[-1].reset()
    said = wait(20).structured
    return said["ended"], said["exit_code"], said["note"]


def restarted(reason, container="containerd://main-1", ago=0):
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - ago))
    return {"phase": "Running", "containerStatuses": [
        {"name": "main", "containerID": "containerd://main-2", "state": {"running": {}}, "restartCount": 1,
         "lastState": {"terminated": {"containerID": container, "reason": reason, "finishedAt": at}}}]}


def is_pod_read(request):
    return request.method == "GET" and request.resource == PODS and request.name and not request.subresource


def test_container_out_of_memory_during_a_command(gw, sandbox, api, execs, tmp_path):
    ended, code, note = lose(gw, sandbox, api, execs, tmp_path, restarted("OOMKilled"))
    assert (ended, code) == ("oom", 137) and "killed all of its container" in note
    assert len(api.seen(is_pod_read)) == 1


def test_container_restarted_during_a_command(gw, sandbox, api, execs, tmp_path):
    ended, code, note = lose(gw, sandbox, api, execs, tmp_path, restarted("Error"))
    assert (ended, code) == ("lost", 255) and "was ended" in note and "Check its effects" in note


def test_out_of_memory_before_the_command(gw, api, cluster, execs, tmp_path):
    """The container was killed and started again a while ago; now it is the connection that is lost."""
    old = restarted("OOMKilled", ago=2)
    cluster.claim("c1", ALICE_OWNER)
    cluster.bind("c1", pod_status=old)
    sandbox = {"sandbox_claim_name": "c1", "namespace": NS}
    api.wait_for(lambda: gw.call("get_sandbox_status", **sandbox).structured["ready"], what="ready")
    ended, code, note = lose(gw, sandbox, api, execs, tmp_path, old)
    assert (ended, code) == ("lost", 255) and "may still run" in note


def test_caller_leaves_while_the_pod_is_asked(gw, sandbox, api, execs, tmp_path):
    sock = gw.begin("execute_command", **sandbox, command="touch begun; sleep 100")
    api.wait_for((tmp_path / "sandbox/begun").exists, what="the command runs")
    execs.streams[-1].reset()
    api.wait_for(lambda: api.seen(is_pod_read), what="the pod is asked")
    sock.close()
    gw.wait_log("execute_command outcome=cancelled")
    assert len(api.seen(is_pod_read)) < 4


@pytest.mark.parametrize("how", ["deleted", pytest.param("terminating", marks=pytest.mark.long_wait), "replaced"])
def test_pod_that_goes_ends_its_command(gw, sandbox, api, tmp_path, how):
    wait = in_background(gw.call, "execute_command", **sandbox, command="touch begun; sleep 100", timeout=120)
    api.wait_for((tmp_path / "sandbox/begun").exists, what="the command runs")
    if how == "terminating":
        api.store.patch(PODS, NS, "pool-x1", {"metadata": {"finalizers": ["x/hold"]}}, "application/merge-patch+json")
    api.store.delete(PODS, NS, "pool-x1")
    if how == "replaced":
        api.store.create(PODS, NS, {"metadata": {"name": "pool-x1"}, "status": {"phase": "Pending"}})
    said = wait().structured
    assert (said["ended"], said["exit_code"]) == ("lost", 255)
    assert "the command ends with it" in said["note"] and "may still run" not in said["note"]


def test_command_of_a_caller_who_leaves_is_killed(gw, sandbox, execs, tmp_path, api):
    marker = tmp_path / "sandbox" / "marker"
    sock = gw.begin("execute_command", **sandbox, command="echo $$ > marker; sleep 100; echo late > late")
    api.wait_for(lambda: marker.exists() and marker.read_text().strip(), what="the command runs")
    pid = int(marker.read_text())
    sock.close()
    gw.wait_log("execute_command outcome=cancelled")

    def gone():
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
                return f.read().split()[2] == "Z"
        except FileNotFoundError:
            return True

    api.wait_for(gone, what="the command is dead")
    assert gw.call("execute_command", **sandbox, command="echo fine").structured["stdout"] == "fine\n"


def test_many_callers_leave(gw, sandbox, api):
    before = len(os.listdir(f"/proc/{gw.pid}/fd"))
    socks = [gw.begin("execute_command", **sandbox, command="sleep 30") for _ in range(20)]
    for sock in socks:
        sock.close()
    gw.call("execute_command", **sandbox, command="true", timeout=30).structured
    api.wait_for(lambda: len(os.listdir(f"/proc/{gw.pid}/fd")) <= before + 2, timeout=30, what="descriptors are back")


@pytest.mark.long_wait
def test_long_commands(gw, sandbox):
    """Three at once: with a progress token, without, and for a client that takes JSON alone. And a short one for a
    client that takes events alone."""
    reply = gw.call("execute_command", **sandbox, command="true", headers={"Accept": "text/event-stream"})
    assert reply.headers["Cache-Control"] == "no-cache, no-transform" and reply.events[0]["result"]
    with_token = in_background(gw.call, "execute_command", **sandbox, command="sleep 6; echo done", progress="p-1")
    without = in_background(gw.call, "execute_command", **sandbox, command="sleep 5.5")
    json_alone = in_background(gw.call, "execute_command", **sandbox, command="sleep 6",
                               headers={"Accept": "application/json"})
    reply = with_token()
    assert reply.status == 200 and reply.headers["Content-Type"] == "text/event-stream"
    assert reply.headers["Cache-Control"] == "no-cache, no-transform" and reply.headers["X-Accel-Buffering"] == "no"
    assert len(set(reply.header_names)) == len(reply.header_names)
    assert reply.body.startswith(b": keepalive\n\n")
    *progress, last = reply.events
    assert progress and all(p["method"] == "notifications/progress" and p["params"]["progressToken"] == "p-1"
                            for p in progress)
    assert last["id"] == 1 and last["result"]["structuredContent"]["stdout"] == "done\n"
    reply = without()
    assert len(reply.events) == 1 and reply.headers["Content-Type"] == "text/event-stream"
    reply = json_alone()
    assert reply.headers["Content-Type"] == "application/json" and reply.structured["exit_code"] == 0


def test_slow_command_does_not_hold_up_others(gw, sandbox, tmp_path, api):
    os.mkfifo(tmp_path / "gate")
    wait = in_background(gw.call, "execute_command", **sandbox, command="touch begun; : <../gate; echo last > end")
    api.wait_for((tmp_path / "sandbox/begun").exists, what="the command runs")
    assert gw.rpc("tools/list").status == 200
    assert gw.call("execute_command", **sandbox, command="true").structured["exit_code"] == 0
    assert not (tmp_path / "sandbox/end").exists()
    with open(tmp_path / "gate", "r+b", buffering=0):
        assert wait().structured["exit_code"] == 0


# --- files ---

def test_files(gw, sandbox, tmp_path):
    folder = tmp_path / "sandbox"
    data = bytes(range(256)) * 1000
    sent = gw.call("upload_file", **sandbox, path="deep/er/bin", content=base64.b64encode(data).decode(), binary=True)
    assert sent.structured["bytes_written"] == len(data) and (folder / "deep/er/bin").read_bytes() == data
    got = gw.call("download_file", **sandbox, path="deep/er/bin", binary=True).structured
    assert base64.b64decode(got["content"]) == data and got["bytes_read"] == len(data)
    assert "binary=true" in gw.call("download_file", **sandbox, path="deep/er/bin").error_text
    gw.call("upload_file", **sandbox, path="text", content="a\0b\u00e9").structured
    assert gw.call("download_file", **sandbox, path="text").structured == {"content": "a\0b\u00e9", "bytes_read": 5}
    listed = gw.call("list_files", **sandbox, path=".").structured
    assert [(e["name"], e["type"]) for e in listed["entries"]] == [("deep", "directory"), ("text", "file")]
    assert listed["total_entries"] == 2 and listed["truncated"] is False
    assert gw.call("list_files", **sandbox, path=".", max_entries=1).structured["truncated"] is True
    assert gw.call("file_exists", **sandbox, path="text").structured == {"exists": True}
    assert gw.call("file_exists", **sandbox, path="nope").structured == {"exists": False}


def test_file_errors_say_what_is_wrong(gw, sandbox, tmp_path):
    (tmp_path / "sandbox" / "dir").mkdir()
    for tool, more, words in (
            ("download_file", {"path": "nope"}, "no such|not found|does not exist"),
            ("download_file", {"path": "dir"}, "directory"),
            ("upload_file", {"path": "dir", "content": "x"}, "directory"),
            ("list_files", {"path": "nope"}, "no such|not found|does not exist"),
            ("upload_file", {"path": "a", "content": "!", "binary": True}, "base64")):
        text = gw.call(tool, **sandbox, **more).error_text
        assert re.search(words, text, re.I), (tool, text)


def test_what_the_sandbox_denies_is_no_missing_right(gw, sandbox):
    text = gw.call("upload_file", **sandbox, path="/sys/nothing", content="x").error_text
    assert re.search("permission denied|read-only|not permit", text) and "/tmp" in text and "administrator" not in text
    gw.wait_log("tool=upload_file outcome=invalid")


def test_image_without_a_shell_needs_another_pool(gw, sandbox, execs):
    execs.start_failure = lambda _request: failure('exec: "sh": executable file not found in $PATH: unknown')
    for tool, more in TOOLS.items():
        if tool != "delete_sandbox":
            text = gw.call(tool, **sandbox, **more).error_text
            assert "no shell" in text and "create_sandbox with another warm pool" in text and "corrected" not in text


def test_file_beyond_the_limit(api, cluster, execs, tmp_path):
    """There is no way to ask download_file for a part, so the parts are made in the sandbox."""
    with Gateway(api, tmp_path, "--max-file-bytes=1000") as gw:
        arguments = ready_sandbox(gw.ready(), cluster)
        (tmp_path / "sandbox/big").write_bytes(b"x" * 1001)
        text = gw.call("download_file", **arguments, path="big").error_text
        assert "1001 bytes" in text and "execute_command" in text and "split" in text and "less at a time" not in text


@pytest.mark.slow
def test_large_file(gw, sandbox, tmp_path):
    data = hashlib.shake_256(b"seed").digest(16 * 1024 * 1024)
    content = base64.b64encode(data).decode()
    sent = gw.call("upload_file", **sandbox, path="big", content=content, binary=True, timeout=120)
    assert sent.structured["bytes_written"] == len(data)
    got = gw.call("download_file", **sandbox, path="big", binary=True, timeout=120).structured
    assert got["content"] == content
    text = gw.call("upload_file", **sandbox, path="big", content=base64.b64encode(data + b"x").decode(), binary=True).error_text
    assert "16777217 bytes" in text and (tmp_path / "sandbox/big").read_bytes() == data


# --- delete ---

def test_delete(gw, sandbox, api, cluster):
    reply = gw.call("delete_sandbox", **sandbox)
    assert "structuredContent" not in reply.result and not reply.result.get("isError")
    assert cluster.claims() == []
    request, = claims_deleted(api)
    assert request.json["preconditions"]["uid"]
    api.wait_for(lambda: gw.call("get_sandbox_status", **sandbox).structured["status"] == "SandboxNotFound", what="gone")
    again = gw.call("delete_sandbox", **sandbox).error_text
    assert "not found" in again and "nothing is left to do" in again and "create_sandbox" not in again


def test_delete_that_fails_says_so(gw, sandbox, api, cluster):
    api.rule(lambda r: r.method == "DELETE", status(403, "Forbidden", "no"))
    assert "delete sandboxclaims" in gw.call("delete_sandbox", **sandbox).error_text
    assert len(cluster.claims()) == 1


# --- budgets ---

def test_a_command_costs_its_exec_request_and_nothing_else(gw, sandbox, api, execs):
    gw.call("execute_command", **sandbox, command="true").structured
    before = len(api.seen())
    for _ in range(20):
        gw.call("execute_command", **sandbox, command="true").structured
    new = [r for r in api.seen()[before:] if not r.is_watch]
    assert [r.subresource for r in new] == ["exec"] * 20


def test_activity_is_one_patch(gw, sandbox, api, cluster):
    cluster.annotate("c1", **{"k8s-agent-sandbox-mcp/idle-timeout-seconds": "600"})
    cluster.status("c1", ready("True", "Ready", "with a time-out now"))
    api.wait_for(lambda: gw.call("get_sandbox_status", **sandbox).structured["message"] == "with a time-out now",
                 what="the gateway sees it")
    for _ in range(20):
        gw.call("execute_command", **sandbox, command="true").structured
    patches = api.seen(lambda r: r.method == "PATCH" and "fieldManager=sandbox-gateway" in r.target)
    assert len(patches) == 1
    body = patches[0].json["metadata"]
    assert body["uid"] == api.store.get(CLAIMS, NS, "c1")["metadata"]["uid"]
    assert set(body["annotations"]) == {"k8s-agent-sandbox-mcp/last-activity", "k8s-agent-sandbox-mcp/exec-lease"}


# --- the API server away ---

def test_api_server_away(gw, sandbox, api):
    port = str(api.port)
    gw.call("execute_command", **sandbox, command="true").structured  # its rights are known from now on
    api.go_down()
    calls = [in_background(gw.call, tool, **sandbox, **more) for tool, more in TOOLS.items()]
    calls.append(in_background(gw.call, "create_sandbox", warmpool="p", namespace=NS))
    calls.append(in_background(gw.call, "get_sandbox_status", sandbox_claim_name="other", namespace=NS))
    for wait in calls:
        text = wait().error_text
        assert "later" in text and "127.0.0.1" not in text and port not in text and "/api" not in text, text
    api.come_back()
    api.wait_for(lambda: not gw.call("execute_command", **sandbox, command="true").result.get("isError"),
                 timeout=60, what="it is back")


def test_missing_right_to_exec_is_named(gw, sandbox, api):
    api.clear_rules()
    api.rule(lambda r: r.subresource == "exec", status(403, "Forbidden", 'pods "pool-x1" is forbidden: User "gw" cannot '
                                                       'create resource "pods/exec"'))
    text = gw.call("execute_command", **sandbox, command="true").error_text
    assert "pods/exec" in text


# --- the end ---

def test_drain_finishes_what_runs(api, cluster, execs, tmp_path):
    with Gateway(api, tmp_path, "--drain-grace=20s") as gw:
        gw.ready()
        cluster.claim("c1", ALICE_OWNER)
        cluster.bind("c1")
        arguments = {"sandbox_claim_name": "c1", "namespace": NS}
        api.wait_for(lambda: gw.call("get_sandbox_status", **arguments).structured["ready"], what="ready")
        wait = in_background(gw.call, "execute_command", **arguments, command="touch begun; sleep 2; echo done")
        api.wait_for((tmp_path / "sandbox/begun").exists, what="the command runs")
        gw.terminate()
        assert wait().structured["stdout"] == "done\n"
        assert gw.stop() == 0
        assert len(cluster.claims()) == 1


def test_drain_ends_what_takes_too_long(api, cluster, execs, tmp_path):
    with Gateway(api, tmp_path, "--drain-grace=1s") as gw:
        gw.ready()
        cluster.claim("c1", ALICE_OWNER)
        cluster.bind("c1")
        arguments = {"sandbox_claim_name": "c1", "namespace": NS}
        api.wait_for(lambda: gw.call("get_sandbox_status", **arguments).structured["ready"], what="ready")
        wait = in_background(gw.call, "execute_command", **arguments, command="touch begun; sleep 100", timeout=600)
        api.wait_for((tmp_path / "sandbox/begun").exists, what="the command runs")
        gw.terminate()
        assert "being stopped" in wait().error_text
        assert gw.stop() == 0


def test_audit_line(gw, sandbox):
    gw.call("execute_command", **sandbox, command="echo s3cr3t-content")
    line = gw.wait_log(r"call tool=execute_command.*").group(0)
    assert f"owner={ALICE_OWNER}" in line and "claim=c1" in line and "outcome=ok" in line and "detail=exited" in line
    assert "s3cr3t" not in gw.log


def test_namespaces_flag(api, cluster, tmp_path):
    with Gateway(api, tmp_path, f"--namespaces={NS},other") as gw:
        gw.ready()
        text = gw.call("create_sandbox", warmpool="p", namespace="elsewhere").error_text
        assert "not served" in text
        lists = [r for r in api.seen(lambda r: r.is_list)]
        assert {r.namespace for r in lists} == {NS, "other"} and len(lists) == 6
    assert cluster.claims() == [] and api.store.all(SANDBOXES) == []
