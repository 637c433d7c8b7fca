# SPDX-License-Identifier: Apache-2.0
"""The gateway's protocol over real sockets: methods, headers, both eras, authentication."""

import contextlib
import json
import os
import re
import socket
import subprocess

import pytest
from cluster import NS
from fakeapi import FakeApi, status as says
from gateway import BOTH, META, MODERN, Gateway, in_background

TOKEN = "t-alice"
ALICE = {"username": "system:serviceaccount:team:alice", "uid": "u-alice", "groups": ["system:authenticated"]}


@pytest.fixture(scope="module")
def gw(tmp_path_factory):
    """One gateway for all tests that only ask."""
    with FakeApi() as shared:
        shared.users[TOKEN] = ALICE
        with Gateway(shared, tmp_path_factory.mktemp("gateway")) as gateway:
            yield gateway.ready()


@pytest.fixture
def own(api, tmp_path):
    """A gateway whose API server the test looks at or spoils."""
    api.users[TOKEN] = ALICE
    with Gateway(api, tmp_path) as gateway:
        yield gateway.ready()


# --- what docs/tools.md shows ---

def test_requests_in_the_docs(gw, tmp_path):
    with open(os.path.join(os.path.dirname(__file__), "../../docs/tools.md"), encoding="utf-8") as f:
        examples = re.findall(r"```sh\n(.*?)```", f.read(), re.S)
    answers = []
    for example in examples:
        env = {"PATH": os.environ["PATH"], "URL": f"http://127.0.0.1:{gw.port}/mcp", "TOKEN": TOKEN}
        said = subprocess.run(["sh", "-ec", example], env=env, cwd=tmp_path, capture_output=True, timeout=60, check=True)
        answers.append(json.loads(said.stdout)["result"])
    stateless, initialized, legacy = answers
    assert stateless["resultType"] == "complete" and "resultType" not in legacy
    assert initialized["protocolVersion"] == "2025-11-25"
    for answer in (stateless, legacy):
        assert "'sandbox-claim-0123' is not found in namespace 'team-a'" in answer["content"][0]["text"]


# --- methods and paths ---

@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "HEAD", "OPTIONS"])
def test_only_post(gw, method):
    reply = gw.http(method)
    assert reply.status == 405 and reply.headers["Allow"] == "POST"


@pytest.mark.parametrize("path,status", [("/mcp", 200), ("/mcp/", 200), ("/mcp?x=1", 200), ("/", 404),
                                         ("/mcpx", 404), ("//mcp", 404)])
def test_paths(gw, path, status):
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()
    reply = gw.http(path=path, body=body, headers=gw.headers())
    assert reply.status == status
    assert json.loads(reply.body)  # never HTML


def test_session_headers_are_ignored(gw):
    reply = gw.rpc("initialize", {"protocolVersion": "2025-11-25"}, Mcp_Session_Id="stale", Last_Event_ID="7")
    assert reply.status == 200 and "Mcp-Session-Id" not in reply.headers


def test_notification_and_response_get_202_and_nothing_else(gw):
    for body in ({"jsonrpc": "2.0", "method": "notifications/initialized"},
                 {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}},
                 {"jsonrpc": "2.0", "id": 5, "result": {}}):
        reply = gw.post(body)
        assert reply.status == 202 and reply.body == b"" and "Content-Type" not in reply.headers
        assert reply.headers["Content-Length"] == "0"


# --- the two eras ---

@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"])
def test_legacy_client(gw, version):
    reply = gw.rpc("initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": {}}, id=0)
    assert reply.result["protocolVersion"] == version and reply.json["id"] == 0
    assert reply.result["capabilities"] == {"tools": {}}
    assert gw.post({"jsonrpc": "2.0", "method": "notifications/initialized"}).status == 202
    tools = gw.rpc("tools/list", {}, MCP_Protocol_Version=version).result["tools"]
    assert [t["name"] for t in tools] == [
        "create_sandbox", "execute_command", "upload_file", "download_file", "list_files", "file_exists",
        "get_sandbox_status", "delete_sandbox"]
    assert gw.rpc("ping").result == {}


