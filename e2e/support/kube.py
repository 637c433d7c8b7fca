# SPDX-License-Identifier: Apache-2.0
"""A cluster as the suites see it: plain requests through the Python client `kubernetes`, and waiting
by watches. Nothing here sleeps: what is waited for is an object's state, seen in a list and then in
the watch that follows it."""

import json
import subprocess
import time
from urllib.parse import urlencode

import urllib3
from kubernetes import client, config

CORE, EXT, OWN = "", "extensions.agents.x-k8s.io", "agents.x-k8s.io"

# kind: (API group, version, plural, namespaced)
KINDS = {
    "Sandbox": (OWN, "v1beta1", "sandboxes", True),
    "SandboxClaim": (EXT, "v1beta1", "sandboxclaims", True),
    "SandboxTemplate": (EXT, "v1beta1", "sandboxtemplates", True),
    "SandboxWarmPool": (EXT, "v1beta1", "sandboxwarmpools", True),
    "Pod": (CORE, "v1", "pods", True),
    "Event": (CORE, "v1", "events", True),
    "Service": (CORE, "v1", "services", True),
    "ConfigMap": (CORE, "v1", "configmaps", True),
    "ResourceQuota": (CORE, "v1", "resourcequotas", True),
    "PersistentVolumeClaim": (CORE, "v1", "persistentvolumeclaims", True),
    "ServiceAccount": (CORE, "v1", "serviceaccounts", True),
    "Namespace": (CORE, "v1", "namespaces", False),
    "Deployment": ("apps", "v1", "deployments", True),
    "NetworkPolicy": ("networking.k8s.io", "v1", "networkpolicies", True),
    "Role": ("rbac.authorization.k8s.io", "v1", "roles", True),
    "RoleBinding": ("rbac.authorization.k8s.io", "v1", "rolebindings", True),
    "ClusterRoleBinding": ("rbac.authorization.k8s.io", "v1", "clusterrolebindings", False),
    "ValidatingAdmissionPolicy": ("admissionregistration.k8s.io", "v1", "validatingadmissionpolicies", False),
    "ValidatingAdmissionPolicyBinding":
        ("admissionregistration.k8s.io", "v1", "validatingadmissionpolicybindings", False),
}

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"


class Refused(Exception):
    """The API server's no."""

    def __init__(self, status, document):
        self.status = status
        self.document = document
        self.reason = document.get("reason", "")
        self.message = document.get("message", "")
        super().__init__(f"{status} {self.reason}: {self.message}")


class TimedOut(AssertionError):
    """What was waited for did not come; the text holds the last state."""


def api_version(kind):
    group, version, _, _ = KINDS[kind]
    return f"{group}/{version}" if group else version


def condition(obj, wanted="Ready"):
    """The condition of that type, {} without one."""
    return next((c for c in (obj or {}).get("status", {}).get("conditions") or [] if c["type"] == wanted), {})


def is_ready(obj):
    return condition(obj).get("status") == "True"


def reason_is(reason, wanted="Ready"):
    return lambda obj: condition(obj, wanted).get("reason") == reason


def name_of(obj):
    return obj["metadata"]["name"]


def uid_of(obj):
    return obj["metadata"]["uid"]


def controller_uid(obj):
    """The UID of the controlling owner, "" without one."""
    return next((r["uid"] for r in obj["metadata"].get("ownerReferences") or [] if r.get("controller")), "")


