# SPDX-License-Identifier: Apache-2.0
"""Drives the real sandbox-gateway: starts it against a FakeApi, speaks HTTP to it by hand."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time

BUILD_DIR = os.environ.get("BUILD_DIR", os.path.join(os.path.dirname(__file__), "../../build/dev"))
BOTH = "application/json, text/event-stream"
MODERN = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, dict(headers), body
        self.header_names = sorted(name for name, _ in headers)  # one that is there twice is in it twice

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def events(self):
        """The JSON of each server-sent event, comments left out."""
        blocks = self.body.decode().split("\n\n")
        return [json.loads(line[6:]) for b in blocks for line in b.split("\n") if line.startswith("data: ")]

    @property
    def message(self):
        """The answer, however it came."""
        if self.headers.get("Content-Type") == "text/event-stream":
            return self.events[-1]
        return self.json

    @property
    def result(self):
        assert "result" in self.message, self.message
        return self.message["result"]

    @property
    def structured(self):
        result = self.result
        assert not result.get("isError"), result
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
        return result["structuredContent"]

    @property
    def error_text(self):
        result = self.result
        assert result.get("isError") is True and "structuredContent" not in result, result
        return result["content"][0]["text"]

    def __repr__(self):
        return f"<{self.status} {self.headers} {self.body[:2000]}>"


class Gateway:
    """Context manager; token: the caller's, sent with every request unless another is given."""

    def __init__(self, api, tmp_path, *flags, auth="kubernetes", token="t-alice", wrap=()):
        self.token = token if auth == "kubernetes" else None
        self._log, self._told = tempfile.TemporaryFile(), False
        kubeconfig = api.write_kubeconfig(tmp_path / "gateway.kubeconfig")
        self._process = subprocess.Popen(
            [*wrap, os.path.join(BUILD_DIR, "bin/sandbox-gateway"), f"--kubeconfig={kubeconfig}",
             "--listen=127.0.0.1:0", "--obs-address=127.0.0.1:0", f"--auth={auth}",
             "--drain-delay=0s", "--log-level=debug", *flags],
            stderr=self._log, stdout=subprocess.DEVNULL)
        self.port = int(self._wait_log(r" serving .*port=(\d+)").group(1))

    def _wait_log(self, pattern, timeout=20):
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            if found := re.search(pattern, self.log):
                return found
            assert self._process.poll() is None, self.log
            time.sleep(0.02)  # between two looks at the log
        raise AssertionError(f"no {pattern!r} in the log: {self.log[-4000:]}")

    def ready(self):
        self._wait_log(r" ready ")
        return self

    @property
    def log(self):
        self._log.seek(0)
        return self._log.read().decode(errors="replace")

    def wait_log(self, pattern, timeout=20):
        return self._wait_log(pattern, timeout)

    @property
    def pid(self):
        return self._process.pid

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        code = self.stop()
        log = self.log
        if kind is None:
            assert code == 0, log[-8000:]
        assert "Sanitizer" not in log and "runtime error" not in log, log[-8000:]

    def terminate(self):
        self._told = True
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)

    def stop(self, timeout=30):
        if not self._told:
            self.terminate()
        return self._process.wait(timeout=timeout)

    # --- HTTP ---

    def headers(self, token=None, **more):
        headers = {"Content-Type": "application/json", "Accept": BOTH}
        token = self.token if token is None else token
        if token:
            headers["Authorization"] = f"Bearer {token}"
        return {k: v for k, v in (headers | {k.replace("_", "-"): v for k, v in more.items()}).items()
                if v is not None}

    def http(self, method="POST", path="/mcp", body=b"", headers=None, timeout=30):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, body=body, headers=headers or {})
            r = connection.getresponse()
            return Reply(r.status, r.getheaders(), r.read())
        finally:
            connection.close()

    def post(self, body, timeout=30, **headers):
        if not isinstance(body, bytes):
            body = (body if isinstance(body, str) else json.dumps(body)).encode()
        return self.http(body=body, headers=self.headers(**headers), timeout=timeout)

    def rpc(self, method, params=None, id=1, timeout=30, **headers):
        body = {"jsonrpc": "2.0", "id": id, "method": method}
        if params is not None:
            body["params"] = params
        return self.post(body, timeout=timeout, **headers)

    def modern(self, method, params=None, **headers):
        params = dict(params or {})
        params["_meta"] = META | params.get("_meta", {})
        more = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
        if method == "tools/call":
            more["Mcp-Name"] = params.get("name")
        return self.rpc(method, params, **(more | headers))

    def call(self, tool, wait=60, progress=None, headers=None, **arguments):
        params = {"name": tool, "arguments": arguments}
        if progress is not None:
            params["_meta"] = {"progressToken": progress}
        return self.rpc("tools/call", params, timeout=wait, **(headers or {}))

    def begin(self, tool, **arguments):
        """Sends a call and leaves the socket open, unread."""
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                           "params": {"name": tool, "arguments": arguments}}).encode()
        head = "".join(f"{k}: {v}\r\n" for k, v in self.headers().items())
        sock = socket.create_connection(("127.0.0.1", self.port))
        sock.sendall(f"POST /mcp HTTP/1.1\r\nHost: localhost\r\n{head}Content-Length: {len(body)}\r\n\r\n"
                     .encode() + body)
        return sock


def in_background(fn, *args, **kwargs):
    """Runs fn in a thread; the returned function waits for its result."""
    box = {}

    def run():
        try:
            box["value"] = fn(*args, **kwargs)
        except BaseException as e:  # noqa: BLE001 - handed over to whoever waits
            box["error"] = e

    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def wait(timeout=60):
        thread.join(timeout)
        assert not thread.is_alive(), "still running"
        if "error" in box:
            raise box["error"]
        return box["value"]

    return wait