@pytest.mark.parametrize("asked", ["2099-01-01", MODERN, 5, None])
def test_initialize_offers_what_it_has(gw, asked):
    reply = gw.rpc("initialize", {"protocolVersion": asked}, MCP_Protocol_Version="2099-01-01")
    assert reply.result["protocolVersion"] == "2025-11-25"


def test_modern_client(gw):
    discover = gw.modern("server/discover").result
    assert discover["supportedVersions"][0] == MODERN and discover["resultType"] == "complete"
    listed = gw.modern("tools/list").result
    assert listed["resultType"] == "complete" and listed["cacheScope"] == "public" and listed["ttlMs"] >= 0
    assert listed["_meta"]["io.modelcontextprotocol/serverInfo"]["name"]
    assert listed["tools"] == gw.rpc("tools/list").result["tools"]


@pytest.mark.parametrize("method", ["initialize", "ping", "logging/setLevel", "resources/subscribe", "nope"])
def test_modern_unknown_methods(gw, method):
    reply = gw.modern(method)
    assert (reply.status, reply.json["error"]["code"], reply.json["id"]) == (404, -32601, 1)


def test_legacy_unknown_method(gw):
    reply = gw.rpc("nope", id="x")
    assert (reply.status, reply.json["error"]["code"], reply.json["id"]) == (200, -32601, "x")


@pytest.mark.parametrize("headers,code", [
    ({"Mcp-Method": None}, -32020), ({"Mcp-Method": "TOOLS/CALL"}, -32020), ({"Mcp-Name": None}, -32020),
    ({"Mcp-Name": "File_exists"}, -32020), ({"MCP-Protocol-Version": None}, -32020),
    ({"MCP-Protocol-Version": "2025-11-25"}, -32020)])
def test_modern_routing_headers(gw, headers, code):
    reply = gw.modern("tools/call", {"name": "file_exists", "arguments": {}}, **headers)
    assert (reply.status, reply.json["error"]["code"]) == (400, code)


def test_modern_version_errors(gw):
    reply = gw.rpc("tools/list", {}, MCP_Protocol_Version="2030-01-01", Mcp_Method="tools/list")
    assert (reply.status, reply.json["error"]["code"]) == (400, -32602)
    assert "_meta" in reply.json["error"]["message"] and f"supported: {MODERN}" in reply.json["error"]["message"]
    reply = gw.rpc("tools/list", {}, MCP_Protocol_Version=MODERN, Mcp_Method="tools/list")
    assert reply.json["error"]["code"] == -32602 and "supported" not in reply.json["error"]["message"]
    meta = META | {"io.modelcontextprotocol/protocolVersion": "2027-01-01"}
    reply = gw.rpc("tools/list", {"_meta": meta}, MCP_Protocol_Version="2027-01-01", Mcp_Method="tools/list")
    assert (reply.status, reply.json["error"]["code"]) == (400, -32022)
    assert reply.json["error"]["data"]["requested"] == "2027-01-01"
    assert MODERN in reply.json["error"]["data"]["supported"]
    for params in ({}, {"_meta": {}}, {"_meta": {"io.modelcontextprotocol/protocolVersion": MODERN}}):
        reply = gw.rpc("tools/list", params, MCP_Protocol_Version=MODERN, Mcp_Method="tools/list")
        assert (reply.status, reply.json["error"]["code"]) == (400, -32602)


def test_repeated_routing_header_is_refused(gw):
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    with socket.create_connection(("127.0.0.1", gw.port)) as s:
        s.sendall(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                  b"Authorization: Bearer t-alice\r\nMcp-Method: a\r\nmcp-method: b\r\n"
                  b"Content-Length: %d\r\n\r\n" % len(body) + body)
        assert s.recv(4096).startswith(b"HTTP/1.1 400 ")


