# SPDX-License-Identifier: Apache-2.0
"""Who may do what: tokens, audiences, rights, owners."""

import pytest

from support.mcp_raw import create, text_of
from support.space import AUDIENCE, OWN_PREFIX

CHALLENGE = "Bearer realm="


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer ", "Basic YTpi", "Bearer not.a.token", "Bearer a b",
                                    "token", "Bearer \u00fc", "Bearer " + "x" * 20_000])
def test_no_or_bad_token(raw, header):
    headers = {"Authorization": header.encode("latin-1") if header else header}
    try:
        answer = raw.request("tools/list", headers=headers)
    except ConnectionError:
        # A head beyond the limit is answered before all of it is read: the close may overtake the answer.
        assert header and len(header) > 10_000
        return
    assert answer.status in (401, 431) and (answer.status == 401 or len(header) > 10_000)
    if answer.status == 401:
        assert answer.headers["www-authenticate"].startswith(CHALLENGE)
        assert "--audience=" in answer.json["error"]["message"]


def test_the_scheme_ignores_case(raw):
    for scheme in ("bearer", "BEARER"):
        assert raw.request("tools/list", headers={"Authorization": f"{scheme} {raw.token}"}).status == 200


@pytest.mark.parametrize("audience", [None, "somebody-else"])
def test_the_audience(raw, space, audience):
    """A token for the API server, or for another program, is none for the gateway."""
    answer = raw.with_(token=space.token("agent", audience)).request("tools/list")
    assert answer.status == 401 and 'error="invalid_token"' in answer.headers["www-authenticate"]


def test_a_changed_token(raw):
    head, _, signature = raw.token.rpartition(".")
    swapped = signature[:10][::-1] + signature[10:]
    assert raw.with_(token=f"{head}.{swapped}").request("tools/list").status == 401


def test_a_token_in_the_query_is_none(raw):
    answer = raw.with_(token=None).post(raw.message("tools/list"), {"Authorization": None},
                                        path=f"/mcp?access_token={raw.token}")
    assert answer.status == 401


def test_a_deleted_account(raw, space):
    token = space.user("leaver")
    leaver = raw.with_(token=token)
    space.delete("ServiceAccount", "leaver")
    space.wait_gone("ServiceAccount", "leaver")
    assert leaver.request("tools/list").status == 401


def test_without_any_right(raw, space, box):
    """A good token is not enough, and what is missing is named as kubectl would ask for it."""
    nobody = raw.with_(token=space.user("nobody", role=None))
    assert len(nobody.result("tools/list")["tools"]) == 8
    cases = {"create_sandbox": ("create sandboxclaims", {"warmpool": "pool", "namespace": space.name}),
             "delete_sandbox": ("delete sandboxclaims", box.where),
             "get_sandbox_status": ("get sandboxclaims", box.where),
             "execute_command": ("create sandboxclaims/exec", {**box.where, "command": "true"}),
             "upload_file": ("create sandboxclaims/files", {**box.where, "path": "/tmp/x", "content": ""}),
             "download_file": ("create sandboxclaims/files", {**box.where, "path": "/etc/hosts"}),
             "list_files": ("create sandboxclaims/files", {**box.where, "path": "/"}),
             "file_exists": ("create sandboxclaims/files", {**box.where, "path": "/"})}
    for tool, (right, arguments) in cases.items():
        said = nobody.error(tool, **arguments)
        assert right in said and space.account("nobody") in said and space.name in said, said
        assert "may not" in said


def test_a_part_of_the_rights(raw, space, warmpool):
    """Files, but no commands: a plain Role says so."""
    token = space.user("clerk", role=None)
    group = "extensions.agents.x-k8s.io"
    space.create("Role", "clerk", rules=[
        {"apiGroups": [group], "resources": ["sandboxclaims"], "verbs": ["create", "get", "delete"]},
        {"apiGroups": [group], "resources": ["sandboxclaims/files"], "verbs": ["create"]}])
    space.create("RoleBinding", "clerk", roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "Role",
                                                  "name": "clerk"},
                 subjects=[{"kind": "ServiceAccount", "name": "clerk", "namespace": space.name}])
    clerk = raw.with_(token=token)
    box = create(clerk, space.name, warmpool)
    assert box.call("upload_file", path="/tmp/x", content="x") == {"bytes_written": 1}
    assert "create sandboxclaims/exec" in box.error("execute_command", command="true")
    # The same as kubectl says, although no API server serves these subresources.
    answer = space.kube.kubectl("auth", "can-i", "create", f"sandboxclaims.{group}", "--subresource=exec", "-n",
                                space.name, "--as", space.account("clerk"), check=False)
    assert answer.stdout.strip() == "no"
    box.delete()


def test_rights_end_at_the_namespace(raw, space):
    said = raw.error("create_sandbox", warmpool="simple-sandbox-warmpool", namespace="default")
    assert "create sandboxclaims" in said and "'default'" in said
    assert space.name != "default"


def test_the_owner_is_on_the_claim(raw, space, box):
    claim = space.get("SandboxClaim", box.claim)
    annotations, labels = claim["metadata"]["annotations"], claim["metadata"]["labels"]
    owner = annotations[f"{OWN_PREFIX}owner"]
    assert len(owner) == 32 and set(owner) <= set("0123456789abcdef")
    assert labels["mcp.k8s-agent-sandbox/session-id"] == owner
    assert space.account() in annotations[f"{OWN_PREFIX}created-by"]
    assert raw.token not in str(claim)
    lifecycle = claim["spec"]["lifecycle"]
    assert lifecycle["shutdownPolicy"] == "Delete" and lifecycle["shutdownTime"]


def test_nobody_makes_himself_the_owner(raw, space, warmpool):
    """The label of the owner is the gateway's: what the caller wants there is overwritten."""
    box = create(raw, space.name, warmpool, labels={"mcp.k8s-agent-sandbox/session-id": "forged", "team": "red"})
    labels = space.get("SandboxClaim", box.claim)["metadata"]["labels"]
    assert labels["team"] == "red" and labels["mcp.k8s-agent-sandbox/session-id"] != "forged"
    box.delete()


def test_a_new_token_of_the_same_account(raw, space, box):
    """The owner is who one is, not the token one came with, nor a connection."""
    again = box.seen_by(raw.with_(token=space.token("agent", AUDIENCE, 900)))
    assert again.sh("echo mine") == "mine\n"


def test_an_account_of_the_same_name(raw, space, warmpool):
    """Deleted and made again it is somebody else: what its namesake had is not its."""
    first = raw.with_(token=space.user("twin"))
    box = create(first, space.name, warmpool, shutdown_after_seconds=120)
    space.delete("ServiceAccount", "twin")
    space.wait_gone("ServiceAccount", "twin")
    space.create("ServiceAccount", "twin")
    second = box.seen_by(raw.with_(token=space.token("twin")))
    assert "is not found" in second.error("execute_command", command="true")
    space.delete("SandboxClaim", box.claim)


def test_calls_leave_an_audit_line(raw, space, box, system):
    box.run("echo secret-word-in-the-command")
    lines = [line for line in system.logs("sandbox-gateway", 3000).splitlines()
             if box.claim in line and "execute_command" in line]
    assert lines and space.account() in lines[-1] and space.name in lines[-1]
    logs = system.logs("sandbox-gateway", 3000)
    assert "secret-word-in-the-command" not in logs and raw.token not in logs
    assert text_of({"content": []}) == ""
