# SPDX-License-Identifier: Apache-2.0
"""Plays controller and kubelet in a FakeApi, as far as the gateway looks at them."""

import threading

from fakeapi import CLAIMS, PODS, SANDBOXES
from fakestore import ApiError

OWNER_LABEL = "mcp.k8s-agent-sandbox/session-id"
OWNER = "k8s-agent-sandbox-mcp/owner"
NS = "team"


def controller_ref(kind, obj):
    return [{"kind": kind, "name": obj["metadata"]["name"], "uid": obj["metadata"]["uid"], "controller": True}]


def running(name="main"):
    return {"phase": "Running", "containerStatuses": [
        {"name": name, "containerID": f"containerd://{name}-1", "state": {"running": {}}}]}


def ready(status="True", reason="DependenciesReady", message="Pod is Ready"):
    return {"type": "Ready", "status": status, "reason": reason, "message": message,
            "lastTransitionTime": "2026-01-01T00:00:00Z"}


class Cluster:
    def __init__(self, api):
        self.api, self.store = api, api.store

    def bind(self, claim, sandbox="pool-x1", condition=None, pod_status=None):
        """Gives the claim a sandbox with a pod, and declares it ready."""
        claim = self.store.get(CLAIMS, NS, claim)
        made = self.store.create(SANDBOXES, NS, {"metadata": {
            "name": sandbox, "labels": {"agents.x-k8s.io/claim-uid": claim["metadata"]["uid"]},
            "ownerReferences": controller_ref("SandboxClaim", claim)}})
        self.store.create(PODS, NS, {
            "metadata": {"name": sandbox, "labels": {"agents.x-k8s.io/sandbox-name-hash": "0"},
                         "ownerReferences": controller_ref("Sandbox", made)},
            "spec": {"containers": [{"name": "main"}]}, "status": pod_status or running()})
        self.status(claim["metadata"]["name"], condition or ready(), sandbox)

    def status(self, claim, condition, sandbox=None):
        status = {"conditions": [condition]}
        if sandbox:
            status["sandbox"] = {"name": sandbox}
        self.store.patch(CLAIMS, NS, claim, {"status": status}, "application/merge-patch+json", "status")

    def claims(self):
        return self.store.all(CLAIMS, NS)

    def annotate(self, claim, **annotations):
        self.store.patch(CLAIMS, NS, claim, {"metadata": {"annotations": annotations}},
                         "application/merge-patch+json")

    def claim(self, name, owner):
        return self.store.create(CLAIMS, NS, {
            "metadata": {"name": name, "labels": {OWNER_LABEL: owner}, "annotations": {OWNER: owner}},
            "spec": {"warmPoolRef": {"name": "pool"}}})


class Controller:
    """Binds every claim that appears, each to a sandbox of its own, until it is stopped."""

    def __init__(self, cluster):
        self.cluster, self._stop = cluster, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join(10)

    def _run(self):
        bound = set()
        store = self.cluster.store
        while not self._stop.is_set():
            for claim in self.cluster.claims():
                name, uid = claim["metadata"]["name"], claim["metadata"]["uid"]
                if uid in bound:
                    continue
                bound.add(uid)
                try:
                    self.cluster.bind(name, f"pool-{len(bound)}")
                except ApiError:
                    pass  # deleted meanwhile
            with store.lock:
                store.changed.wait(0.05)
