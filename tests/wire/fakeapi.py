# SPDX-License-Identifier: Apache-2.0
"""A scripted Kubernetes API server over real sockets.

Left alone it behaves: GET, LIST (paged), WATCH (bookmarks, history), POST, PUT, PATCH, DELETE on any
resource, TokenReview and SubjectAccessReview. A test makes it misbehave with rules:

    api.rule(lambda r: r.is_watch, split(1, gap=0.005), times=1)

A rule's action gets (wire, request). It may answer and return DONE, change how the ordinary answer is
sent (split, cut_after) and return None, or raise ApiError.

    with FakeApi() as api:
        api.store.create(PODS, "default", {"metadata": {"name": "a"}})
        api.write_kubeconfig(path)
"""

import contextlib
import json
import os
import socket
import ssl
import struct
import subprocess
import threading
import time
import uuid
from urllib.parse import parse_qs, unquote, urlsplit

from fakestore import ApiError, Store, dumps, matches_fields, matches_labels

DONE = object()

# A resource is (group/version, plural); the core group is "v1".
PODS = ("v1", "pods")
SERVICES = ("v1", "services")
EVENTS = ("v1", "events")
CONFIGMAPS = ("v1", "configmaps")
PVCS = ("v1", "persistentvolumeclaims")
LEASES = ("coordination.k8s.io/v1", "leases")
NETWORKPOLICIES = ("networking.k8s.io/v1", "networkpolicies")
SANDBOXES = ("agents.x-k8s.io/v1beta1", "sandboxes")
CLAIMS = ("extensions.agents.x-k8s.io/v1beta1", "sandboxclaims")
TEMPLATES = ("extensions.agents.x-k8s.io/v1beta1", "sandboxtemplates")
WARMPOOLS = ("extensions.agents.x-k8s.io/v1beta1", "sandboxwarmpools")
TOKEN_REVIEWS = ("authentication.k8s.io/v1", "tokenreviews")
ACCESS_REVIEWS = ("authorization.k8s.io/v1", "subjectaccessreviews")

KINDS = {
    "pods": "Pod", "services": "Service", "events": "Event", "configmaps": "ConfigMap",
    "persistentvolumeclaims": "PersistentVolumeClaim", "leases": "Lease",
    "networkpolicies": "NetworkPolicy", "sandboxes": "Sandbox", "sandboxclaims": "SandboxClaim",
    "sandboxtemplates": "SandboxTemplate", "sandboxwarmpools": "SandboxWarmPool",
    "namespaces": "Namespace", "nodes": "Node",
}


class Closed(Exception):
    """The connection is over."""


class Request:
    """One request as it came, parsed as far as Kubernetes paths go."""

    def __init__(self, connection, method, target, headers, body):
        self.connection = connection  # number of the TCP connection
        self.at = time.monotonic()
        self.method, self.target, self.headers, self.body = method, target, headers, body
        parts = urlsplit(target)
        self.path = parts.path
        self.query = {k: v[-1] for k, v in parse_qs(parts.query, keep_blank_values=True).items()}
        self.resource = self.namespace = self.name = self.subresource = None
        self._parse_path([unquote(p) for p in parts.path.split("/")[1:]])

    def _parse_path(self, parts):
        if parts[0] == "api" and len(parts) >= 3:
            version, rest = parts[1], parts[2:]
        elif parts[0] == "apis" and len(parts) >= 4:
            version, rest = f"{parts[1]}/{parts[2]}", parts[3:]
        else:
            return
        if rest[0] == "namespaces" and len(rest) >= 3:
            self.namespace, rest = rest[1], rest[2:]
        self.resource = (version, rest[0])
        self.name = rest[1] if len(rest) > 1 else None
        self.subresource = "/".join(rest[2:]) or None

    @property
    def is_watch(self):
        return self.method == "GET" and self.query.get("watch") in ("true", "1")

    @property
    def is_list(self):
        return self.method == "GET" and self.resource is not None and not self.name and not self.is_watch

    @property
    def is_write(self):
        return self.method in ("POST", "PUT", "PATCH", "DELETE")

    @property
    def json(self):
        return json.loads(self.body) if self.body else None

    @property
    def token(self):
        scheme, _, token = self.headers.get("authorization", "").partition(" ")
        return token if scheme.lower() == "bearer" else None

    def __repr__(self):
        return f"<{self.method} {self.target}>"


