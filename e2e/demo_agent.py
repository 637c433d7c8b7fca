#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An agent's work over MCP, with nothing but Python's standard library.

Prints each call, its result and its time. Three acts: the published skill's workflow, a sandbox that
is created and abandoned (it must be gone right after its TTL), and an orphan (its claim deleted with
--cascade=orphan) that the controller must collect. Exit status 0 when everything went as it should.
"""
import argparse
import base64
import json
import os
import shlex
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

WIDTH = 110
TTL_SECONDS = 8
TTL_GRACE_SECONDS = 5
ORPHAN_LIMIT_SECONDS = 120


class DemoFailure(Exception):
    """Something did not go as it should; the text says what."""


class Progress:
    """Prints a dot a second on a terminal line while something takes longer than two seconds."""

    def __init__(self, what):
        self.what = what
        self.done = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.started = time.monotonic()

    def run(self):
        delay = 2.0
        while not self.done.wait(delay):
            delay = 5.0
            print(f"    … {self.what}, {time.monotonic() - self.started:.0f} s", flush=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()


def shorten(value):
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= WIDTH else text[: WIDTH - 1] + "…"


class Gateway:
    def __init__(self, url, token):
        self.url = url
        self.token = token
        self.next_id = 0

    def post(self, method, params, timeout):
        self.next_id += 1
        body = json.dumps({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params})
        request = urllib.request.Request(self.url, data=body.encode(), method="POST", headers={
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2025-11-25",
            "Authorization": f"Bearer {self.token}",
        })
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=timeout) as response:
                return self.read_reply(response)
        except urllib.error.HTTPError as error:
            raise DemoFailure(f"{method}: HTTP {error.code}: {error.read(400).decode(errors='replace')}")
        except OSError as error:
            raise DemoFailure(f"{method}: {error}")

    @staticmethod
    def read_reply(response):
        if response.headers.get_content_type() == "application/json":
            return json.load(response)
        reply = None
        for line in response:
            if line.startswith(b"data:"):
                message = json.loads(line[5:])
                if "result" in message or "error" in message:
                    reply = message
        if reply is None:
            raise DemoFailure("the event stream ended without a reply")
        return reply

    def call(self, tool, timeout=240, allow_error=False, show=None, **arguments):
        print(f"  → {tool} {shorten(show or arguments)}", flush=True)
        started = time.monotonic()
        with Progress(tool):
            reply = self.post("tools/call", {"name": tool, "arguments": arguments}, timeout)
        took = (time.monotonic() - started) * 1000
        if "error" in reply:
            raise DemoFailure(f"{tool}: {reply['error']}")
        result = reply["result"]
        shown = result.get("structuredContent")
        if shown is None:
            shown = " ".join(part.get("text", "") for part in result.get("content", []))
        print(f"  ← {shorten(shown)}  [{took:.0f} ms]", flush=True)
        if result.get("isError") and not allow_error:
            raise DemoFailure(f"{tool}: {shown}")
        return result


def expect(condition, text):
    if not condition:
        raise DemoFailure(text)


def kubectl(args, *command, check=True):
    done = subprocess.run(shlex.split(args.kubectl) + list(command), text=True, capture_output=True, timeout=60, check=False)
    if check and done.returncode != 0:
        raise DemoFailure(f"kubectl {' '.join(command)}: {done.stderr.strip()}")
    return done


def wait_gone(args, what, names, limit):
    """Waits until none of the named objects is left; returns the seconds it took."""
    started = time.monotonic()
    with Progress(f"waiting for {what} to be gone"):
        while True:
            left = [n for n in names
                    if kubectl(args, "-n", args.namespace, "get", n, "-o", "name", "--ignore-not-found").stdout.strip()]
            if not left:
                return time.monotonic() - started
            if time.monotonic() - started > limit:
                raise DemoFailure(f"{', '.join(left)} still there after {limit} s")
            time.sleep(0.25)


def sandbox_of(args, claim):
    out = kubectl(args, "-n", args.namespace, "get", "sandboxclaim", claim,
                  "-o", "jsonpath={.status.sandbox.name}").stdout.strip()
    expect(out, f"claim {claim} names no sandbox")
    return out


def workflow(gateway, args):
    print("\nThe published skill's workflow: create, execute, transfer, delete")
    where = {"namespace": args.namespace}
    created = gateway.call("create_sandbox", warmpool=args.warmpool, shutdown_after_seconds=600, **where)
    box = {"sandbox_claim_name": created["structuredContent"]["sandbox_claim_name"], **where}
    run = lambda command, **more: gateway.call("execute_command", command=command, **box, **more)["structuredContent"]
    try:
        status = gateway.call("get_sandbox_status", **box)["structuredContent"]
        expect(status["ready"], "the sandbox is not ready")
        expect(run("echo hello from $(uname -s)")["stdout"] == "hello from Linux\n", "unexpected output")
        expect(run("python3 -c 'print(sum(range(101)))' || python -c 'print(sum(range(101)))'")["stdout"].strip() == "5050",
               "python did not compute")
        pip = gateway.call("execute_command", command="pip install --retries 0 --timeout 5 requests", timeout=20,
                           allow_error=True, **box).get("structuredContent") or {}
        code = pip.get("exit_code")
        print("    pip install requests: " + ("installed" if code == 0 else
              f"did not succeed here (exit code {code}): the sandbox has no way to a package index, which the policy decides"))
        expect(run("exit 3")["exit_code"] == 3, "the exit code was lost")
        script = "import sys\nprint('read back', sys.argv[1])\n"
        up = gateway.call("upload_file", path="/tmp/demo/hello.py", content=script, **box)["structuredContent"]
        expect(up["bytes_written"] == len(script), "bytes_written is wrong")
        expect("read back ok" in run("python3 /tmp/demo/hello.py ok")["stdout"], "the uploaded file did not run")
        blob = base64.b64encode(os.urandom(65536)).decode()
        gateway.call("upload_file", path="/tmp/demo/blob.bin", content=blob, binary=True,
                     show={"path": "/tmp/demo/blob.bin", "content": "64 KiB of random bytes", "binary": True}, **box)
        listing = gateway.call("list_files", path="/tmp/demo", **box)["structuredContent"]
        expect({e["name"] for e in listing["entries"]} == {"hello.py", "blob.bin"}, "the listing is wrong")
        down = gateway.call("download_file", path="/tmp/demo/blob.bin", binary=True, **box)["structuredContent"]
        expect(down["content"] == blob, "the download differs from the upload")
        expect(gateway.call("file_exists", path="/tmp/demo/hello.py", **box)["structuredContent"]["exists"], "file_exists is wrong")
        expect(not gateway.call("file_exists", path="/tmp/demo/nothing", **box)["structuredContent"]["exists"], "file_exists is wrong")
    finally:
        gateway.call("delete_sandbox", **box)
    status = gateway.call("get_sandbox_status", **box)["structuredContent"]
    expect(status["status"] == "SandboxNotFound", "the sandbox is still there")


def abandoned(gateway, args):
    print(f"\nA sandbox that is created and abandoned: it must be gone right after its {TTL_SECONDS} s")
    created = gateway.call("create_sandbox", warmpool=args.warmpool, shutdown_after_seconds=TTL_SECONDS, namespace=args.namespace)
    born = time.monotonic()
    claim = created["structuredContent"]["sandbox_claim_name"]
    sandbox = sandbox_of(args, claim)
    wait_gone(args, f"claim {claim}", [f"sandboxclaim/{claim}", f"sandbox/{sandbox}"], TTL_SECONDS + TTL_GRACE_SECONDS)
    print(f"  claim and sandbox are gone {time.monotonic() - born:.1f} s after the creation was answered, nobody asked")


def orphan(gateway, args):
    print("\nAn orphan: the claim is deleted with --cascade=orphan, the sandbox stays behind")
    created = gateway.call("create_sandbox", warmpool=args.warmpool, shutdown_after_seconds=3600, namespace=args.namespace)
    claim = created["structuredContent"]["sandbox_claim_name"]
    sandbox = sandbox_of(args, claim)
    kubectl(args, "-n", args.namespace, "delete", "sandboxclaim", claim, "--cascade=orphan", "--wait=false")
    took = wait_gone(args, f"orphan {sandbox}", [f"sandboxclaim/{claim}", f"sandbox/{sandbox}", f"pod/{sandbox}"], ORPHAN_LIMIT_SECONDS)
    print(f"  the controller collected sandbox {sandbox} and its pod within {took:.1f} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True, help="the gateway's endpoint, http://HOST:PORT/mcp")
    parser.add_argument("--token-file", required=True, help="file with a bearer token for the gateway")
    parser.add_argument("--kubectl", default="kubectl", help="kubectl, with its options, to look behind the scenes with")
    parser.add_argument("--namespace", default="default", help="namespace to work in (default: %(default)s)")
    parser.add_argument("--warmpool", default="simple-sandbox-warmpool", help="warm pool to use (default: %(default)s)")
    args = parser.parse_args()
    with open(args.token_file, encoding="utf-8") as file:
        gateway = Gateway(args.url, file.read().strip())
    try:
        hello = gateway.post("initialize", {"protocolVersion": "2025-11-25", "capabilities": {},
                                            "clientInfo": {"name": "demo", "version": "1"}}, 10)["result"]
        print(f"Connected to {hello['serverInfo']['name']} {hello['serverInfo']['version']}, protocol {hello['protocolVersion']}")
        for act in (workflow, abandoned, orphan):
            act(gateway, args)
    except (DemoFailure, KeyError) as error:
        print(f"\nFAILED: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
