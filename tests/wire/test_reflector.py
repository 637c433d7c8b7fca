# SPDX-License-Identifier: Apache-2.0
"""List and watch over real sockets: everything a network or an API server does to a watcher."""

import os
import time

import pytest

from fakeapi import (CONFIGMAPS, answer, cut_after, drop, dumps, gone_event, raw, split, status, watch_says)


def make(api, name, namespace="default", **extra):
    return api.store.create(CONFIGMAPS, namespace, {"metadata": {"name": name}} | extra)


def is_watch(r):
    return r.is_watch


def is_list(r):
    return r.is_list


def synced(probe, *flags, **kwargs):
    p = probe("--plural=configmaps", *flags, **kwargs)
    p.wait("state", connected=True)
    return p


def expect_view(api, p, timeout=30):
    """The probe's view becomes what the server has, versions included."""
    def same():
        return p.view() == {o["metadata"]["name"]: o["metadata"]["resourceVersion"]
                            for o in api.store.all(CONFIGMAPS)}
    api.wait_for(same, timeout, f"view {p.view()}")


def test_list_then_watch(api, probe):
    make(api, "a"), make(api, "b")
    p = synced(probe)
    make(api, "c")
    api.store.delete(CONFIGMAPS, "default", "a")
    api.store.patch(CONFIGMAPS, "default", "b", {"data": {"text": "x"}}, "application/merge-patch+json")
    p.wait("removed", name="a")
    expect_view(api, p)
    assert [x["event"] for x in p.lines[:4]] == ["list_begin", "upsert", "upsert", "list_end"]
    assert len(api.seen(is_list)) == 1 and len(api.seen(is_watch)) == 1


def test_watch_asks_for_bookmarks_and_an_end(api, probe):
    synced(probe)
    query = api.seen(is_watch)[0].query
    assert query["allowWatchBookmarks"] == "true"
    assert 300 <= int(query["timeoutSeconds"]) < 600
    assert query["resourceVersion"] == str(api.store.version)


def test_paging(api, probe):
    for i in range(25):
        make(api, f"m{i:02}")
    p = synced(probe, "--page-size=10")
    expect_view(api, p)
    lists = api.seen(is_list)
    assert [r.query["limit"] for r in lists] == ["10", "10", "10"]
    assert "continue" not in lists[0].query and "continue" in lists[1].query
    assert len(p.seen("list_begin")) == 1


def test_expired_page_is_replaced_by_one_whole_list(api, probe):
    for i in range(25):
        make(api, f"m{i:02}")
    api.rule(lambda r: "continue" in r.query, status(410, "Expired"), times=1)
    p = synced(probe, "--page-size=10")
    expect_view(api, p)
    assert [r.query["limit"] for r in api.seen(is_list)] == ["10", "10", "0"]
    assert len(p.seen("list_begin")) == 2 and len(p.seen("list_end")) == 1


def test_page_cut_in_the_middle_is_asked_again(api, probe):
    for i in range(20):
        make(api, f"m{i:02}", data={"text": "x" * 500})
    api.rule(lambda r: "continue" in r.query, cut_after(3000), times=1)
    p = synced(probe, "--page-size=10")
    expect_view(api, p)
    assert len(api.seen(is_list)) == 3
    assert len(p.seen("list_end")) == 1


@pytest.mark.parametrize("piece", [1, 2, 7, 4096])
def test_events_cut_anywhere(api, probe, piece):
    text = "käse \u2603 \U0001f600 \\ \" \n { [ ] }"
    api.rule(is_watch, split(piece))
    p = synced(probe)
    for name in ("a", "b", "c"):
        make(api, name, data={"text": text})
    assert p.wait("upsert", name="c")["data"] == text
    expect_view(api, p)


def test_list_cut_anywhere(api, probe):
    text = "käse \u2603 \" \\"
    for name in ("a", "b", "c"):
        make(api, name, data={"text": text})
    api.rule(is_list, split(1))
    p = synced(probe)
    assert {x["data"] for x in p.seen("upsert")} == {text}


