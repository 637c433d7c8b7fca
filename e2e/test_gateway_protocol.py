# SPDX-License-Identifier: Apache-2.0
"""MCP on the wire: both eras, the order of validation, and the Python client in each of its modes."""

import asyncio
import base64
import concurrent.futures
import json

import pytest

from support.mcp_raw import LEGACY, META, MODERN, text_of
from support.mcp_sdk import MODES, client

TOOLS = {"create_sandbox", "delete_sandbox", "execute_command", "upload_file", "download_file", "list_files",
         "file_exists", "get_sandbox_status"}
LEGACY_VERSIONS = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]
ERAS = ["legacy", "modern"]


@pytest.fixture(params=ERAS, name="era")
def era_fixture(request, raw):
    return raw.with_(era=request.param)


@pytest.fixture(name="modern")
def modern_fixture(raw):
    return raw.with_(era="modern")


def code(answer):
    return answer.json["error"]["code"]


# ---- clients

@pytest.mark.parametrize("mode", MODES)
def test_python_client(raw, space, warmpool, mode):
    async def work():
        async with client(raw.url, raw.token, mode) as session:
            listed = await session.list_tools()
            assert {t.name for t in listed.tools} == TOOLS
            created = await session.call_tool("create_sandbox", {"warmpool": warmpool, "namespace": space.name})
            assert not created.is_error, created
            where = {"namespace": space.name, **{k: created.structured_content[k] for k in ("sandbox_claim_name",)}}
            done = await session.call_tool("execute_command", {**where, "command": "echo out; echo err >&2; exit 3"})
            assert {k: done.structured_content[k] for k in ("exit_code", "stdout", "stderr")} == {
                "exit_code": 3, "stdout": "out\n", "stderr": "err\n"}
            assert json.loads(done.content[0].text) == done.structured_content
            payload = bytes(range(256)) * 40
            up = await session.call_tool("upload_file", {**where, "path": "/tmp/x/data", "binary": True,
                                                         "content": base64.b64encode(payload).decode()})
            assert up.structured_content == {"bytes_written": len(payload)}
            down = await session.call_tool("download_file", {**where, "path": "/tmp/x/data", "binary": True})
            assert base64.b64decode(down.structured_content["content"]) == payload
            there = await session.call_tool("file_exists", {**where, "path": "/tmp/x/data"})
            assert there.structured_content == {"exists": True}
            entries = (await session.call_tool("list_files", {**where, "path": "/tmp/x"})).structured_content
            assert [(e["name"], e["size"], e["type"]) for e in entries["entries"]] == [("data", len(payload), "file")]
            status = (await session.call_tool("get_sandbox_status", where)).structured_content
            assert (status["status"], status["ready"]) == ("SandboxReady", True)
            missing = await session.call_tool("download_file", {**where, "path": "/nothing"})
            assert missing.is_error and missing.structured_content is None
            deleted = await session.call_tool("delete_sandbox", where)
            assert not deleted.is_error
            status = (await session.call_tool("get_sandbox_status", where)).structured_content
            assert (status["status"], status["ready"]) == ("SandboxNotFound", False)
            return session.session.protocol_version

    assert asyncio.run(work()) == (LEGACY if mode == "legacy" else MODERN)


def test_progress_reaches_the_python_client(raw, space, box):
    async def work():
        seen = []

        async def on_progress(progress, total, message):
            seen.append((progress, total, message))

        async with client(raw.url, raw.token) as session:
            done = await session.call_tool(
                "execute_command", {**box.where, "command": "sleep 6; echo done"}, progress_callback=on_progress)
            return done, seen

    done, seen = asyncio.run(work())
    assert done.structured_content["stdout"] == "done\n"
    assert seen and [p for p, *_ in seen] == sorted({p for p, *_ in seen})
    assert space


# ---- eras

@pytest.mark.parametrize("version", LEGACY_VERSIONS)
def test_initialize(raw, version):
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    answer = raw.request("initialize", params, headers={"MCP-Protocol-Version": None})
    result = answer.json["result"]
    assert result["protocolVersion"] == version
    assert result["capabilities"] == {"tools": {}} and result["instructions"]
    assert set(result["serverInfo"]) >= {"name", "version"}
    assert "mcp-session-id" not in answer.headers and "resultType" not in result


