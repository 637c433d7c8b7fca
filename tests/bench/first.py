#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The first figures, to be beaten later. Run it through first.sh.

  warm claim, create → Ready      one after another, on a pool of 20 that refills
  execute_command "true"          beside `kubectl exec … true`, in turn
  tools/list                      requests a second at 64 connections (wrk)
  anonymous memory                of both processes, idle and after 10,000 tool calls
  sizes                           of the images
"""
import argparse
import http.client
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time
from urllib.parse import urlsplit

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "e2e"))

from support.kube import Kube, is_ready, name_of  # noqa: E402
from support.mcp_raw import Raw, create  # noqa: E402
from support.space import BUSYBOX_IMAGE, Space, unique  # noqa: E402
from support.system import GATEWAY, System, cache  # noqa: E402

POOL = 20
CLAIMS = 30
COMMANDS = 50
CALLS = 10_000
CALLERS = 16


def percentiles(seconds):
    ordered = sorted(seconds)

    def at(share):
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] * 1000

    return f"p50 {at(.5):.1f} ms, p99 {at(.99):.1f} ms ({len(ordered)} samples)"


def say(what, figure):
    print(f"{what:<44} {figure}", flush=True)


def rss_anon_kib(name):
    """Of the processes of that name, the largest."""
    found = []
    for status in pathlib.Path("/proc").glob("[0-9]*/status"):
        try:
            text = status.read_text()
        except OSError:
            continue
        if re.search(rf"^Name:\s+{name[:15]}$", text, re.M):
            found.append(int(re.search(r"^RssAnon:\s+(\d+)", text, re.M)[1]))
    if not found:
        raise SystemExit(f"no process {name}")
    return max(found)


def memory(when):
    for name in ("sandbox-controller", "sandbox-gateway"):
        say(f"RssAnon {name}, {when}", f"{rss_anon_kib(name) / 1024:.1f} MiB")


def warm_claims(kube, space):
    """From sending the POST to the watch event that says Ready. The pool is full before each."""
    took = []
    for _ in range(CLAIMS):
        space.pool_ready("pool", POOL)
        name = unique("bench")
        version = kube.list_whole("SandboxClaim", space.name)["metadata"]["resourceVersion"]
        ready = threading.Event()
        watching = threading.Event()

        def watch(name=name, version=version, ready=ready, watching=watching):
            watching.set()
            events = kube.events_of(kube.path("SandboxClaim", space.name), version, 30,
                                    {"fieldSelector": f"metadata.name={name}"})
            for _, claim in events:
                if is_ready(claim):
                    ready.set()
                    return

        thread = threading.Thread(target=watch)
        thread.start()
        watching.wait()
        started = time.monotonic()
        space.claim(name, pool="pool")
        if not ready.wait(30):
            raise SystemExit(f"claim {name} did not become Ready")
        took.append(time.monotonic() - started)
        thread.join()
        space.delete("SandboxClaim", name)
    say("warm claim, create → Ready", percentiles(took))


def commands(kube, space, box):
    pod = name_of(space.sandbox_of(box.claim))
    ours, theirs = [], []
    for _ in range(COMMANDS):
        started = time.monotonic()
        box.run("true")
        ours.append(time.monotonic() - started)
        started = time.monotonic()
        subprocess.run(["kubectl", "--kubeconfig", kube.kubeconfig, "-n", space.name, "exec", pod, "--", "true"],
                       check=True, capture_output=True)
        theirs.append(time.monotonic() - started)
    say('execute_command "true"', percentiles(ours))
    say("kubectl exec … true", percentiles(theirs))
    ratio = sorted(ours)[len(ours) // 2] / sorted(theirs)[len(theirs) // 2]
    say("  ratio of the medians", f"{ratio:.2f}")


def tools_list(raw):
    body = json.dumps(raw.message("tools/list"))
    headers = "".join(f'wrk.headers["{k}"] = "{v}"\n' for k, v in raw.headers("tools/list").items())
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(f"wrk.method = 'POST'\nwrk.body = [==[{body}]==]\n{headers}")
        script.flush()
        os.chmod(script.name, 0o600)
        done = subprocess.run(["wrk", "-t1", "-c64", "-d5s", "--latency", "-s", script.name, raw.url],
                              capture_output=True, text=True, check=True)
    rate = re.search(r"Requests/sec:\s+([\d.]+)", done.stdout)[1]
    slow = re.search(r"99%\s+(\S+)", done.stdout)[1]
    bad = re.search(r"Non-2xx or 3xx responses: (\d+)", done.stdout)
    if bad:
        raise SystemExit(f"tools/list: {bad[1]} answers were errors")
    say("tools/list, 64 connections", f"{float(rate):.0f} requests/s, p99 {slow}")


def many_calls(raw, box):
    """get_sandbox_status over and over, on kept connections."""
    body = json.dumps(raw.message("tools/call", {"name": "get_sandbox_status", "arguments": box.where}))
    parts = urlsplit(raw.url)
    failed = []

    def caller(count):
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=30)
        for _ in range(count):
            connection.request("POST", parts.path, body=body, headers=raw.headers("tools/call", "get_sandbox_status"))
            answer = connection.getresponse()
            text = answer.read()
            if answer.status != 200 or b'"SandboxReady"' not in text:
                failed.append(text[:200])
        connection.close()

    threads = [threading.Thread(target=caller, args=(CALLS // CALLERS,)) for _ in range(CALLERS)]
    started = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise SystemExit(f"{len(failed)} of {CALLS} calls failed: {failed[0]}")
    say(f"{CALLS} × get_sandbox_status, {CALLERS} callers", f"{CALLS / (time.monotonic() - started):.0f} calls/s")


def image_sizes():
    for name in ("sandbox-controller", "sandbox-gateway"):
        say(f"image {name}", f"{(cache() / 'images' / f'{name}.tar').stat().st_size / 1e6:.1f} MB unpacked")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    kube = Kube(os.environ["KUBECONFIG"])
    system = System(kube)
    system.install()
    system.scale(GATEWAY, 1)
    space = Space(kube, unique("bench"))
    kube.create("Namespace", None, space.name)
    try:
        space.template("box", image=BUSYBOX_IMAGE)
        space.pool("pool", "box", POOL)
        space.pool_ready("pool", POOL, timeout=180)
        raw = Raw(system.address(), space.user())
        memory("idle, pool of 20")
        warm_claims(kube, space)
        box = create(raw, space.name, "pool", shutdown_after_seconds=3600)
        commands(kube, space, box)
        tools_list(raw)
        many_calls(raw, box)
        memory(f"after {CALLS} calls")
        image_sizes()
        box.delete()
    finally:
        kube.delete("Namespace", None, space.name)
        system.remove()


if __name__ == "__main__":
    main()
