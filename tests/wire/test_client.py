# SPDX-License-Identifier: Apache-2.0
"""Requests over real sockets: repeats by verb and answer, deadlines, identity, trust."""

import json
import os
import subprocess
import time

import pytest

from fakeapi import (CONFIGMAPS, FakeApi, ServiceAccount, answer, apply_then_drop, drop, raw, stall, status)
from probe import Probe

PATH = "/api/v1/namespaces/default/configmaps"
A = PATH + "/a"
BODY = json.dumps({"metadata": {"name": "a"}})
MERGE = 1

WRITES = {
    "create": {"path": PATH, "body": BODY},
    "update": {"path": A, "body": BODY},
    "patch": {"path": A, "body": '{"data":{"text":"x"}}', "patch": MERGE},
    "delete": {"path": A, "body": '{"kind":"DeleteOptions","apiVersion":"v1"}'},
    "get": {"path": A},
}


def prepare(api, verb):
    if verb != "create":
        api.store.create(CONFIGMAPS, "default", json.loads(BODY))


@pytest.mark.parametrize("verb", WRITES)
def test_verbs(api, probe, verb):
    prepare(api, verb)
    reply = probe().send(verb, **WRITES[verb])
    assert reply["ok"], reply
    assert reply["object"]["metadata"]["name"] == "a"
    request, = api.seen()
    writes_manager = verb in ("create", "update", "patch")
    assert request.query.get("fieldManager") == ("probe" if writes_manager else None)
    assert request.headers["user-agent"] == "kube_probe/1"
    assert request.headers.get("content-type") == {
        "patch": "application/merge-patch+json", "get": None}.get(verb, "application/json")
    assert "expect" not in request.headers and "accept-encoding" not in request.headers