class Kube:
    def __init__(self, kubeconfig=None, api_client=None, token=None):
        self.kubeconfig = kubeconfig
        self.api_client = api_client or config.new_client_from_config(kubeconfig)
        self.host = self.api_client.configuration.host
        self.pool = self.api_client.rest_client.pool_manager
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}
        for setting in self.api_client.configuration.auth_settings().values():
            self.headers[setting["key"]] = setting["value"]

    # ---- requests

    @staticmethod
    def path(kind, ns=None, name=None, sub=None):
        group, version, plural, namespaced = KINDS[kind]
        parts = ["/apis", group, version] if group else ["/api", version]
        if namespaced and ns:
            parts += ["namespaces", ns]
        return "/".join(parts + [plural] + [p for p in (name, sub) if p])

    def request(self, method, path, body=None, content="application/json", accept="application/json",
                timeout=30, **query):
        url = self.host + path + ("?" + urlencode(query) if query else "")
        answer = self.pool.request(method, url, body=None if body is None else json.dumps(body),
                                   headers={**self.headers, "Accept": accept, "Content-Type": content},
                                   timeout=timeout, retries=False)
        document = json.loads(answer.data) if answer.data[:1] == b"{" else {"message": answer.data.decode()}
        if answer.status >= 300:
            raise Refused(answer.status, document)
        return document

    def get(self, kind, ns, name):
        return self.request("GET", self.path(kind, ns, name))

    def find(self, kind, ns, name):
        """The object, or None where there is none."""
        try:
            return self.get(kind, ns, name)
        except Refused as refused:
            if refused.status == 404:
                return None
            raise

    def list(self, kind, ns, labels=None):
        return self.list_whole(kind, ns, labels)["items"]

    def list_whole(self, kind, ns, labels=None, fields=None):
        query = {k: v for k, v in (("labelSelector", labels), ("fieldSelector", fields)) if v}
        return self.request("GET", self.path(kind, ns), **query)

    def create(self, kind, ns, name=None, spec=None, labels=None, annotations=None, owners=None,
               manager="e2e-tests", **members):
        metadata = {k: v for k, v in (("name", name), ("namespace", ns), ("labels", labels),
                                      ("annotations", annotations), ("ownerReferences", owners)) if v}
        body = {"apiVersion": api_version(kind), "kind": kind, "metadata": metadata, **members}
        if spec is not None:
            body["spec"] = spec
        return self.request("POST", self.path(kind, ns), body, fieldManager=manager)

    def patch(self, kind, ns, name, body, sub=None, content=MERGE):
        return self.request("PATCH", self.path(kind, ns, name, sub), body, content=content)

    def replace(self, kind, ns, obj):
        return self.request("PUT", self.path(kind, ns, name_of(obj)), obj)

    def annotate(self, kind, ns, name, **annotations):
        return self.patch(kind, ns, name, {"metadata": {"annotations": annotations}})

    def delete(self, kind, ns, name, propagation="Background", missing_ok=True):
        try:
            return self.request("DELETE", self.path(kind, ns, name), {"propagationPolicy": propagation})
        except Refused as refused:
            if refused.status != 404 or not missing_ok:
                raise
            return None

    def token(self, ns, account, audience=None, seconds=3600):
        spec = {"expirationSeconds": seconds, **({"audiences": [audience]} if audience else {})}
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        answer = self.request("POST", self.path("ServiceAccount", ns, account, "token"), body)
        return answer["status"]["token"]

    # ---- waiting

    def events_of(self, path, resource_version, seconds, query):
        """(type, object) of a watch until it ends or the time is over."""
        url = f"{self.host}{path}?" + urlencode({
            **query, "watch": "true", "resourceVersion": resource_version, "allowWatchBookmarks": "false",
            "timeoutSeconds": max(1, int(seconds + 1))})
        answer = self.pool.request("GET", url, headers=self.headers, preload_content=False, retries=False,
                                   timeout=urllib3.Timeout(connect=10, read=seconds))
        try:
            if answer.status != 200:
                return
            pending = b""
            for piece in answer.stream(65536):
                *lines, pending = (pending + piece).split(b"\n")
                for line in lines:
                    event = json.loads(line)
                    yield event["type"], event["object"]
        except (urllib3.exceptions.ReadTimeoutError, urllib3.exceptions.ProtocolError):
            return
        finally:
            answer.close()

    def follow(self, kind, ns, seconds, labels=None, fields=None):
        """{uid: object} as it is now and after every change, until the time is over."""
        query = {k: v for k, v in (("labelSelector", labels), ("fieldSelector", fields)) if v}
        end = time.monotonic() + seconds
        while True:
            whole = self.list_whole(kind, ns, labels, fields)
            held = {uid_of(o): o for o in whole["items"]}
            yield held
            left = end - time.monotonic()
            if left <= 0:
                return
            for what, obj in self.events_of(self.path(kind, ns), whole["metadata"]["resourceVersion"], left, query):
                if what == "ERROR":
                    break
                if what == "DELETED":
                    held.pop(uid_of(obj), None)
                else:
                    held[uid_of(obj)] = obj
                yield held
                if time.monotonic() >= end:
                    break

    def wait_all(self, kind, ns, what, predicate, timeout=60, labels=None, fields=None):
        """Until predicate(list of objects) holds; returns that list."""
        seen = []
        for held in self.follow(kind, ns, timeout, labels, fields):
            seen = list(held.values())
            if predicate(seen):
                return seen
        raise TimedOut(f"{kind} in {ns}: not {what} within {timeout} s; there are {summary(seen)}")

    def wait(self, kind, ns, name, what, predicate, timeout=60):
        """Until the object exists and predicate(object) holds; returns it."""
        last = None
        for held in self.follow(kind, ns, timeout, fields=f"metadata.name={name}"):
            last = next(iter(held.values()), None)
            if last is not None and predicate(last):
                return last
        raise TimedOut(f"{kind} {ns}/{name}: not {what} within {timeout} s; it is {summary([last] if last else [])}")

    def wait_ready(self, kind, ns, name, timeout=60):
        return self.wait(kind, ns, name, "Ready", is_ready, timeout)

    def wait_gone(self, kind, ns, *names, timeout=60, uids=()):
        """Until no object with one of the names (or UIDs) is there; returns the seconds it took."""
        started = time.monotonic()

        def none_left(items):
            return not any(name_of(o) in names or uid_of(o) in uids for o in items)

        self.wait_all(kind, ns, f"gone ({', '.join(names) or uids})", none_left, timeout)
        return time.monotonic() - started

    def wait_empty(self, kind, ns, timeout=60, labels=None):
        started = time.monotonic()
        self.wait_all(kind, ns, "empty", lambda items: not items, timeout, labels)
        return time.monotonic() - started

    def stays(self, kind, ns, what, predicate, seconds, labels=None):
        """Watches for that long that predicate(list of objects) holds after every change."""
        for held in self.follow(kind, ns, seconds, labels):
            items = list(held.values())
            assert predicate(items), f"{kind} in {ns}: no longer {what}: {summary(items)}"

    def wait_event(self, ns, reason, name=None, timeout=30):
        """Until there is an Event of that reason (about that object); returns it."""
        def found(items):
            return [e for e in items if e["reason"] == reason
                    and name in (None, e["involvedObject"].get("name"))]

        return found(self.wait_all("Event", ns, f"an Event {reason} about {name}", found, timeout))[0]

    # ---- kubectl

    def kubectl(self, *arguments, text=None, check=True, timeout=120):
        options = ["--kubeconfig", self.kubeconfig] if self.kubeconfig else []
        done = subprocess.run(["kubectl", *options, *arguments], input=text, capture_output=True, text=True,
                              timeout=timeout, check=False)
        assert not check or done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
        return done if not check else done.stdout


def summary(items):
    """Enough of each object to see why a wait failed."""
    def one(obj):
        parts = [f"{obj.get('kind', '')} {name_of(obj)}".strip()]
        if obj["metadata"].get("deletionTimestamp"):
            parts.append("deleting")
        status = obj.get("status") or {}
        parts += [str(status[k]) for k in ("phase", "replicas", "readyReplicas") if k in status]
        parts += [f"{c['type']}={c['status']}/{c.get('reason')}: {c.get('message')}"
                  for c in status.get("conditions") or []]
        return "; ".join(parts)

    return "\n  ".join(["", *map(one, items)]) if items else "none"


def core(kube):
    """The typed client of the core group, for what plain requests do not do."""
    return client.CoreV1Api(kube.api_client)