def test_several_events_in_one_write_then_half_a_line(api, probe):
    objects = [make(api, n) for n in ("a", "b", "c", "d")]
    events = [dumps({"type": "MODIFIED", "object": o}) + b"\n" for o in objects]
    p = probe("--plural=configmaps")
    api.rule(is_watch, watch_says(b"".join(events[:3]) + events[3][:40]), times=1)
    p.wait("state", connected=True, count=2)
    watches = api.seen(is_watch)
    # From what was read completely, not from the beginning and not from the half line.
    assert watches[1].query["resourceVersion"] == objects[2]["metadata"]["resourceVersion"]
    p.wait("upsert", name="d", count=2)  # listed, then watched
    assert len(p.seen("upsert", name="c")) == 2
    assert len(api.seen(is_list)) == 1


def test_gone_inside_of_the_stream_lists_again(api, probe):
    make(api, "a"), make(api, "b")
    api.rule(is_watch, watch_says(gone_event()), times=1)
    p = probe("--plural=configmaps")
    p.wait("list_end", count=2)
    expect_view(api, p)
    assert "resourceVersion" not in api.seen(is_list)[1].query
    assert p.wait("state", connected=False)["kind"] == "gone"


def test_gone_as_a_status_lists_again_and_drops_what_vanished(api, probe):
    make(api, "a"), make(api, "b")
    p = synced(probe)
    api.go_down()
    p.wait("state", connected=False)
    api.store.delete(CONFIGMAPS, "default", "a")
    make(api, "c")
    api.store.compact()
    api.come_back()
    p.wait("list_end", count=2)
    p.wait("state", connected=True, count=2)
    expect_view(api, p)
    assert not p.seen("removed")  # the list says it by leaving it out


def test_410_for_ever_backs_off(api, probe):
    api.rule(is_watch, status(410, "Expired"))
    probe("--plural=configmaps")
    api.wait_for(lambda: len(api.seen(is_list)) >= 4)
    at = [r.at for r in api.seen(is_list)]
    assert at[3] - at[0] > 0.1 + 0.2 + 0.4 - 0.05  # the least that jitter leaves


def test_bookmark_moves_the_version_and_nothing_else(api, probe):
    make(api, "a")
    p = synced(probe)
    api.store.create(("v1", "secrets"), "default", {"metadata": {"name": "other"}})
    api.bookmark()
    number = None

    def reached():
        nonlocal number
        number = p.command("stats")
        return p.wait("stats", id=number)["version"] == str(api.store.version)
    api.wait_for(reached)
    before = api.store.version
    api.store.compact()
    api.cut_all()
    p.wait("state", connected=True, count=2)
    assert api.seen(is_watch)[-1].query["resourceVersion"] == str(before)
    assert len(api.seen(is_list)) == 1
    assert len(p.seen("upsert")) == 1


def test_bare_bookmark_first_and_unknown_types(api, probe):
    obj = make(api, "a")
    api.rule(is_watch, watch_says(
        {"type": "BOOKMARK", "object": {"kind": "ConfigMap", "metadata": {"resourceVersion": "5000"}}},
        {"type": "FOO", "object": obj}, {"type": None, "object": None}, {},
        {"type": "ADDED", "object": None}, {"type": "MODIFIED", "object": {"metadata": None}},
        {"type": "MODIFIED", "object": {"metadata": {"name": 7, "labels": None}}},
        {"type": "MODIFIED", "object": {"metadata": {"name": "n", "resourceVersion": "5001"}, "data": None}},
    ), times=1)
    api.rule(is_watch, watch_says(then_close=False))
    p = probe("--plural=configmaps")
    p.wait("upsert", name="n")
    api.wait_for(lambda: len(api.seen(is_watch)) >= 2)
    assert api.seen(is_watch)[1].query["resourceVersion"] == "5001"
    assert "unknown watch event" in p.stderr


def test_items_null_and_items_without_a_name(api, probe):
    api.rule(is_list, answer(200, {"kind": "List", "metadata": {"resourceVersion": "7"}, "items": None}), times=1)
    p = synced(probe)
    assert api.seen(is_watch)[0].query["resourceVersion"] == "7"
    api.rule(is_list, answer(200, {
        "items": [{}, {"metadata": None}, {"metadata": {"name": None}}, {"metadata": {"name": "ok"}}], "metadata": {"resourceVersion": "9"}}), times=1)
    api.rule(is_watch, watch_says(gone_event()), times=1)
    api.cut_all()
    p.wait("list_end", count=2)
    assert set(p.view()) == {"ok"}