@pytest.mark.parametrize("fault", [
    status(500, "InternalError"), status(503, "ServiceUnavailable"), answer(502, b"<html>"), drop(),
    drop(rst=True), raw(b"HTTP/1.1 20"), raw(b"HTTP/1.1 200 OK\r\nX: "),
    raw(b"HTTP/1.1 200 OK\r\nX: y\r\n"), raw(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"),
], ids=["500", "503", "502", "fin", "rst", "line", "head", "heads", "body"])
def test_a_create_is_never_repeated_blindly(api, probe, fault):
    p = probe()
    prepare(api, "update")
    for verb in ("update", "patch", "get", "delete", "create"):
        before = len(api.seen())
        api.rule(lambda r: True, fault, times=1)
        reply = p.send(verb, **WRITES[verb])
        assert reply["ok"] == (verb != "create")
        assert len(api.seen()) - before == (1 if verb == "create" else 2)
    assert reply["kind"] == "unavailable"
    assert not api.store.all(CONFIGMAPS)


def test_create_whose_answer_is_lost(api, probe):
    api.rule(lambda r: True, apply_then_drop(), times=1)
    reply = probe().send("create", **WRITES["create"])
    assert not reply["ok"] and reply["kind"] == "unavailable"
    assert len(api.seen()) == 1 and len(api.store.all(CONFIGMAPS)) == 1


@pytest.mark.parametrize("verb", ["create", "update", "delete"])
def test_kept_connection_that_dies_under_a_request(api, probe, verb):
    """libcurl would send the request again by itself."""
    p = probe()
    prepare(api, verb)
    assert p.send("get", "/version")["ok"]
    api.rule(lambda r: r.is_write, drop(), times=1)
    reply = p.send(verb, **WRITES[verb])
    writes = api.seen(lambda r: r.is_write)
    assert api.seen()[0].connection == writes[0].connection
    assert reply["ok"] == (verb != "create")
    assert len(writes) == (1 if verb == "create" else 2)


@pytest.mark.parametrize("body", [None, BODY])
def test_kept_connection_and_exactly_one_try(api, probe, body):
    p = probe()
    prepare(api, "delete")
    assert p.send("get", "/version")["ok"]
    api.rule(lambda r: r.is_write, drop(), times=1)
    reply = p.send("delete", A, never=True, **({"body": body} if body else {}))
    assert not reply["ok"]
    assert len(api.seen(lambda r: r.is_write)) == 1


def test_create_is_repeated_where_nothing_was_done(api, probe):
    api.rule(lambda r: True, status(429, "TooManyRequests", headers={"Retry-After": "1"}), times=2)
    reply = probe().send("create", **WRITES["create"])
    assert reply["ok"]
    at = [r.at for r in api.seen()]
    assert len(at) == 3 and at[1] - at[0] >= 0.99 and at[2] - at[1] >= 0.99


def test_refused_connection_is_tried_again(api, probe):
    p = probe()
    api.go_down()
    number = p.command("send", verb="create", **WRITES["create"])
    api.come_back()
    assert p.wait("answer", id=number)["ok"]
    assert len(api.store.all(CONFIGMAPS)) == 1


def test_tries_end(api, probe):
    api.rule(lambda r: True, status(503, "ServiceUnavailable"))
    reply = probe().send("get", A)
    assert reply["kind"] == "unavailable" and reply["http_status"] == 503
    at = [r.at for r in api.seen()]
    assert len(at) == 5
    gaps = [b - a for a, b in zip(at, at[1:])]
    for gap, full in zip(gaps, (0.2, 0.4, 0.8, 1.6)):
        assert full / 2 - 0.01 <= gap < full + 0.5


def test_never_means_one_try(api, probe):
    api.rule(lambda r: True, status(429, "TooManyRequests", headers={"Retry-After": "7"}))
    reply = probe().send("get", A, never=True)
    assert reply["kind"] == "exhausted" and reply["retry_after_ms"] == 7000
    assert len(api.seen()) == 1


def test_retry_after_beyond_the_deadline_is_not_waited_for(api, probe):
    api.rule(lambda r: True, status(429, "TooManyRequests", headers={"Retry-After": "60"}))
    started = time.monotonic()
    reply = probe().send("get", A, deadline_ms=30000)
    assert reply["kind"] == "exhausted" and reply["retry_after_ms"] == 60000
    assert time.monotonic() - started < 20


def test_deadline(api, probe):
    api.rule(lambda r: True, stall())
    started = time.monotonic()
    reply = probe().send("get", A, deadline_ms=700)
    assert reply["kind"] == "timeout"
    assert 0.6 < time.monotonic() - started < 20


def test_cancel_leaves_nothing(api, probe):
    api.rule(lambda r: r.path == A, stall())
    p = probe()
    for _ in range(3):
        p.command("send", verb="get", path=A, cancel=True)
    assert p.wait("stats", id=p.command("stats"))["in_flight"] == 0
    assert p.send("get", "/version")["ok"]


def test_many_at_once_share_few_connections(api, probe):
    p = probe()
    numbers = [p.command("send", verb="create", path=PATH, body=json.dumps({"metadata": {"name": f"m{i}"}}))
               for i in range(200)]
    for n in numbers:
        assert p.wait("answer", id=n, timeout=30)["ok"]
    assert len({r.connection for r in api.seen()}) <= 12


@pytest.mark.parametrize("code, reason, kind", [
    (400, "BadRequest", "invalid"), (401, "Unauthorized", "unauthenticated"), (404, "NotFound", "not_found"),
    (405, "MethodNotAllowed", "invalid"), (409, "AlreadyExists", "exists"), (409, "Conflict", "conflict"),
    (410, "Expired", "gone"), (413, "RequestEntityTooLarge", "too_large"), (422, "Invalid", "invalid"),
    (504, "Timeout", "timeout"), (501, "NotImplemented", "unavailable"),
])
def test_kinds(api, probe, code, reason, kind):
    api.rule(lambda r: True, status(code, reason, "because"))
    reply = probe().send("create", **WRITES["create"])
    assert (reply["kind"], reply["http_status"], reply["reason"]) == (kind, code, reason)
    assert "because" in reply["message"]


def test_denied_names_verb_and_resource(api, probe):
    api.rule(lambda r: True, status(403, "Forbidden", 'User "x" cannot do that'))
    path = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/team/sandboxclaims/c/status"
    reply = probe().send("patch", path, body="{}", patch=MERGE)
    assert reply["kind"] == "denied"
    for text in (reply["message"], reply["hint"]):
        assert "patch" in text and "sandboxclaims/status.extensions.agents.x-k8s.io" in text and "team" in text


def test_quota_and_admission_are_no_missing_rights(api, probe):
    p = probe()
    api.rule(lambda r: True, status(403, "Forbidden", "exceeded quota: q, requested: pods=1"), times=1)
    assert p.send("create", **WRITES["create"])["kind"] == "exhausted"
    api.rule(lambda r: True, status(403, "Forbidden", 'admission webhook "w" denied the request: no'), times=1)
    reply = p.send("create", **WRITES["create"])
    assert reply["kind"] == "denied" and reply["hint"] is None


def test_answers_that_are_no_json(api, probe):
    p = probe()
    for body in (b"", b"<html>", b"{", b'{"a":"\xff"}'):
        api.rule(lambda r: True, answer(200, body), times=1)
        reply = p.send("get", A)
        assert not reply["ok"] and reply["kind"] == "unavailable", body


def test_huge_error_message_is_cut(api, probe):
    api.rule(lambda r: True, status(422, "Invalid", "x" * 1_000_000))
    reply = probe().send("create", **WRITES["create"])
    assert reply["kind"] == "invalid" and len(reply["message"]) <= 2048


def test_huge_answer_is_refused(api, probe):
    api.rule(lambda r: True, answer(200, b'"' + b"x" * (17 << 20) + b'"'))
    reply = probe().send("get", A)
    assert reply["kind"] == "too_large" and len(api.seen()) == 1


def test_proxy_of_the_environment_is_ignored(api, probe):
    env = {k: "http://127.0.0.1:9" for k in ("http_proxy", "https_proxy", "all_proxy", "ALL_PROXY")}
    assert probe(env=env).send("get", "/version")["ok"]


def test_redirects_are_not_followed(api, probe):
    api.rule(lambda r: True, answer(302, b"", headers={"Location": "/version"}))
    reply = probe().send("get", A)
    assert not reply["ok"] and len(api.seen()) == 1


# --- identity and trust ---

@pytest.fixture
def tls(tmp_path):
    os.mkdir(tmp_path / "tls")
    with FakeApi(tls_dir=str(tmp_path / "tls"), tokens={"A"}) as server:
        yield server


@pytest.fixture
def account(tls, tmp_path):
    return ServiceAccount(tls, tmp_path / "account", token="A\n", namespace="team")


def in_cluster(account, *flags):
    return Probe(f"--in-cluster={account.dir}", *flags, env=account.env)


def test_token_rotation(tls, account):
    p = in_cluster(account, "--plural=configmaps")
    p.wait("state", connected=True)
    assert p.send("create", **WRITES["create"])["ok"]
    account.write("token", "B")
    tls.tokens = {"B"}
    assert p.send("get", A)["ok"]
    assert [r.token for r in tls.seen(lambda r: r.path == A)] == ["A", "B"]
    tls.cut_all()
    p.wait("state", connected=True, count=2)
    account.write("token", "C")
    tls.tokens = {"C"}
    tls.cut_all()
    p.wait("state", connected=True, count=3)
    assert p.send("create", PATH, body='{"metadata":{"name":"b"}}')["ok"]
    p.wait("upsert", name="b")
    p.stop()


def test_a_refused_token_that_is_not_replaced_is_tried_twice(tls, account):
    tls.tokens = set()
    p = in_cluster(account)
    reply = p.send("create", **WRITES["create"])
    assert reply["kind"] == "unauthenticated"
    assert len(tls.seen()) == 2
    p.stop()


@pytest.mark.parametrize("content", ["", "two words", "tab\tinside", "\x01"])
def test_half_written_token_keeps_the_old_one(tls, account, content):
    p = in_cluster(account)
    assert p.send("get", "/version")["ok"]
    account.write("token", content)
    tls.rule(lambda r: r.path == A, status(401, "Unauthorized"), times=1)
    p.send("get", A)
    assert {r.token for r in tls.seen()} == {"A"}
    p.stop()


def test_ca_rotation(tls, account):
    p = in_cluster(account, "--plural=configmaps")
    p.wait("state", connected=True)
    tls.make_certificate()
    tls.cut_all()
    refused = p.wait("state", connected=False, count=2)
    p.send("get", "/version", never=True)
    account.write("ca.crt", open(tls.ca_file, encoding="ascii").read())
    assert p.send("create", **WRITES["create"])["ok"]
    p.wait("upsert", name="a", timeout=30)
    assert refused["kind"] == "unavailable"
    p.stop()


def test_stranger_is_refused(tls, account, tmp_path):
    """A server whose certificate another CA signed sees no request and no token."""
    with FakeApi(tls_dir=str(tmp_path / "account")) as stranger:  # overwrites no ca.crt
        account.env["KUBERNETES_SERVICE_PORT"] = str(stranger.port)
        p = in_cluster(account)
        reply = p.send("get", "/version")
        assert reply["kind"] == "unavailable" and "CA" in reply["hint"]
        assert not stranger.seen()
        p.stop()


def kubeconfig(tls, tmp_path, **cluster):
    path = tls.write_kubeconfig(tmp_path / "kc", token="A")
    config = json.load(open(path, encoding="utf-8"))
    config["clusters"][0]["cluster"].update(cluster)
    json.dump(config, open(path, "w", encoding="utf-8"))
    return path


def test_tls_server_name(tls, tmp_path):
    for name, ok in (("fakeapi.test", True), ("other.test", False)):
        p = Probe(kubeconfig=kubeconfig(tls, tmp_path, **{"tls-server-name": name}))
        assert p.send("get", "/version")["ok"] == ok
        p.stop()
    assert tls.seen()[0].headers["host"] == f"127.0.0.1:{tls.port}"


def test_insecure_is_warned_about(tls, tmp_path):
    path = kubeconfig(tls, tmp_path, **{"certificate-authority": None, "insecure-skip-tls-verify": True})
    p = Probe(kubeconfig=path)
    assert p.send("get", "/version")["ok"]
    assert "not checked" in p.stderr
    p.stop()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a mount namespace of its own")
def test_system_cas_are_not_trusted_beside_the_given_one(tls, tmp_path):
    """The server's CA is in the system's folder, but another one is configured."""
    store = tmp_path / "store"
    store.mkdir()
    (store / "ca.pem").write_bytes(open(tls.ca_file, "rb").read())
    subprocess.run(["openssl", "rehash", store], check=True)
    (tmp_path / "other").mkdir()
    other = FakeApi(tls_dir=str(tmp_path / "other"))
    other.make_certificate()
    wrap = ["unshare", "-m", "sh", "-c", f'mount --bind {store} /etc/ssl/certs && exec "$@"', "-"]
    for ca, ok in ((tls.ca_file, True), (other.ca_file, False)):
        p = Probe(kubeconfig=kubeconfig(tls, tmp_path, **{"certificate-authority": ca}), wrap=wrap)
        assert p.send("get", "/version", never=True)["ok"] == ok
        p.stop()


def test_slow_handshake_does_not_hold_up_others(tls, account):
    """A peer that accepts and says nothing: the deadline counts."""
    tls.freeze(new_too=True)
    p = in_cluster(account)
    reply = p.send("get", "/version", deadline_ms=800)
    assert reply["kind"] == "timeout"
    tls.thaw()
    assert p.send("get", "/version")["ok"]
    p.stop()
