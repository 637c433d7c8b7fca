# SPDX-License-Identifier: Apache-2.0
"""Objects of a scripted API server: versions, history, paging, preconditions, owners.

Only what Kubernetes clients can see is kept true: one global resourceVersion, watch history that can
be compacted away, optimistic locking, generation, finalizers, owner-reference garbage collection.
"""

import copy
import json
import random
import string
import threading
import time
import uuid


class ApiError(Exception):
    """An answer other than 2xx, as a Status object."""

    def __init__(self, code, reason, message, headers=None, **extra):
        super().__init__(message)
        self.code = code
        self.headers = headers or {}
        self.status = {
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "reason": reason, "code": code,
        } | extra


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def merge_patch(target, patch):
    """RFC 7386."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    out = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            out.pop(key, None)
        else:
            out[key] = merge_patch(out.get(key), value)
    return out


def _pointer(path):
    return [p.replace("~1", "/").replace("~0", "~") for p in path.split("/")[1:]]


def json_patch(target, operations):
    """RFC 6902: test, add, replace, remove."""
    doc = copy.deepcopy(target)
    for op in operations:
        *parents, last = _pointer(op["path"])
        at = doc
        try:
            for key in parents:
                at = at[int(key)] if isinstance(at, list) else at[key]
            if isinstance(at, list):
                last = len(at) if last == "-" else int(last)
            if op["op"] == "test":
                if at[last] != op["value"]:
                    raise KeyError
            elif op["op"] == "remove":
                del at[last]
            elif op["op"] == "replace":
                at[last]  # must be there
                at[last] = op["value"]
            elif isinstance(at, list):
                at.insert(last, op["value"])
            else:
                at[last] = op["value"]
        except (KeyError, IndexError, TypeError):
            raise ApiError(422, "Invalid", "the server rejected our request due to an error in our request")
    return doc


def matches_labels(obj, selector):
    labels = obj["metadata"].get("labels") or {}
    for term in filter(None, selector.split(",")):
        if "!=" in term:
            key, value = term.split("!=")
            if labels.get(key) == value:
                return False
        elif "=" in term:
            key, value = term.replace("==", "=").split("=")
            if labels.get(key) != value:
                return False
        elif term.startswith("!"):
            if term[1:] in labels:
                return False
        elif term not in labels:
            return False
    return True


def matches_fields(obj, selector):
    for term in filter(None, selector.split(",")):
        negative = "!=" in term
        path, value = term.split("!=" if negative else "=", 1)
        at = obj
        for key in path.split("."):
            at = at.get(key, "") if isinstance(at, dict) else ""
        if (str(at) == value) == negative:
            return False
    return True


class Store:
    """All objects of one API server. Thread-safe; `changed` is notified on every event."""

    def __init__(self):
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.version = 1000
        self.compacted = 0
        self.objects = {}  # resource -> {(namespace, name): object}
        self.history = {}  # resource -> [(version, type, object, object before)]
        self.snapshots = {}  # continue token -> (version, [objects left])
        self.on_write = None  # called with (verb, resource, object) before an object is stored

    def _emit(self, resource, kind, obj, before=None):
        event = (self.version, kind, copy.deepcopy(obj), copy.deepcopy(before))
        self.history.setdefault(resource, []).append(event)
        self.changed.notify_all()

    def _bump(self, obj):
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)

    def get(self, resource, namespace, name):
        with self.lock:
            obj = self.objects.get(resource, {}).get((namespace, name))
            if obj is None:
                raise ApiError(404, "NotFound", f'{resource[1]} "{name}" not found')
            return copy.deepcopy(obj)

    def all(self, resource, namespace=None):
        with self.lock:
            found = self.objects.get(resource, {})
            return [copy.deepcopy(o) for (ns, _), o in sorted(found.items()) if namespace in (None, ns)]

    def create(self, resource, namespace, obj, manager="test"):
        obj = copy.deepcopy(obj)
        meta = obj.setdefault("metadata", {})
        with self.lock:
            if not meta.get("name"):
                tail = "".join(random.choices(string.ascii_lowercase + string.digits, k=5))
                meta["name"] = meta.get("generateName", "") + tail
            key = (namespace, meta["name"])
            if key in self.objects.get(resource, {}):
                raise ApiError(409, "AlreadyExists", f'{resource[1]} "{meta["name"]}" already exists')
            if namespace:
                meta["namespace"] = namespace
            meta.update(uid=str(uuid.uuid4()), creationTimestamp=now(), generation=1)
            meta["managedFields"] = [{"manager": manager, "operation": "Update"}]
            if self.on_write:
                self.on_write("create", resource, obj)
            self._bump(obj)
            self.objects.setdefault(resource, {})[key] = obj
            self._emit(resource, "ADDED", obj)
            return copy.deepcopy(obj)

    def replace(self, resource, namespace, name, new, subresource=None):
        with self.lock:
            old = self.get(resource, namespace, name)
            meta = new.get("metadata") or {}
            if meta.get("resourceVersion") not in (None, "", old["metadata"]["resourceVersion"]):
                raise ApiError(409, "Conflict", f'Operation cannot be fulfilled on {resource[1]} "{name}": '
                               "the object has been modified")
            if meta.get("uid") not in (None, "", old["metadata"]["uid"]):
                raise ApiError(409, "Conflict", f"Precondition failed: UID in precondition: {meta['uid']}")
            return self._store(resource, (namespace, name), old, copy.deepcopy(new), subresource)

    def _store(self, resource, key, old, new, subresource):
        if subresource == "status":
            new = old | {"status": new.get("status")}
        elif old.get("status") is not None and resource[1] != "pods":
            new["status"] = old["status"]
        kept = {k: old["metadata"][k] for k in ("name", "uid", "creationTimestamp", "generation",
                                                "deletionTimestamp", "namespace") if k in old["metadata"]}
        new["metadata"] = dict(new.get("metadata") or {}) | kept
        if new.get("spec") != old.get("spec"):
            new["metadata"]["generation"] += 1
        new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
        if new == old:
            return copy.deepcopy(old)
        if self.on_write:
            self.on_write("update", resource, new)
        self._bump(new)
        if "deletionTimestamp" in new["metadata"] and not new["metadata"].get("finalizers"):
            self._remove(resource, key, new)
            return copy.deepcopy(new)
        self.objects[resource][key] = new
        self._emit(resource, "MODIFIED", new, old)
        return copy.deepcopy(new)

    def patch(self, resource, namespace, name, body, content_type, subresource=None):
        with self.lock:
            old = self.get(resource, namespace, name)
            if "json-patch" in content_type:
                new = json_patch(old, body)
            else:
                new = merge_patch(old, body)
            return self.replace(resource, namespace, name, new, subresource)

    def delete(self, resource, namespace, name, options=None):
        options = options or {}
        with self.lock:
            obj = self.get(resource, namespace, name)
            for field, value in (options.get("preconditions") or {}).items():
                if obj["metadata"][field] != value:
                    raise ApiError(409, "Conflict", f"Precondition failed: {field} in precondition: {value}")
            if obj["metadata"].get("finalizers"):
                if "deletionTimestamp" not in obj["metadata"]:
                    before = copy.deepcopy(obj)
                    obj["metadata"]["deletionTimestamp"] = now()
                    self._bump(obj)
                    self.objects[resource][(namespace, name)] = obj
                    self._emit(resource, "MODIFIED", obj, before)
                return obj
            self._remove(resource, (namespace, name), obj, options.get("propagationPolicy"))
            return obj

    def _remove(self, resource, key, obj, policy=None):
        if self.on_write:
            self.on_write("delete", resource, obj)
        self._bump(obj)
        self.objects[resource].pop(key, None)
        self._emit(resource, "DELETED", obj)
        self._collect(obj["metadata"]["uid"], policy)

    def _collect(self, uid, policy):
        """The garbage collector, without its delay."""
        for resource, found in list(self.objects.items()):
            for (namespace, name), obj in list(found.items()):
                owners = obj["metadata"].get("ownerReferences") or []
                rest = [o for o in owners if o.get("uid") != uid]
                if len(rest) == len(owners):
                    continue
                if rest or policy == "Orphan":
                    before, obj = obj, copy.deepcopy(obj)
                    obj["metadata"]["ownerReferences"] = rest
                    self._bump(obj)
                    found[(namespace, name)] = obj
                    self._emit(resource, "MODIFIED", obj, before)
                else:
                    self.delete(resource, namespace, name)

    def compact(self):
        """Forgets the history: older versions and continue tokens are 410 from now on."""
        with self.lock:
            self.compacted = self.version
            self.history.clear()
            self.snapshots.clear()
            self.changed.notify_all()

    def list(self, resource, namespace, limit, token, accept):
        with self.lock:
            if token:
                if token not in self.snapshots:
                    raise ApiError(410, "Expired", "The provided continue parameter is too old")
                version, objects = self.snapshots[token]
            else:
                version, objects = self.version, [o for o in self.all(resource, namespace) if accept(o)]
            page, rest = (objects[:limit], objects[limit:]) if limit else (objects, [])
            meta = {"resourceVersion": str(version)}
            if rest:
                meta["continue"] = uuid.uuid4().hex
                meta["remainingItemCount"] = len(rest)
                self.snapshots[meta["continue"]] = (version, rest)
            return meta, page

    def events_after(self, resource, version):
        """Events newer than version, or ApiError 410 where they are forgotten. Call with the lock."""
        if version < self.compacted:
            raise ApiError(410, "Expired", f"too old resource version: {version} ({self.version})")
        return [e for e in self.history.get(resource, []) if e[0] > version]


def dumps(obj):
    return json.dumps(obj, separators=(",", ":"), ensure_ascii=False).encode()