def test_half_open_connection(api, probe):
    make(api, "a")
    p = synced(probe, "--watch-idle-ms=1500")
    api.freeze()
    make(api, "b")
    p.wait("upsert", name="b")
    assert p.seen("state", connected=False)[0]["kind"] == "unavailable"
    assert len(api.seen(is_watch)) == 2 and len(api.seen(is_list)) == 1


@pytest.mark.long_wait
def test_bookmarks_keep_a_quiet_watch_open(api, probe):
    api.bookmark_every = 0.3
    p = synced(probe, "--watch-idle-ms=1500")
    started = time.monotonic()
    api.wait_for(lambda: time.monotonic() - started > 4)
    assert len(api.seen(is_watch)) == 1
    assert not p.seen("state", connected=False)


def test_list_that_stalls_is_given_up_and_asked_again(api, probe):
    make(api, "a")
    api.rule(is_list, drop(), times=1)
    p = synced(probe)
    expect_view(api, p)


@pytest.mark.parametrize("spoil, kind", [
    (answer(200, b""), "invalid"),
    (answer(200, b"{}"), "unavailable"),
    (answer(200, b"<html>502 Bad Gateway</html>", content_type="text/html"), "invalid"),
    (answer(200, b'{"metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"a"}}'), "invalid"),
    (answer(200, b'{"metadata":{"resourceVersion":"1"},"items":[{"metadata":{"na\xffme":"a"}}]}'), "invalid"),
    (answer(502, b"<html>Bad Gateway</html>"), "unavailable"),
    (answer(500, b""), "unavailable"),
    (answer(403, b""), "denied"),
    (status(403, "Forbidden"), "denied"),
    (status(404, "NotFound"), "not_found"),
    (status(401, "Unauthorized"), "unauthenticated"),
    (raw(b"this is not HTTP\r\n\r\n"), "unavailable"),
    (raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"), "unavailable"),
    (raw(b""), "unavailable"),
    (drop(rst=True), "unavailable"),
], ids=range(15))
def test_bad_list_answers(api, probe, spoil, kind):
    """Each is reported, backed off from, and healed."""
    make(api, "a")
    api.rule(is_list, spoil, times=2)
    p = probe("--plural=configmaps")
    p.wait("state", connected=True)
    expect_view(api, p)
    assert {x["kind"] for x in p.seen("state", connected=False)} == {kind}
    at = [r.at for r in api.seen(is_list)]
    assert len(at) == 3
    assert at[2] - at[0] > (0.09 if kind == "unauthenticated" else 0.29)  # 401: once at once


@pytest.mark.parametrize("spoil, lists", [
    (answer(200, b""), 1),
    (answer(500, b"oops"), 1),
    (status(403, "Forbidden"), 1),
    (status(404, "NotFound"), 2),
    (status(400, "BadRequest", "invalid resource version"), 2),
    (status(504, "Timeout", "Too large resource version: 9, current: 2"), 2),
    (watch_says(b"garbage\n"), 2),
    (watch_says(b'{"type":"ADDED","object":{"a":\xff}}\n'), 2),
    (watch_says({"type": "ERROR", "object": {"code": 500, "kind": "Status"}}), 1),
    (watch_says({"type": "ERROR", "object": None}), 1),
    (raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), 1),
    (drop(rst=True), 1),
    (drop(), 1),
], ids=range(13))
def test_bad_watch_answers(api, probe, spoil, lists):
    make(api, "a")
    api.rule(is_watch, spoil, times=1)
    p = probe("--plural=configmaps")
    api.wait_for(lambda: len(api.seen(is_watch)) >= 2)
    p.wait("state", connected=False)
    make(api, "b")
    p.wait("upsert", name="b")
    expect_view(api, p)
    assert len(api.seen(is_list)) == lists


