# SPDX-License-Identifier: Apache-2.0
"""The node's audit log: who asked the API server for what. A record is written before its answer is
sent, so what a client has been answered is in the log."""

import collections
import json
import re

from .system import default_folder

WRITES = ("create", "update", "patch", "delete", "deletecollection")
CONTROLLER = "system:serviceaccount:agent-sandbox-system:agent-sandbox-controller"
GATEWAY = "system:serviceaccount:agent-sandbox-system:sandbox-gateway"


def default_path():
    return default_folder() / "audit/audit.log"


class Record:
    def __init__(self, line):
        self.raw = line
        self.id = line["auditID"]
        self.user = line["user"]["username"]
        self.verb = line["verb"]
        reference = line.get("objectRef") or {}
        self.namespace = reference.get("namespace", "")
        self.name = reference.get("name", "")
        self.resource = "/".join(filter(None, (reference.get("resource"), reference.get("subresource"))))
        self.code = (line.get("responseStatus") or {}).get("code")
        self.at = line["requestReceivedTimestamp"]
        self.done = line["stageTimestamp"]
        self.agent = line.get("userAgent", "")

    @property
    def is_write(self):
        return self.verb in WRITES

    def __repr__(self):
        return f"{self.at[11:23]}–{self.done[11:23]} {self.verb} {self.resource} {self.namespace}/{self.name} {self.code}"


class Audit:
    def __init__(self, path=None):
        self.path = path or default_path()

    def mark(self):
        """Here and now, for since()."""
        return self.path.stat().st_size

    def since(self, mark, user=None, namespace=None, agent=None):
        """The requests answered (or, of a watch or an exec, begun) since then, oldest first."""
        found = {}
        with open(self.path, "rb") as file:
            if mark > 0:  # it may lie within a line that was being written then
                file.seek(mark - 1)
                file.readline()
            for line in file:
                if not line.endswith(b"\n"):
                    break
                record = Record(json.loads(line))
                if user not in (None, record.user) or namespace not in (None, record.namespace):
                    continue
                if agent is None or re.search(agent, record.agent):
                    found.setdefault(record.id, record)
        return sorted(found.values(), key=lambda r: r.at)


def tally(records):
    """{"verb resource": count}"""
    return dict(collections.Counter(f"{r.verb} {r.resource}" for r in records))


def longest_chain(records):
    """How many of these writes ran one after another: the longest sequence in which each was sent
    after the one before it had been answered."""
    best = []
    for record in sorted(records, key=lambda r: r.at):
        chains = [b for b in best if b[0].done <= record.at]
        longest = max(chains, key=len, default=[])
        best.append([record, *longest])
    return list(reversed(max(best, key=len, default=[])))