@pytest.mark.parametrize("version", ["2099-01-01", "2026-07-28", "1.0", "", None])
def test_initialize_with_a_version_that_is_no_legacy_one(raw, version):
    params = {"capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    if version is not None:
        params["protocolVersion"] = version
    # Headers of another era, and a session of another server, do not matter here.
    answer = raw.request("initialize", params, headers={"Mcp-Method": "initialize", "Mcp-Session-Id": "stale"})
    assert answer.json["result"]["protocolVersion"] == LEGACY


def test_initialized_is_taken_without_an_answer(raw):
    answer = raw.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert (answer.status, answer.body) == (202, b"") and "json" not in answer.headers.get("content-type", "")


def test_ping(raw, modern):
    assert raw.result("ping") == {}
    assert modern.request("ping").status == 404


def test_discover(raw, modern):
    result = modern.result("server/discover")
    assert result["resultType"] == "complete" and MODERN in result["supportedVersions"]
    assert result["capabilities"] == {"tools": {}}
    assert isinstance(result["ttlMs"], int) and result["cacheScope"] in ("public", "private")
    assert result["_meta"][f"{META}serverInfo"]["name"]
    # Without what makes it a modern request.
    answer = raw.request("server/discover", headers={"MCP-Protocol-Version": None})
    assert answer.status == 400 and code(answer) == -32602


@pytest.mark.parametrize("version", [*LEGACY_VERSIONS, None])
def test_no_handshake_is_needed(raw, version):
    answer = raw.request("tools/list", headers={"MCP-Protocol-Version": version})
    assert answer.status == 200 and len(answer.json["result"]["tools"]) == len(TOOLS)


# ---- tools/list

def test_list(era):
    first, second = era.result("tools/list"), era.result("tools/list")
    assert first == second and "nextCursor" not in first
    assert {t["name"] for t in first["tools"]} == TOOLS and len(first["tools"]) == len(TOOLS)
    if era.era == "modern":
        assert first["resultType"] == "complete" and first["ttlMs"] >= 0
    for tool in first["tools"]:
        schema = tool["inputSchema"]
        assert schema["type"] == "object" and schema["additionalProperties"] is False
        assert not {"anyOf", "oneOf", "allOf", "$ref", "$schema"} & set(schema)
        assert set(schema["required"]) <= set(schema["properties"])
        assert all(p.get("description") for p in schema["properties"].values())
        assert tool["description"] and tool["title"]
        assert ("outputSchema" in tool) == (tool["name"] != "delete_sandbox")


def test_list_is_small(raw):
    """What a model reads of it costs its context on every turn."""
    tools = raw.result("tools/list")["tools"]
    read = json.dumps([{k: t[k] for k in ("name", "description", "inputSchema")} for t in tools],
                      separators=(",", ":"), ensure_ascii=False)
    whole = json.dumps(tools, separators=(",", ":"), ensure_ascii=False)
    assert len(read.encode()) <= 7000 and len(whole.encode()) <= 10500


def test_published_schemas(raw):
    """Names, types, defaults and limits are those of the published skill."""
    tools = {t["name"]: t for t in raw.result("tools/list")["tools"]}

    def arguments(name):
        return {k: (p.get("type") or sorted(o["type"] for o in p["anyOf"]), p.get("default"))
                for k, p in tools[name]["inputSchema"]["properties"].items()}

    where = {"sandbox_claim_name": ("string", None), "namespace": ("string", None)}
    assert arguments("delete_sandbox") == arguments("get_sandbox_status") == where
    assert arguments("execute_command") == {**where, "command": ("string", None), "timeout": ("integer", 60)}
    assert arguments("download_file") == {**where, "path": ("string", None), "binary": ("boolean", False),
                                          "timeout": ("integer", 60)}
    assert arguments("upload_file") == {**where, "path": ("string", None), "content": ("string", None),
                                        "binary": ("boolean", False), "timeout": ("integer", 60)}
    assert arguments("file_exists") == {**where, "path": ("string", None), "timeout": ("integer", 60)}
    assert arguments("list_files") == {**where, "path": ("string", None), "timeout": ("integer", 60),
                                       "max_entries": ("integer", 1000)}
    assert set(arguments("create_sandbox")) == {"warmpool", "namespace", "sandbox_ready_timeout", "labels",
                                                "shutdown_after_seconds", "pod_labels", "pod_annotations"}
    required = {name: set(t["inputSchema"]["required"]) for name, t in tools.items()}
    assert required["create_sandbox"] == {"warmpool", "namespace"}
    assert required["upload_file"] == {*where, "path", "content"}
    timeout = tools["execute_command"]["inputSchema"]["properties"]["timeout"]
    assert (timeout["minimum"] if "minimum" in timeout else timeout["exclusiveMinimum"] + 1, timeout["maximum"]) == (1, 600)
    outputs = {name: set(t["outputSchema"]["required"]) for name, t in tools.items() if "outputSchema" in t}
    assert outputs["execute_command"] >= {"exit_code", "stdout", "stderr"}
    assert outputs["get_sandbox_status"] >= {"status", "ready", "message"}
    assert outputs["list_files"] >= {"entries", "total_entries", "truncated"}


@pytest.mark.parametrize("cursor,status", [("x", -32602), ("", -32602), (None, None)])
def test_cursor(era, cursor, status):
    answer = era.request("tools/list", {"cursor": cursor})
    assert answer.status == 200
    assert answer.json.get("error", {}).get("code") == status


# ---- the door

@pytest.mark.parametrize("method", ["GET", "DELETE", "HEAD", "PUT", "PATCH", "OPTIONS"])
def test_other_methods(raw, method):
    answer = raw.post(b"", {"Accept": "text/event-stream"}, method=method)
    assert answer.status == 405 and "POST" in answer.headers["allow"]


def test_paths(raw):
    assert raw.post(raw.message("ping"), path="/mcp/").status == 200
    for path in ("/", "/mcpx", "/mcp/x", "/healthz", "/metrics"):
        answer = raw.post(raw.message("ping"), path=path)
        assert answer.status == 404 and b"<" not in answer.body


@pytest.mark.parametrize("origin", ["http://evil.example.com", "null", "https://10.0.0.1"])
def test_a_browser_is_not_let_in(raw, origin):
    answer = raw.request("tools/list", headers={"Origin": origin})
    assert answer.status == 403 and "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("kind,status", [
    ("application/json", 200), ("application/json; charset=utf-8", 200), ("APPLICATION/JSON", 200),
    ("text/plain", 415), ("application/jsonx", 415), (None, 415)])