def test_server_away_is_no_hot_loop(api, probe):
    make(api, "a")
    p = synced(probe)
    api.go_down()
    p.wait("state", connected=False, count=4)
    tries = p.seen("state", connected=False)
    assert tries[3]["at"] - tries[0]["at"] > 0.1 + 0.2 + 0.4 - 0.05
    api.come_back()
    make(api, "b")
    p.wait("upsert", name="b")
    assert len(api.seen(is_list)) == 1


def test_server_away_at_start(api, probe):
    make(api, "a")
    api.go_down()
    p = probe("--plural=configmaps")
    p.wait("state", connected=False, count=2)
    api.come_back()
    p.wait("state", connected=True)
    expect_view(api, p)


def test_retry_after_is_kept(api, probe):
    api.rule(is_list, status(429, "TooManyRequests", headers={"Retry-After": "2"}), times=1)
    synced(probe)
    first, second = api.seen(is_list)
    assert 1.95 < second.at - first.at < 20


def test_selectors_and_namespace(api, probe):
    make(api, "a", metadata={"name": "a", "labels": {"app": "x"}})
    make(api, "b")
    make(api, "c", namespace="other", metadata={"name": "c", "labels": {"app": "x"}})
    p = synced(probe, "--namespace=default", "--label-selector=app=x,kind!=y")
    assert set(p.view()) == {"a"}
    api.store.patch(CONFIGMAPS, "default", "b", {"metadata": {"labels": {"app": "x"}}}, "application/merge-patch+json")
    p.wait("upsert", name="b")
    api.store.patch(CONFIGMAPS, "default", "a", {"metadata": {"labels": None}}, "application/merge-patch+json")
    p.wait("removed", name="a")
    assert all(r.path == "/api/v1/namespaces/default/configmaps" for r in api.seen())


def test_metadata_only(api, probe):
    synced(probe, "--metadata-only")
    accepts = [r.headers["accept"] for r in api.seen()]
    assert accepts == ["application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
                       "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"]


def test_big_objects(api, probe):
    text = "x" * 1_400_000
    make(api, "listed", data={"text": text})
    p = synced(probe)
    make(api, "watched", data={"text": text})
    for name in ("listed", "watched"):
        assert len(p.wait("upsert", name=name)["data"]) == len(text)


def test_object_beyond_the_ceiling_is_an_error_not_a_crash(api, probe):
    p = synced(probe)
    big = {"type": "ADDED", "object": {"metadata": {"name": "big", "resourceVersion": "9999"}, "data": {"text": "x" * (9 << 20)}}}
    api.rule(is_watch, watch_says(big), times=1)
    api.cut_all()
    assert p.wait("state", connected=False, kind="too_large")
    p.wait("state", connected=True, count=2)


@pytest.mark.parametrize("when", ["list", "watch"])
def test_freed_inside_of_its_own_handler(api, probe, when):
    if when == "list":
        api.rule(is_list, lambda _w, r: api.wait_for(lambda: released), times=1)
    released = []
    p = probe("--plural=configmaps")
    p.command("free_on", name="a")
    if when == "list":
        make(api, "a"), make(api, "b")
        p.wait("stats", id=p.command("stats"))
        released.append(1)
    else:
        p.wait("state", connected=True)
        make(api, "a"), make(api, "b")
    p.wait("upsert", name="a")
    make(api, "c")
    assert p.wait("stats", id=p.command("stats"))["in_flight"] == 0
    assert not p.seen("upsert", name="b") and not p.seen("upsert", name="c")


@pytest.mark.long_wait
def test_long_run_does_not_grow(api, probe):
    """Hundreds of events, relists and lost connections: descriptors level off (the sanitizer builds
    look after memory)."""
    p = synced(probe)
    descriptors = []
    for n in range(3):  # the back-off grows with each loss that comes so soon
        for i in range(80):
            make(api, f"x{i}", data={"text": "y" * 300})
            api.store.delete(CONFIGMAPS, "default", f"x{i}")
        api.store.compact()
        api.cut_all()
        make(api, f"mark{n}")
        p.wait("upsert", name=f"mark{n}", timeout=60)
        p.wait("state", connected=True, count=n + 2)
        descriptors.append(len(os.listdir(f"/proc/{p.pid}/fd")))
    expect_view(api, p)
    assert max(descriptors) <= descriptors[0] + 1, descriptors
