# SPDX-License-Identifier: Apache-2.0
"""MCP by plain HTTP, in both eras, with nothing hidden: the requests are what a test says they are."""

import http.client
import json
import socket
import threading
import time
from urllib.parse import urlsplit

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
META = "io.modelcontextprotocol/"


class Answer:
    """One HTTP answer; of an event stream all events, each with the seconds until it came."""

    def __init__(self, response, started):
        self.status = response.status
        self.headers = {k.lower(): v for k, v in response.getheaders()}
        self.type = self.headers.get("content-type", "").split(";")[0]
        self.headers_after = time.monotonic() - started
        self.comments, self.messages, self.body = [], [], b""
        if self.type == "text/event-stream":
            self.read_events(response, started)
        else:
            self.body = response.read()
        self.took = time.monotonic() - started

    def read_events(self, response, started):
        data = []
        for line in response:
            after = time.monotonic() - started
            line = line.rstrip(b"\r\n").decode()
            if line.startswith(":"):
                self.comments.append((after, line[1:].strip()))
            elif line.startswith("data:"):
                data.append(line[5:].strip())
            elif not line and data:
                self.messages.append((after, json.loads("\n".join(data))))
                data = []

    @property
    def json(self):
        """The JSON-RPC answer: the body, or the event that holds it."""
        if self.type == "text/event-stream":
            found = [m for _, m in self.messages if "id" in m and ("result" in m or "error" in m)]
            assert len(found) == 1, f"{len(found)} answers in the stream: {self.messages}"
            return found[0]
        return json.loads(self.body)

    @property
    def progress(self):
        return [(at, m["params"]) for at, m in self.messages if m.get("method") == "notifications/progress"]

    def __repr__(self):
        return f"HTTP {self.status} {self.type} {self.body[:500]!r}{self.messages or ''}"


class ToolError(AssertionError):
    """A tool said isError where none was expected."""


class Raw:
    def __init__(self, url, token=None, era="legacy", timeout=120):
        self.url = url
        self.token = token
        self.era = era
        self.timeout = timeout
        self.last_id = 0
        self.lock = threading.Lock()

    def with_(self, **changes):
        fields = {"url": self.url, "token": self.token, "era": self.era, "timeout": self.timeout, **changes}
        return Raw(**fields)

    def connect(self):
        parts = urlsplit(self.url)
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=self.timeout)
        connection.connect()
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def headers(self, method=None, name=None):
        """What a well-behaved client of the era sends."""
        found = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
                 "MCP-Protocol-Version": MODERN if self.era == "modern" else LEGACY}
        if self.token:
            found["Authorization"] = f"Bearer {self.token}"
        if self.era == "modern" and method:
            found["Mcp-Method"] = method
            if name is not None:
                found["Mcp-Name"] = name
        return found

    def message(self, method, params=None, number=None, meta=None):
        with self.lock:
            self.last_id += 1
            number = self.last_id if number is None else number
        params = dict(params or {})
        meta = dict(meta or {})
        if self.era == "modern":
            meta = {f"{META}protocolVersion": MODERN, f"{META}clientCapabilities": {}, **meta}
        if meta:
            params["_meta"] = meta
        return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}

    def send(self, connection, body, headers=None, method="POST", path=None, replace=False):
        """Sends a request; body is bytes, text or a JSON-RPC message. headers: None takes one away."""
        whole = {} if replace else self.headers(*routing(body))
        for key, value in (headers or {}).items():
            whole = {k: v for k, v in whole.items() if k.lower() != key.lower()}
            if value is not None:
                whole[key] = value
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        if isinstance(body, str):
            body = body.encode()
        connection.request(method, path or urlsplit(self.url).path, body=body, headers=whole)

    def post(self, body, headers=None, **options):
        connection = self.connect()
        try:
            started = time.monotonic()
            self.send(connection, body, headers, **options)
            return Answer(connection.getresponse(), started)
        finally:
            connection.close()

    def request(self, method, params=None, headers=None, meta=None):
        return self.post(self.message(method, params, meta=meta), headers)

    def result(self, method, params=None):
        answer = self.request(method, params)
        assert answer.status == 200 and "result" in answer.json, answer
        return answer.json["result"]

    # ---- tools

    def tool(self, name, arguments=None, meta=None, headers=None):
        """The HTTP answer to a tool call."""
        return self.request("tools/call", {"name": name, "arguments": arguments or {}}, headers, meta)

    def try_call(self, name, **arguments):
        """The result of a tool, isError or not."""
        answer = self.tool(name, arguments)
        assert answer.status == 200 and "result" in answer.json, f"{name}: {answer}"
        return answer.json["result"]

    def call(self, name, **arguments):
        """The structured result of a tool."""
        result = self.try_call(name, **arguments)
        if result.get("isError"):
            raise ToolError(f"{name} {str(arguments)[:200]}: {text_of(result)}")
        structured = result.get("structuredContent")
        if structured is not None:
            assert json.loads(text_of(result)) == structured, "the text differs from structuredContent"
        return structured

    def error(self, name, **arguments):
        """The text of a tool's isError."""
        result = self.try_call(name, **arguments)
        assert result.get("isError") is True, f"{name} succeeded: {str(result)[:500]}"
        assert "structuredContent" not in result
        return text_of(result)


def routing(body):
    """(method, name) that a modern client repeats in headers."""
    if not isinstance(body, dict):
        return None, None
    params = body.get("params") if isinstance(body.get("params"), dict) else {}
    return body.get("method"), params.get("name") if body.get("method") == "tools/call" else None


def text_of(result):
    return "".join(part.get("text", "") for part in result.get("content") or [])


class Box:
    """One sandbox, its tools without the arguments that name it."""

    def __init__(self, raw, namespace, claim):
        self.raw = raw
        self.namespace = namespace
        self.claim = claim

    @property
    def where(self):
        return {"namespace": self.namespace, "sandbox_claim_name": self.claim}

    def call(self, tool, **arguments):
        return self.raw.call(tool, **self.where, **arguments)

    def error(self, tool, **arguments):
        return self.raw.error(tool, **self.where, **arguments)

    def run(self, command, **arguments):
        return self.call("execute_command", command=command, **arguments)

    def sh(self, command, **arguments):
        """The standard output of a command that has to succeed."""
        done = self.run(command, **arguments)
        assert done["exit_code"] == 0, done
        return done["stdout"]

    def seen_by(self, raw):
        return Box(raw, self.namespace, self.claim)

    def delete(self):
        self.call("delete_sandbox")


def create(raw, namespace, warmpool, **arguments):
    created = raw.call("create_sandbox", warmpool=warmpool, namespace=namespace, **arguments)
    return Box(raw, namespace, created["sandbox_claim_name"])