def test_content_type(raw, kind, status):
    assert raw.request("ping", headers={"Content-Type": kind}).status == status


@pytest.mark.parametrize("accept,status,kind", [
    ("application/json, text/event-stream", 200, "application/json"), ("application/json", 200, "application/json"),
    ("text/event-stream", 200, "text/event-stream"), ("*/*", 200, "application/json"), (None, 200, "application/json"),
    ("application/*", 200, "application/json"), ("text/html", 406, None),
    ("application/json;q=0, text/event-stream;q=0", 406, None)])
def test_accept(raw, accept, status, kind):
    answer = raw.request("tools/list", headers={"Accept": accept})
    assert answer.status == status
    if kind:
        assert answer.type == kind and len(answer.json["result"]["tools"]) == len(TOOLS)


@pytest.mark.parametrize("body,expected", [
    (b"{", -32700), (b"", -32700), (b"\xff\xfe", -32700), (b"nul", -32700), (b'{"a":1} x', -32700),
    (b"[]", -32600), (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600), (b'"ping"', -32600), (b"1", -32600),
    (b"{}", -32600), (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
    (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600), (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":7}', -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b"[" * 5000 + b"]" * 5000 + b"}", None)])
def test_malformed(raw, body, expected):
    answer = raw.post(body)
    assert answer.status == 400, answer
    # A usable id comes back, whatever else is wrong.
    usable = 1 if body.startswith(b'{"jsonrpc"') and b'"id":1' in body and b"[[" not in body else None
    assert answer.json["jsonrpc"] == "2.0" and answer.json.get("id") == usable
    assert code(answer) == expected or expected is None and code(answer) in (-32700, -32600)
    # In the modern era the answer to something without a usable id has none.
    assert "id" in answer.json
    assert raw.with_(era="modern").post(body, {"Mcp-Method": "ping"}).json.get("id", "none") == (usable or "none")


@pytest.mark.parametrize("number", [0, 1, -5, 9007199254740993, "a", "", "1", "ü\u2028"])
def test_ids_come_back_as_they_are(era, number):
    answer = era.post(era.message("tools/list", number=number))
    assert answer.json["id"] == number and type(answer.json["id"]) is type(number)


def test_a_response_and_a_notification_get_no_answer(era):
    for body in ({"jsonrpc": "2.0", "id": 1, "result": {}},
                 {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}):
        answer = era.post(body)
        assert (answer.status, answer.body) == (202, b"")


def test_legacy_unknown(raw):
    answer = raw.request("no/such")
    assert (answer.status, code(answer)) == (200, -32601)
    answer = raw.request("tools/list", headers={"MCP-Protocol-Version": "1999-01-01"})
    assert (answer.status, code(answer)) == (400, -32600)


# ---- what the modern era adds

def with_meta(raw, meta, method="tools/list", headers=None):
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": meta}}
    return raw.post(body, headers)


def test_modern_versions(modern):
    meta = {f"{META}protocolVersion": "2027-01-01", f"{META}clientCapabilities": {}}
    answer = with_meta(modern, meta, headers={"MCP-Protocol-Version": "2027-01-01"})
    error = answer.json["error"]
    assert (answer.status, error["code"]) == (400, -32022)
    assert MODERN in error["data"]["supported"] and error["data"]["requested"] == "2027-01-01"


@pytest.mark.parametrize("meta,headers,expected", [
    # Header and body have to say the same.
    ({}, {"MCP-Protocol-Version": "2025-11-25"}, -32020), ({}, {"MCP-Protocol-Version": None}, -32020),
    ({}, {"Mcp-Method": None}, -32020), ({}, {"Mcp-Method": "tools/call"}, -32020),
    ({}, {"Mcp-Method": "TOOLS/LIST"}, -32020),
    # What has to be in _meta.
    ({f"{META}clientCapabilities": None}, {}, -32602), ({f"{META}clientCapabilities": []}, {}, -32602),
    ({f"{META}protocolVersion": None}, {}, -32602), ({f"{META}protocolVersion": 7}, {}, -32602),
    ({}, {"MCP-METHOD": "tools/list"}, None)])
def test_modern_headers(modern, meta, headers, expected):
    whole = {f"{META}protocolVersion": MODERN, f"{META}clientCapabilities": {}, **meta}
    whole = {k: v for k, v in whole.items() if v is not None}
    answer = with_meta(modern, whole, headers=headers)
    assert answer.status == (400 if expected else 200), answer
    assert answer.json.get("error", {}).get("code") == expected


@pytest.mark.parametrize("name,expected", [
    (None, -32020), ("list_files", -32020), ("FILE_EXISTS", -32020), ("file_exists", None),
    ("=?base64?" + base64.b64encode(b"file_exists").decode() + "?=", None),
    ("=?base64?" + base64.b64encode(b"list_files").decode() + "?=", -32020)])
def test_modern_name(modern, name, expected):
    answer = modern.tool("file_exists", {}, headers={"Mcp-Name": name})
    assert answer.status == (400 if expected else 200)
    assert answer.json.get("error", {}).get("code") == expected


@pytest.mark.parametrize("method", ["initialize", "ping", "logging/setLevel", "resources/subscribe", "no/such",
                                    "subscriptions/listen"])
def test_modern_unknown(modern, method):
    answer = modern.request(method)
    assert (answer.status, code(answer)) == (404, -32601)


def test_modern_results(modern, box):
    result = modern.try_call("file_exists", **box.where, path="/tmp")
    assert result["resultType"] == "complete" and result["structuredContent"] == {"exists": True}
    assert result["_meta"][f"{META}serverInfo"]["name"]
    failed = modern.try_call("file_exists", **box.where, path="/tmp", wrong=1)
    assert failed["isError"] and failed["resultType"] == "complete"


# ---- tools/call

def test_unknown_tool(era):
    answer = era.tool("no_such_tool")
    assert (answer.status, code(answer)) == (200, -32602) and "no_such_tool" in answer.json["error"]["message"]


@pytest.mark.parametrize("params", [{}, {"name": 7}, {"name": "file_exists", "arguments": []},
                                    {"name": "file_exists", "arguments": "x"}])
def test_malformed_call(raw, params):
    answer = raw.request("tools/call", params)
    assert (answer.status, code(answer)) == (200, -32602)


def test_arguments_left_out(raw):
    for message in (raw.message("tools/call", {"name": "file_exists"}),
                    raw.message("tools/call", {"name": "file_exists", "arguments": None})):
        result = raw.post(message).json["result"]
        assert result["isError"] and "sandbox_claim_name" in text_of(result)


@pytest.mark.parametrize("tool,arguments,named", [
    ("execute_command", {"timeout": 0}, ["timeout", "1", "600"]), ("execute_command", {"timeout": 601}, ["timeout", "600"]),
    ("execute_command", {"timeout": 1.5}, ["timeout"]), ("execute_command", {"timeout": "soon"}, ["timeout"]),
    ("execute_command", {"command": 7}, ["command"]), ("execute_command", {"comand": "x"}, ["comand"]),
    ("list_files", {"path": "/", "max_entries": 0}, ["max_entries", "1", "10000"]),
    ("list_files", {"path": "/", "max_entries": 10001}, ["max_entries", "10000"]),
    ("file_exists", {"path": "a\0b"}, ["path"]), ("file_exists", {"path": ""}, ["path"]),
    ("upload_file", {"path": "/tmp/x", "content": "x", "binary": "maybe"}, ["binary"])])
def test_wrong_arguments_are_named(raw, box, tool, arguments, named):
    filled = {"command": "true"} if tool == "execute_command" else {}
    text = raw.error(tool, **box.where, **{**filled, **arguments})
    for word in named:
        assert word in text, text


@pytest.mark.parametrize("arguments", [{"timeout": "10"}, {"timeout": 10.0}, {"timeout": None}])
def test_faithful_conversions(box, arguments):
    assert box.run("echo ok", **arguments)["stdout"] == "ok\n"


def test_binary_as_a_string(box):
    box.call("upload_file", path="/tmp/text", content="aGk=", binary="false")
    assert box.call("download_file", path="/tmp/text")["content"] == "aGk="
    box.call("upload_file", path="/tmp/text", content="aGk=", binary="true")
    assert box.call("download_file", path="/tmp/text", binary="false")["content"] == "hi"


def test_a_large_body_is_refused(raw, box):
    answer = raw.tool("upload_file", {**box.where, "path": "/tmp/x", "content": "x" * (34 << 20)})
    assert answer.status == 413


def test_one_connection_serves_many(raw):
    connection = raw.connect()
    for _ in range(50):
        raw.send(connection, raw.message("tools/list"))
        response = connection.getresponse()
        assert response.status == 200 and json.loads(response.read())["result"]["tools"]
    connection.close()


def test_many_connections(raw):
    def one(_):
        return raw.with_(timeout=30).request("tools/list").status

    with concurrent.futures.ThreadPoolExecutor(64) as pool:
        assert set(pool.map(one, range(256))) == {200}


def test_framing_that_could_smuggle(raw):
    """Two lengths, or a length beside chunks: refused, and the connection is over."""
    for extra in ("Content-Length: 2\r\nContent-Length: 3\r\n", "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n"):
        connection = raw.connect()
        head = (f"POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                f"Authorization: Bearer {raw.token}\r\n{extra}\r\n")
        connection.sock.sendall(head.encode() + b"{}")
        answer = b""
        while piece := connection.sock.recv(65536):
            answer += piece
        assert answer.startswith(b"HTTP/1.1 400 "), answer
        connection.close()


def test_names_of_the_service(raw, system):
    """In a cluster it has many; on loopback, names that lead elsewhere are refused (a browser could be lured)."""
    for host in ("sandbox-gateway.agent-sandbox-system.svc:8080", "gateway.example.com"):
        status = raw.request("ping", headers={"Host": host}).status
        assert status == (403 if "127.0.0.1" in system.address() else 200)
