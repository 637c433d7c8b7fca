# SPDX-License-Identifier: Apache-2.0
"""Drives the program kube_probe: commands in, events out, a JSON object a line."""

import json
import os
import subprocess
import tempfile
import threading
import time

BUILD_DIR = os.environ.get("BUILD_DIR", os.path.join(os.path.dirname(__file__), "../../build/dev"))


class Probe:
    def __init__(self, *flags, kubeconfig=None, env=None, wrap=()):
        self.lines = []
        self._changed = threading.Condition()
        self._next_id = 0
        self._stderr = tempfile.TemporaryFile()
        where = [f"--kubeconfig={kubeconfig}"] if kubeconfig else []
        self._process = subprocess.Popen(
            [*wrap, os.path.join(BUILD_DIR, "bin/kube_probe"), *where, *flags],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._stderr,
            env=os.environ | (env or {}))
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self._process.stdout:
            with self._changed:
                self.lines.append(json.loads(line) | {"at": time.monotonic()})
                self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()

    @property
    def pid(self):
        return self._process.pid

    @property
    def stderr(self):
        self._stderr.seek(0)
        return self._stderr.read().decode(errors="replace")

    def seen(self, event, **fields):
        with self._changed:
            return [x for x in self.lines
                    if x["event"] == event and all(x.get(k) == v for k, v in fields.items())]

    def wait(self, event, count=1, timeout=30, **fields):
        """The count-th line of this event with these fields."""
        end = time.monotonic() + timeout
        with self._changed:
            while len(found := self.seen(event, **fields)) < count:
                left = end - time.monotonic()
                if left <= 0 or self._process.poll() is not None:
                    raise AssertionError(f"no {event} {fields} (x{count}) within {timeout} s; "
                                         f"saw {self.lines[-20:]}; stderr: {self.stderr[-4000:]}")
                self._changed.wait(min(left, 0.1))
            return found[count - 1]

    def view(self):
        """The names that a consumer of the events so far holds: replays lists and events."""
        held, mentioned = {}, None
        with self._changed:
            for x in self.lines:
                if x["event"] == "list_begin":
                    mentioned = set()
                elif x["event"] == "upsert":
                    held[x["name"]] = x["version"]
                    if mentioned is not None:
                        mentioned.add(x["name"])
                elif x["event"] == "removed":
                    held.pop(x["name"], None)
                elif x["event"] == "list_end":
                    held = {n: v for n, v in held.items() if n in mentioned}
                    mentioned = None
        return held

    def command(self, op, **fields):
        self._next_id += 1
        line = json.dumps({"op": op, "id": self._next_id} | fields)
        self._process.stdin.write(line.encode() + b"\n")
        self._process.stdin.flush()
        return self._next_id

    def send(self, verb, path, timeout=35, **fields):
        """A request through the KubeClient; its answer."""
        number = self.command("send", verb=verb, path=path, **fields)
        return self.wait("answer", id=number, timeout=timeout)

    def stop(self):
        """Ends it the clean way: status 0, nothing on stderr from a sanitizer."""
        if self._process.poll() is None:
            self._process.stdin.close()
        code = self._process.wait(timeout=20)
        text = self.stderr
        assert code == 0, f"exit status {code}: {text[-8000:]}"
        assert "Sanitizer" not in text and "runtime error" not in text, text[-8000:]

    def kill(self):
        self._process.kill()
        self._process.wait()