# --- bodies and media ---

@pytest.mark.parametrize("accept,status,media", [
    (BOTH, 200, "application/json"), ("*/*", 200, "application/json"), (None, 200, "application/json"),
    ("application/json", 200, "application/json"), ("application/*", 200, "application/json"),
    ("text/event-stream, application/json;q=0.1", 200, "application/json"),
    ("text/event-stream", 200, "text/event-stream"), ("text/html", 406, "application/json")])
def test_accept(gw, accept, status, media):
    reply = gw.rpc("ping", Accept=accept)
    assert reply.status == status and reply.headers["Content-Type"] == media
    if status == 200:
        assert reply.result == {}


@pytest.mark.parametrize("media,status", [("application/json; charset=utf-8", 200), ("text/plain", 415),
                                          ("application/jsonx", 415), (None, 415)])
def test_content_type(gw, media, status):
    assert gw.rpc("ping", Content_Type=media).status == status


@pytest.mark.parametrize("body,code", [
    (b"", -32700), (b"{", -32700), (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', -32700),
    (b"[" * 100000, -32700), (b'{"a":' * 5000, -32700), (b"[]", -32600),
    (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600), (b"5", -32600),
    (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600), (b'{"id":1,"method":"ping"}', -32600)])
def test_bad_bodies(gw, body, code):
    reply = gw.post(body)
    assert reply.status == 400 and reply.json["error"]["code"] == code and reply.json["jsonrpc"] == "2.0"
    assert gw.rpc("ping").status == 200


def test_parse_error_has_null_id_in_the_legacy_era_and_none_in_the_modern(gw):
    assert gw.post(b"{").json["id"] is None
    assert "id" not in gw.post(b"{", MCP_Protocol_Version=MODERN).json


def test_too_large_a_body(api, tmp_path):
    api.users[TOKEN] = ALICE
    with Gateway(api, tmp_path, "--max-file-bytes=1000") as gw:
        gw.ready()
        reply = gw.post(b'{"x":"' + b"a" * 100000 + b'"}')
        assert reply.status == 413 and reply.json["error"]["message"]
        assert gw.rpc("ping").status == 200


@pytest.mark.parametrize("params,code", [
    ({"name": "nope"}, -32602), ({}, -32602), ({"name": 5}, -32602), ({"name": "file_exists", "arguments": []}, -32602),
    ([], -32602)])
def test_bad_params(gw, params, code):
    reply = gw.rpc("tools/call", params)
    assert (reply.status, reply.json["error"]["code"], reply.json["id"]) == (200, code, 1)


def test_wrong_arguments_are_results_that_name_them(gw):
    text = gw.call("execute_command", sandbox_claim_name="c", namespace=NS, command="x", timeout=601).error_text
    assert "timeout" in text and "1 to 600" in text and "execute_command" in text
    assert "required" in gw.rpc("tools/call", {"name": "execute_command"}).error_text
    assert "required" in gw.rpc("tools/call", {"name": "execute_command", "arguments": None}).error_text


def test_cursor(gw):
    assert gw.rpc("tools/list", {"cursor": ""}).json["error"]["code"] == -32602


def test_idempotency_key_is_refused_not_ignored(own, api):
    reply = own.call("create_sandbox", warmpool="p", namespace=NS, headers={"Idempotency-Key": "k"})
    assert "Idempotency-Key" in reply.error_text
    assert not api.seen(lambda r: r.method == "POST" and r.resource and r.resource[1] == "sandboxclaims")


# --- Host and Origin ---

@pytest.mark.parametrize("headers,status", [
    ({"Host": "evil.example"}, 403), ({"Host": "localhost:1"}, 200), ({"Origin": "http://evil.example"}, 403),
    ({"Origin": "null"}, 403), ({"Origin": "http://localhost:3000"}, 200),
    ({"Host": "evil.example", "Origin": "http://evil.example"}, 403)])
def test_host_and_origin(gw, headers, status):
    assert gw.rpc("ping", **headers).status == status


# --- authentication ---

@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer ", "Basic dDo=", "Bearer wrong", "Bearer t-alic",
                                    "Bearer t-alicex", "Bearer t alice", "t-alice"])