class Wire:
    """The sending side of a connection, and the ways to spoil it."""

    def __init__(self, api, sock):
        self.api, self.sock = api, sock
        self.thawed = threading.Event()
        self.thawed.set()
        self.reset_faults()

    def reset_faults(self):
        self.piece, self.gap, self.cut_left, self.rst = None, 0.0, None, False

    def send(self, data):
        self.thawed.wait()
        if self.cut_left is not None and len(data) >= self.cut_left:
            self._send_pieces(data[:self.cut_left])
            self.close(rst=self.rst)
            raise Closed
        if self.cut_left is not None:
            self.cut_left -= len(data)
        self._send_pieces(data)

    def _send_pieces(self, data):
        step = self.piece or len(data) or 1
        for at in range(0, len(data), step):
            try:
                self.sock.sendall(data[at:at + step])
            except OSError as e:
                raise Closed from e
            if self.piece and self.gap:
                time.sleep(self.gap)  # the script's own pace, not a wait for anything

    def answer(self, code, body=b"", headers=None, content_type="application/json"):
        if not isinstance(body, bytes):
            body = dumps(body)
        self.head(code, {"Content-Length": str(len(body)), "Content-Type": content_type} | (headers or {}))
        self.send(body)

    def head(self, code, headers):
        date = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime())
        lines = [f"HTTP/1.1 {code} X", f"Date: {date}"] + [f"{k}: {v}" for k, v in headers.items()]
        self.send("\r\n".join(lines).encode() + b"\r\n\r\n")

    def chunk(self, data):
        self.send(b"%x\r\n%s\r\n" % (len(data), data))

    def close(self, rst=False):
        with contextlib.suppress(OSError):
            if rst:
                self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            else:
                self.sock.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(OSError):
            self.sock.close()


# --- actions for rules ---

def answer(code, body=b"", headers=None, content_type="application/json"):
    def act(wire, _request):
        wire.answer(code, body, headers, content_type)
        return DONE
    return act


def status(code, reason, message="scripted", headers=None, **extra):
    def act(_wire, _request):
        raise ApiError(code, reason, message, headers, **extra)
    return act


def raw(data):
    """Sends these bytes instead of an answer, then closes."""
    def act(wire, _request):
        wire.send(data)
        raise Closed
    return act


def split(piece, gap=0.0):
    """The ordinary answer in pieces of this many bytes."""
    def act(wire, _request):
        wire.piece, wire.gap = piece, gap
    return act


def cut_after(n_bytes, rst=False):
    """The ordinary answer up to this byte, head included, then the end of the connection."""
    def act(wire, _request):
        wire.cut_left, wire.rst = n_bytes, rst
    return act


def drop(rst=False):
    """The request is read and never answered; the connection ends."""
    def act(wire, _request):
        wire.close(rst)
        raise Closed
    return act


def apply_then_drop(rst=False):
    """The request takes effect, but its answer is lost."""
    def act(wire, request):
        wire.api.execute(request)
        wire.close(rst)
        raise Closed
    return act


def apply_then_hold(event):
    """The request takes effect; its answer comes when the threading.Event is set."""
    def act(wire, request):
        code_and_body = wire.api.execute(request)
        event.wait(60)
        wire.answer(*code_and_body)
        return DONE
    return act


def stall(seconds=3600):
    """No byte for so long (or until the server stops); then the connection ends."""
    def act(wire, _request):
        wire.api.stopping.wait(seconds)
        raise Closed
    return act


