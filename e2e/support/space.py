# SPDX-License-Identifier: Apache-2.0
"""A namespace of a test module's own, and what is put into it."""

import contextlib
import datetime
import uuid

from .kube import api_version, controller_uid, is_ready, name_of, uid_of

# On the node from its start; waits for SIGTERM and has nothing else in it, not even a shell.
PAUSE_IMAGE = "docker.io/k8s-agent-sandbox/pause:dev"
BUSYBOX_IMAGE = "k8s-agent-sandbox/busybox:dev"
PYTHON_IMAGE = "k8s-agent-sandbox/sandbox-python:dev"
AUDIENCE = "k8s-agent-sandbox-mcp"
OWN_PREFIX = "k8s-agent-sandbox-mcp/"
# The first process of a container has to collect what commands leave behind, and to heed SIGTERM.
IDLE = ["/bin/sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1000000 & wait $!; done"]


def rfc3339(when):
    return when.astimezone(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def in_seconds(seconds):
    """An instant that many seconds from now, rounded up to a whole second, as RFC 3339."""
    when = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
    if when.microsecond:
        when = when.replace(microsecond=0) + datetime.timedelta(seconds=1)
    return rfc3339(when)


def parse_time(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def container(image=PAUSE_IMAGE, **fields):
    # The limits are only there so that the node's processes stay the suite's bottleneck.
    return {"name": "main", "image": image, "imagePullPolicy": "IfNotPresent",
            "resources": {"requests": {"cpu": "1m", "memory": "8Mi"}}, **fields}


def pod_spec(image=PAUSE_IMAGE, **fields):
    one = container(image)
    if image != PAUSE_IMAGE:
        one["command"] = IDLE
    return {"terminationGracePeriodSeconds": 1, "containers": [one], **fields}


def blueprint(image=PAUSE_IMAGE, labels=None, annotations=None, **fields):
    template = {"spec": pod_spec(image, **fields)}
    metadata = {k: v for k, v in (("labels", labels), ("annotations", annotations)) if v}
    return {"podTemplate": {**({"metadata": metadata} if metadata else {}), **template}}


def unique(prefix):
    return f"{prefix}-{uuid.uuid4().hex[:8]}"


class Space:
    """Names without a namespace are in this one."""

    def __init__(self, kube, name):
        self.kube = kube
        self.name = name

    def create(self, kind, name, spec=None, **members):
        return self.kube.create(kind, self.name, name, spec, **members)

    def sandbox(self, name, spec=None, image=PAUSE_IMAGE, lifecycle=None, **members):
        return self.create("Sandbox", name, {**(spec or blueprint(image)), **(lifecycle or {})}, **members)

    def template(self, name="box", spec=None, image=PAUSE_IMAGE, **more):
        return self.create("SandboxTemplate", name, {**(spec or blueprint(image)), **more})

    def pool(self, name="pool", template="box", replicas=0, **more):
        return self.create("SandboxWarmPool", name,
                           {"sandboxTemplateRef": {"name": template}, "replicas": replicas, **more})

    def claim(self, name=None, pool="pool", lifecycle=None, labels=None, annotations=None, **more):
        spec = {"warmPoolRef": {"name": pool}, **({"lifecycle": lifecycle} if lifecycle else {}), **more}
        return self.create("SandboxClaim", name or unique("claim"), spec, labels=labels, annotations=annotations)

    def ready_claim(self, name=None, timeout=60, **options):
        return self.kube.wait_ready("SandboxClaim", self.name, name_of(self.claim(name, **options)), timeout)

    def pool_ready(self, name="pool", count=None, timeout=90):
        """Until the pool has as many ready members as it should, and says so."""
        pool = self.get("SandboxWarmPool", name)
        wanted = pool["spec"]["replicas"] if count is None else count

        def members(boxes):
            mine = [b for b in boxes if controller_uid(b) == uid_of(pool)]
            return len(mine) == wanted == len([b for b in mine if is_ready(b)])

        def full(found):
            status = found.get("status") or {}
            return (status.get("readyReplicas") or 0) == wanted == (status.get("replicas") or 0)

        # The status alone may be that of a moment ago.
        self.kube.wait_all("Sandbox", self.name, f"{wanted} ready members of {name}", members, timeout)
        return self.kube.wait("SandboxWarmPool", self.name, name, "full", full, timeout)

    # shorthands
    def get(self, kind, name):
        return self.kube.get(kind, self.name, name)

    def find(self, kind, name):
        return self.kube.find(kind, self.name, name)

    def list(self, kind, labels=None):
        return self.kube.list(kind, self.name, labels)

    def patch(self, kind, name, body, sub=None):
        return self.kube.patch(kind, self.name, name, body, sub)

    def delete(self, kind, name, propagation="Background"):
        return self.kube.delete(kind, self.name, name, propagation)

    def wait(self, kind, name, what, predicate, timeout=60):
        return self.kube.wait(kind, self.name, name, what, predicate, timeout)

    def wait_ready(self, kind, name, timeout=60):
        return self.kube.wait_ready(kind, self.name, name, timeout)

    def wait_gone(self, kind, *names, timeout=60, uids=()):
        return self.kube.wait_gone(kind, self.name, *names, timeout=timeout, uids=uids)

    def sandbox_of(self, claim):
        """The Sandbox that a bound claim names."""
        name = claim if isinstance(claim, str) else name_of(claim)
        return self.get("Sandbox", self.get("SandboxClaim", name)["status"]["sandbox"]["name"])

    def events(self, name, kind=None):
        """Events about an object, oldest first."""
        found = [e for e in self.list("Event") if e["involvedObject"].get("name") == name
                 and kind in (None, e["involvedObject"].get("kind"))]
        return sorted(found, key=lambda e: e.get("eventTime") or e.get("firstTimestamp") or "")

    @contextlib.contextmanager
    def quota(self, **hard):
        """A ResourceQuota that counts within."""
        name = unique("quota")
        self.create("ResourceQuota", name, {"hard": {k: str(v) for k, v in hard.items()}})
        try:
            self.wait("ResourceQuota", name, "counted",
                      lambda q: set(hard) <= set(q.get("status", {}).get("used") or {}))
            yield
        finally:
            self.delete("ResourceQuota", name)

    # ---- people

    def user(self, name="agent", role="sandbox-user", audience=AUDIENCE, seconds=3600):
        """A new service account with that ClusterRole here; returns its token for the gateway."""
        self.create("ServiceAccount", name)
        if role:
            self.create("RoleBinding", name, roleRef={"apiGroup": "rbac.authorization.k8s.io",
                                                      "kind": "ClusterRole", "name": role},
                        subjects=[{"kind": "ServiceAccount", "name": name, "namespace": self.name}])
        return self.token(name, audience, seconds)

    def token(self, name="agent", audience=AUDIENCE, seconds=3600):
        return self.kube.token(self.name, name, audience, seconds)

    def account(self, name="agent"):
        return f"system:serviceaccount:{self.name}:{name}"


def owner_reference(obj, controller=True):
    return {"apiVersion": api_version(obj["kind"]), "kind": obj["kind"], "name": name_of(obj), "uid": uid_of(obj),
            "controller": controller, "blockOwnerDeletion": controller}