def test_refused_tokens(gw, header):
    reply = gw.http(body=b'{"jsonrpc":"2.0","id":1,"method":"ping"}', headers={
        "Content-Type": "application/json"} | ({"Authorization": header} if header is not None else {}))
    assert reply.status == 401 and reply.headers["WWW-Authenticate"].startswith("Bearer ")
    assert ("invalid_token" in reply.headers["WWW-Authenticate"]) == (header is not None)
    assert "t-alice" not in gw.log and "wrong" not in gw.log


def test_refused_callers_send_no_body(gw):
    """The answer comes after the head, though the body never does."""
    with socket.create_connection(("127.0.0.1", gw.port)) as s:
        s.sendall(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                  b"Authorization: Basic eA==\r\nContent-Length: 30000000\r\n\r\n")
        s.settimeout(10)
        assert s.recv(4096).startswith(b"HTTP/1.1 401 ")


def test_strangers_with_large_bodies_do_not_starve_known_callers(own):
    assert own.rpc("ping").status == 200
    socks = []
    for i in range(9):
        sock = socket.create_connection(("127.0.0.1", own.port))
        sock.settimeout(10)
        with contextlib.suppress(OSError):
            sock.sendall(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                         b"Authorization: Bearer stranger%d\r\nContent-Length: 33000000\r\n\r\n" % i + b" " * 32000000)
        socks.append(sock)
    assert own.rpc("ping").status == 200
    assert own.post(b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"' + b"a" * 20000000 + b'"}}').status == 200
    for sock in socks:
        sock.close()


def test_scheme_in_any_case(gw):
    assert gw.rpc("ping", Authorization=f"bEARER {TOKEN}").status == 200


def test_token_in_the_query_is_no_token(gw):
    reply = gw.http(path=f"/mcp?access_token={TOKEN}", body=b"{}", headers={"Content-Type": "application/json"})
    assert reply.status == 401


def test_audience_is_asked_for(own, api):
    assert own.rpc("ping").status == 200
    review, = api.seen(lambda r: r.resource and r.resource[1] == "tokenreviews")
    assert review.json["spec"]["audiences"] == ["k8s-agent-sandbox-mcp"]
    api.audiences.clear()
    assert own.rpc("ping", token="t-other").status == 401


def test_one_review_serves_many_calls(own, api):
    waits = [in_background(own.rpc, "ping") for _ in range(20)]
    assert all(wait().status == 200 for wait in waits)
    assert len(api.seen(lambda r: r.resource and r.resource[1] == "tokenreviews")) == 1


def test_review_that_cannot_be_made_is_not_a_refusal(own, api):
    api.rule(lambda r: r.resource and r.resource[1] == "tokenreviews", says(403, "Forbidden", "no"), times=1)
    reply = own.rpc("ping")
    assert reply.status == 503 and "Retry-After" in reply.headers and "tokenreviews" in reply.json["error"]["message"]
    assert own.rpc("ping").status == 200


def test_no_secret_in_the_log(gw):
    for token in (TOKEN, "s3cr3t-token-value"):
        gw.rpc("ping", token=token)
    assert TOKEN not in gw.log and "s3cr3t" not in gw.log


def test_without_authentication(api, tmp_path):
    with Gateway(api, tmp_path, auth="none") as gw:
        gw.ready()
        assert gw.rpc("ping").status == 200
        assert gw.call("get_sandbox_status", sandbox_claim_name="c", namespace=NS).structured["status"] == "SandboxNotFound"
        assert not api.seen(lambda r: r.resource and r.resource[1].endswith("reviews"))