def watch_says(*events, then_close=True):
    """A watch that says these events (dicts, or bytes as they are) and ends or goes silent."""
    def act(wire, _request):
        wire.head(200, {"Transfer-Encoding": "chunked", "Content-Type": "application/json"})
        for event in events:
            wire.chunk(event if isinstance(event, bytes) else dumps(event) + b"\n")
        if then_close:
            wire.chunk(b"")
            return DONE
        wire.api.stopping.wait(3600)
        raise Closed
    return act


def gone_event(code=410, reason="Expired", message="too old resource version"):
    return {"type": "ERROR", "object": ApiError(code, reason, message).status}


class Rule:
    def __init__(self, matches, action, times):
        self.matches, self.action, self.left, self.hits = matches, action, times, 0


class FakeApi:
    """Context manager; listens on 127.0.0.1. tls_dir: serve https with a CA made there."""

    def __init__(self, tls_dir=None, tokens=None, bookmark_every=None):
        self.store = Store()
        self.requests = []
        self.tokens = tokens  # accepted bearer tokens; None: anyone
        self.users = {}  # TokenReview: token -> status.user
        self.audiences = ["k8s-agent-sandbox-mcp"]
        self.allow = lambda spec: True  # SubjectAccessReview
        self.bookmark_every = bookmark_every
        self.bookmarks_due = 0
        self.stopping = threading.Event()
        self._freeze_new = False
        self._rules = []
        self._wires = set()
        self._connections = 0
        self._lock = threading.Lock()
        self._tls_dir, self._tls = tls_dir, None

    # --- life ---

    def __enter__(self):
        if self._tls_dir:
            self.make_certificate()
        self._listen(0)
        return self

    def _listen(self, port):
        self._server = socket.create_server(("127.0.0.1", port), backlog=128)
        self.port = self._server.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._server,), daemon=True).start()

    def __exit__(self, *_):
        self.stopping.set()
        self.thaw()
        self.go_down()
        with self.store.lock:
            self.store.changed.notify_all()

    def go_down(self):
        """Refuses connections and ends those that are open; come_back() undoes it."""
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self.cut_all()

    def come_back(self):
        self._listen(self.port)

    def cut_all(self, rst=False):
        with self._lock:
            wires = list(self._wires)
        for wire in wires:
            wire.close(rst)

    def freeze(self, new_too=False):
        """Half-open: nothing is read or written on what is open, and no connection is closed. New
        connections work, unless new_too."""
        with self._lock:
            self._freeze_new = new_too
            for wire in self._wires:
                wire.thawed.clear()

    def thaw(self):
        with self._lock:
            self._freeze_new = False
            for wire in self._wires:
                wire.thawed.set()

    # --- identity ---

    @property
    def url(self):
        return f"{'https' if self._tls_dir else 'http'}://127.0.0.1:{self.port}"

    def make_certificate(self):
        """A new self-signed certificate; connections from now on see it."""
        key, cert = (os.path.join(self._tls_dir, n) for n in ("server.key", "server.crt"))
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
             "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj", f"/CN={uuid.uuid4()}",
             "-addext", "subjectAltName=IP:127.0.0.1,DNS:fakeapi.test"],
            check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        self._tls, self.ca_file = context, cert

    def write_kubeconfig(self, path, token=None, namespace="default"):
        cluster = {"server": self.url}
        if self._tls_dir:
            cluster["certificate-authority"] = os.path.abspath(self.ca_file)
        with open(path, "w", encoding="utf-8") as f:
            json.dump({
                "apiVersion": "v1", "kind": "Config", "current-context": "c",
                "clusters": [{"name": "c", "cluster": cluster}],
                "users": [{"name": "u", "user": {"token": token} if token else {}}],
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": namespace}}],
            }, f)
        return str(path)

    # --- scripting ---

    def rule(self, matches, action, times=None):
        """matches(request) -> bool; times None: for ever. The first matching rule acts."""
        rule = Rule(matches, action, times)
        with self._lock:
            self._rules.append(rule)
        return rule

    def clear_rules(self):
        with self._lock:
            self._rules.clear()

    def seen(self, matches=lambda r: True):
        with self._lock:
            return [r for r in self.requests if matches(r)]

    def wait_for(self, condition, timeout=30, what="condition"):
        """Waits until condition() is true, checked on every request and every change."""
        end = time.monotonic() + timeout
        while not condition():
            left = end - time.monotonic()
            if left <= 0:
                raise AssertionError(f"not within {timeout} s: {what}; seen {self.requests[-20:]}")
            with self.store.lock:
                self.store.changed.wait(min(left, 0.05))

    def bookmark(self):
        """Every open watch says a bookmark of the present version."""
        with self.store.lock:
            self.bookmarks_due += 1
            self.store.changed.notify_all()

    def _rule_for(self, request):
        with self._lock:
            for rule in self._rules:
                if rule.left != 0 and rule.matches(request):
                    rule.hits += 1
                    if rule.left is not None:
                        rule.left -= 1
                    return rule
        return None

    # --- connections ---

    def _accept(self, server):
        while not self.stopping.is_set():
            try:
                sock, _ = server.accept()
            except OSError:
                return
            with self._lock:
                self._connections += 1
                number = self._connections
            threading.Thread(target=self._serve, args=(sock, number), daemon=True).start()

    def _serve(self, sock, number):
        wire = None
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls:
                sock = self._tls.wrap_socket(sock, server_side=True)
            wire = Wire(self, sock)
            with self._lock:
                self._wires.add(wire)
                if self._freeze_new:
                    wire.thawed.clear()
            reader = sock.makefile("rb")
            while not self.stopping.is_set():
                request = self._read(reader, number)
                wire.thawed.wait()
                with self._lock:
                    self.requests.append(request)
                with self.store.lock:
                    self.store.changed.notify_all()
                wire.reset_faults()
                self._handle(wire, request)
        except (Closed, OSError, ValueError):
            pass
        finally:
            if wire:
                wire.close()
                with self._lock:
                    self._wires.discard(wire)
            else:
                sock.close()

    @staticmethod
    def _read(reader, number):
        line = reader.readline(65536)
        if not line:
            raise Closed
        method, target, _ = line.decode("ascii").split(" ")
        headers = {}
        while (line := reader.readline(65536)).strip():
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.strip().lower()] = value.strip()
        length = int(headers.get("content-length", 0))
        body = reader.read(length)
        if len(body) < length:
            raise Closed
        return Request(number, method, target, headers, body)

    def _handle(self, wire, request):
        try:
            rule = self._rule_for(request)
            if rule and rule.action(wire, request) is DONE:
                return
            if self.tokens is not None and request.token not in self.tokens:
                raise ApiError(401, "Unauthorized", "Unauthorized")
            if request.is_watch and request.resource:
                self._watch(wire, request)
            else:
                wire.answer(*self.execute(request))
        except ApiError as e:
            wire.answer(e.code, e.status, e.headers)

    # --- the API ---

    @staticmethod
    def _filter(request):
        labels, fields = request.query.get("labelSelector", ""), request.query.get("fieldSelector", "")
        return lambda o: matches_labels(o, labels) and matches_fields(o, fields) and (
            request.namespace in (None, o["metadata"].get("namespace")))

    def execute(self, request):
        """Carries the request out; (status code, object)."""
        if request.resource is None:
            if request.path in ("/version", "/readyz", "/healthz", "/livez"):
                return 200, {"major": "1", "minor": "37", "gitVersion": "v1.37.2"}
            raise ApiError(404, "NotFound", "the server could not find the requested resource")
        if request.resource == TOKEN_REVIEWS:
            return 201, self._token_review(request.json)
        if request.resource == ACCESS_REVIEWS:
            review = request.json
            return 201, review | {"status": {"allowed": bool(self.allow(review["spec"]))}}
        return {"GET": self._get, "POST": self._post, "PUT": self._put, "PATCH": self._patch,
                "DELETE": self._delete}[request.method](request)

    def _typed(self, request, obj):
        return {"apiVersion": request.resource[0], "kind": KINDS.get(request.resource[1], "Object")} | obj

    def _get(self, request):
        where = (request.resource, request.namespace)
        if request.name:
            return 200, self._typed(request, self.store.get(*where, request.name))
        meta, items = self.store.list(*where, int(request.query.get("limit", 0)),
                                      request.query.get("continue"), self._filter(request))
        kind = KINDS.get(request.resource[1], "Object") + "List"
        return 200, {"kind": kind, "apiVersion": request.resource[0], "metadata": meta,
                     "items": [self._typed(request, o) for o in items]}

    def _post(self, request):
        manager = request.query.get("fieldManager") or request.headers.get("user-agent", "").split("/")[0]
        made = self.store.create(request.resource, request.namespace, request.json, manager)
        return 201, self._typed(request, made)

    def _put(self, request):
        return 200, self._typed(request, self.store.replace(
            request.resource, request.namespace, request.name, request.json, request.subresource))

    def _patch(self, request):
        return 200, self._typed(request, self.store.patch(
            request.resource, request.namespace, request.name, request.json,
            request.headers.get("content-type", ""), request.subresource))

    def _delete(self, request):
        return 200, self._typed(request, self.store.delete(
            request.resource, request.namespace, request.name, request.json))

    def _token_review(self, review):
        user = self.users.get(review["spec"]["token"])
        wanted = review["spec"].get("audiences") or []
        audiences = [a for a in wanted if a in self.audiences]
        if not user or (wanted and not audiences):
            return review | {"status": {"authenticated": False, "error": "invalid bearer token"}}
        return review | {"status": {"authenticated": True, "user": user, "audiences": audiences}}

    # --- watch ---

    def _watch(self, wire, request):
        accept, store = self._filter(request), self.store
        end = time.monotonic() + float(request.query.get("timeoutSeconds", 1800))
        version = int(request.query.get("resourceVersion") or store.version)
        bookmarks = request.query.get("allowWatchBookmarks") == "true"
        with store.lock:
            store.events_after(request.resource, version)  # 410 as a status
            said, beat = self.bookmarks_due, time.monotonic()
        wire.head(200, {"Transfer-Encoding": "chunked", "Content-Type": "application/json"})
        while time.monotonic() < end:
            out = []
            with store.lock:
                try:
                    events = store.events_after(request.resource, version)
                except ApiError as e:
                    out, events = [{"type": "ERROR", "object": e.status}], None
                for version, kind, obj, before in events or []:
                    out += self._watch_event(request, kind, obj, before, accept)
                due = self.bookmark_every and time.monotonic() - beat >= self.bookmark_every
                if events is not None and bookmarks and (due or self.bookmarks_due > said):
                    said, beat, version = self.bookmarks_due, time.monotonic(), store.version
                    out.append({"type": "BOOKMARK", "object": self._typed(request, {
                        "metadata": {"resourceVersion": str(version), "creationTimestamp": None}})})
                if not out:
                    store.changed.wait(0.1)
                    if self.stopping.is_set():
                        raise Closed
            for event in out:
                wire.chunk(dumps(event) + b"\n")
            if events is None:
                break
        wire.chunk(b"")

    def _watch_event(self, request, kind, obj, before, accept):
        """With a selector an object appears and goes as it starts and ceases to match."""
        fits, fitted = accept(obj), before is not None and accept(before)
        if kind == "MODIFIED" and fits != fitted:
            kind = "ADDED" if fits else "DELETED"
        if not fits and not fitted:
            return []
        return [{"type": kind, "object": self._typed(request, obj)}]


class ServiceAccount:
    """What a pod finds in /var/run/secrets/kubernetes.io/serviceaccount, and its environment."""

    def __init__(self, api, path, token="A", namespace="default"):
        self.dir = path
        os.mkdir(path)
        self.write("token", token)
        self.write("namespace", namespace)
        with open(api.ca_file, encoding="ascii") as ca:
            self.write("ca.crt", ca.read())
        self.env = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(api.port)}

    def write(self, name, text):
        """As a kubelet does it: the new file replaces the old one at once."""
        new = os.path.join(self.dir, "new")
        with open(new, "w", encoding="ascii") as f:
            f.write(text)
        os.rename(new, os.path.join(self.dir, name))
