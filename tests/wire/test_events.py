# SPDX-License-Identifier: Apache-2.0
"""Kubernetes Events as they reach the server."""

import threading

from fakeapi import EVENTS, status


def emit(p, n=0, reason="Created", uid=None, **fields):
    p.command("emit", ns="default", name=f"pod-{n}", uid=uid or f"uid-{n}", reason=reason,
              **({"message": "made a pod"} | fields))


def posts(api):
    return api.seen(lambda r: r.method == "POST" and r.resource == EVENTS)


def stats(p):
    return p.wait("stats", id=p.command("stats"))


def settled(api, p):
    api.wait_for(lambda: stats(p)["events_pending"] == 0)


def test_an_event(api, probe):
    p = probe()
    emit(p, warning=True, annotations='{"k8s-agent-sandbox-mcp/owner-hash":"x"}')
    settled(api, p)
    event, = api.store.all(EVENTS, "default")
    assert event["involvedObject"] == {"apiVersion": "v1", "kind": "Pod", "namespace": "default",
                                       "name": "pod-0", "uid": "uid-0"}
    assert (event["type"], event["reason"], event["message"], event["count"]) == (
        "Warning", "Created", "made a pod", 1)
    assert event["source"] == {"component": "probe"}
    assert (event["reportingComponent"], event["reportingInstance"]) == ("probe", "probe-0")
    assert event["metadata"]["name"].startswith("pod-0.")
    assert event["metadata"]["annotations"] == {"k8s-agent-sandbox-mcp/owner-hash": "x"}
    assert event["firstTimestamp"] == event["lastTimestamp"]


def test_equal_events_are_one(api, probe):
    p = probe()
    for _ in range(50):
        emit(p)
    emit(p, message="made another pod")
    settled(api, p)
    assert len(posts(api)) == 2 and len(api.seen()) == 2


def test_an_object_that_talks_too_much(api, probe):
    p = probe()
    for i in range(60):
        emit(p, message=f"number {i}")
    emit(p, n=1)
    settled(api, p)
    assert len(posts(api)) == 26
    assert stats(p)["events_dropped"] == 35


def test_lost_events_are_counted_and_the_rest_goes_on(api, probe):
    api.rule(lambda r: r.resource == EVENTS, status(403, "Forbidden"), times=2)
    p = probe()
    for i in range(5):
        emit(p, n=i)
    settled(api, p)
    assert len(api.store.all(EVENTS)) == 3
    assert stats(p)["events_dropped"] == 2


def test_events_wait_behind_everything_else(api, probe):
    """With all connections taken, what is sent later passes the events that wait."""
    gate = threading.Event()
    api.rule(lambda r: r.path == "/hold", lambda _w, _r: (gate.wait(20), None)[1])
    p = probe()
    for _ in range(12):
        p.command("send", verb="get", path="/hold")
    api.wait_for(lambda: len(api.seen()) == 12)
    for i in range(5):
        emit(p, n=i)
    numbers = [p.command("send", verb="get", path="/version") for _ in range(20)]
    stats(p)
    gate.set()
    for n in numbers:
        p.wait("answer", id=n)
    settled(api, p)
    order = [r.resource == EVENTS for r in api.seen()[12:]]
    assert order.count(True) == 5
    assert not any(order[:20 - 12]), order


def test_long_texts_fit_the_api(api, probe):
    p = probe()
    emit(p, message="ä" * 5000, reason="R" * 500)
    settled(api, p)
    event, = api.store.all(EVENTS)
    assert event["message"] == "ä" * 512 and len(event["reason"]) == 128


def test_end_with_events_waiting(api, probe):
    api.rule(lambda r: True, lambda _w, _r: api.stopping.wait(20))
    p = probe()
    for i in range(100):
        emit(p, n=i)
    assert stats(p)["events_pending"] == 100
