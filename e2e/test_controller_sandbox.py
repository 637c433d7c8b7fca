# SPDX-License-Identifier: Apache-2.0
"""Sandboxes that somebody makes directly: their pods, conditions, suspension and end."""

import pytest

from support.kube import (condition, controller_uid, is_ready, name_of, reason_is, uid_of)
from support.space import BUSYBOX_IMAGE, blueprint, container, in_seconds, unique

HASH = "agents.x-k8s.io/sandbox-name-hash"


def conditions(obj):
    return {c["type"]: (c["status"], c["reason"]) for c in obj["status"]["conditions"]}


@pytest.fixture(name="box")
def box_fixture(space):
    """A running sandbox."""
    name = unique("box")
    space.sandbox(name)
    yield space.wait_ready("Sandbox", name)
    space.delete("Sandbox", name)


def test_pod_and_status(space):
    name = unique("box")
    space.sandbox(name, blueprint(labels={"mine": "1"}, annotations={"note": "kept"}))
    box = space.wait_ready("Sandbox", name)
    pod = space.get("Pod", name)
    owner, = pod["metadata"]["ownerReferences"]
    assert owner == {"apiVersion": "agents.x-k8s.io/v1beta1", "kind": "Sandbox", "name": name, "uid": uid_of(box),
                     "controller": True, "blockOwnerDeletion": True}
    labels, annotations = pod["metadata"]["labels"], pod["metadata"]["annotations"]
    assert set(labels) == {"mine", HASH} and labels["mine"] == "1"
    assert annotations["note"] == "kept"
    assert annotations["agents.x-k8s.io/propagated-labels"] == "mine"
    assert annotations["agents.x-k8s.io/propagated-annotations"] == "note"
    status = box["status"]
    assert status["podIPs"] == [i["ip"] for i in pod["status"]["podIPs"]]
    assert status["nodeName"] == pod["spec"]["nodeName"]
    assert status["selector"] == f"{HASH}={labels[HASH]}"
    assert conditions(box) == {"Ready": ("True", "DependenciesReady"), "Suspended": ("False", "NotSuspended"),
                               "PodScheduled": ("True", "PodScheduled")}
    assert condition(box)["message"] == "Pod is Ready"
    assert {c["observedGeneration"] for c in status["conditions"]} == {box["metadata"]["generation"]}
    created = [m for m in pod["metadata"]["managedFields"] if m["manager"] == "sandbox-controller"]
    assert created, "the pod does not carry the controller's mark"
    # Nothing else of the user's choice was decided for the pod of a bare sandbox.
    assert pod["spec"]["dnsPolicy"] == "ClusterFirst"
    space.delete("Sandbox", name)
    space.wait_gone("Pod", name)


def test_suspend_and_resume(space, box):
    name = name_of(box)
    before = uid_of(space.get("Pod", name))
    space.patch("Sandbox", name, {"spec": {"operatingMode": "Suspended"}})
    suspended = space.wait("Sandbox", name, "suspended",
                           lambda o: condition(o, "Suspended").get("reason") == "PodTerminated")
    assert conditions(suspended)["Ready"] == ("False", "SandboxSuspended")
    assert condition(suspended)["message"] == "Sandbox is suspended"
    assert not suspended["status"].get("podIPs") and not suspended["status"].get("nodeName")
    assert space.find("Pod", name) is None
    space.patch("Sandbox", name, {"spec": {"operatingMode": "Running"}})
    resumed = space.wait_ready("Sandbox", name)
    assert conditions(resumed)["Suspended"] == ("False", "NotSuspended")
    assert uid_of(space.get("Pod", name)) != before


def test_made_suspended_there_is_no_pod(space):
    name = unique("box")
    space.sandbox(name, {**blueprint(), "operatingMode": "Suspended"})
    space.wait("Sandbox", name, "suspended", reason_is("SandboxSuspended"))
    assert space.find("Pod", name) is None
    space.delete("Sandbox", name)


def test_a_pod_that_vanished_is_made_again(space, box):
    name = name_of(box)
    before = uid_of(space.get("Pod", name))
    space.delete("Pod", name)
    again = space.wait("Pod", name, "another", lambda p: uid_of(p) != before)
    assert controller_uid(again) == uid_of(box)
    space.wait_ready("Sandbox", name)
    pods = [p for p in space.list("Pod") if controller_uid(p) == uid_of(box)]
    assert len(pods) == 1


@pytest.mark.parametrize("command,reason,message", [
    ("exit 0", "PodSucceeded", "Pod completed successfully"), ("exit 3", "PodFailed", "Pod failed")])
def test_a_pod_that_ended(space, command, reason, message):
    name = unique("end")
    spec = {"restartPolicy": "Never",
            "containers": [container(BUSYBOX_IMAGE, command=["/bin/sh", "-c", command])]}
    space.sandbox(name, {"podTemplate": {"spec": spec}})
    ended = space.wait("Sandbox", name, reason, reason_is(reason))
    assert condition(ended)["status"] == "False" and condition(ended)["message"] == message
    assert (condition(ended, "Finished")["status"], condition(ended, "Finished")["reason"]) == ("True", reason)
    # An ended pod is a result: it is neither deleted nor replaced.
    space.kube.stays("Pod", space.name, "the same", lambda pods: name in map(name_of, pods), 1)
    space.delete("Sandbox", name)


def test_end_by_time_delete(space):
    name = unique("box")
    space.sandbox(name, lifecycle={"shutdownTime": in_seconds(4), "shutdownPolicy": "Delete"})
    space.wait_ready("Sandbox", name)
    space.wait_gone("Sandbox", name, timeout=10)
    space.wait_gone("Pod", name)


def test_end_by_time_retain(space):
    name = unique("box")
    space.sandbox(name, lifecycle={"shutdownTime": in_seconds(4), "shutdownPolicy": "Retain"})
    space.wait_ready("Sandbox", name)
    space.wait("Sandbox", name, "expired", reason_is("SandboxExpired"), timeout=10)
    space.wait_gone("Pod", name)
    kept = space.wait("Sandbox", name, "emptied", lambda o: not o["status"].get("podIPs"))
    assert condition(kept)["message"] == "Sandbox has expired"
    assert not any(kept["status"].get(k) for k in ("nodeName", "selector", "service"))
    assert "PodScheduled" not in conditions(kept)
    space.kube.stays("Pod", space.name, "gone", lambda pods: name not in map(name_of, pods), 1)
    space.delete("Sandbox", name)


def test_made_after_its_end(space):
    """A time in the past is acted on at once, and no pod is made."""
    name = unique("late")
    space.sandbox(name, lifecycle={"shutdownTime": "2020-01-01T00:00:00Z", "shutdownPolicy": "Delete"})
    space.wait_gone("Sandbox", name, timeout=10)
    assert space.find("Pod", name) is None
    assert not [e for e in space.events(name, "Pod")]


def test_end_that_moves(space):
    """A later time replaces the earlier one: the timer of the first is void."""
    name = unique("box")
    space.sandbox(name, lifecycle={"shutdownTime": in_seconds(3), "shutdownPolicy": "Delete"})
    space.patch("Sandbox", name, {"spec": {"shutdownTime": "2096-01-01T00:00:00Z"}})
    space.kube.stays("Sandbox", space.name, "there", lambda boxes: name in map(name_of, boxes), 5)
    space.delete("Sandbox", name)


def test_metadata_follows_the_template(space, box):
    name = name_of(box)
    pod = space.get("Pod", name)
    space.patch("Pod", name, {"metadata": {"labels": {"others": "1"}}})
    metadata = {"labels": {"a": "1", "b": "2"}, "annotations": {"c": "3"}}
    space.patch("Sandbox", name, {"spec": {"podTemplate": {"metadata": metadata}}})
    space.wait("Pod", name, "labelled", lambda p: p["metadata"]["labels"].get("b") == "2"
               and p["metadata"]["annotations"].get("c") == "3")
    gone = {"labels": {"b": None}, "annotations": {"c": None}}
    space.patch("Sandbox", name, {"spec": {"podTemplate": {"metadata": gone}}})
    after = space.wait("Pod", name, "unlabelled", lambda p: "b" not in p["metadata"]["labels"])
    assert after["metadata"]["labels"]["a"] == "1" and "c" not in after["metadata"]["annotations"]
    assert after["metadata"]["labels"]["others"] == "1", "a label that others set was taken away"
    assert uid_of(after) == uid_of(pod)


def test_reserved_labels_do_not_reach_the_pod(space):
    name = unique("box")
    forged = {"agents.x-k8s.io/claim-uid": "forged", "agents.x-k8s.io/warm-pool-sandbox": "forged", "ok": "1"}
    space.sandbox(name, blueprint(labels=forged))
    space.wait_ready("Sandbox", name)
    assert set(space.get("Pod", name)["metadata"]["labels"]) == {"ok", HASH}
    space.delete("Sandbox", name)


# ---- what belongs to others

def foreign_pod(space, name, **metadata):
    space.create("Pod", name, {"terminationGracePeriodSeconds": 1, "containers": [container()]}, **metadata)
    return space.get("Pod", name)


def test_a_pod_of_somebody_else_is_left_alone(space):
    name = unique("taken")
    pod = foreign_pod(space, name)
    space.sandbox(name, lifecycle={"shutdownTime": in_seconds(5), "shutdownPolicy": "Delete"})
    refused = space.wait("Sandbox", name, "refused", reason_is("ReconcilerError"))
    assert f'cannot adopt unowned pod "{name}"' in condition(refused)["message"]
    space.wait_gone("Sandbox", name, timeout=12)
    after = space.get("Pod", name)
    assert uid_of(after) == uid_of(pod) and not after["metadata"].get("deletionTimestamp")
    assert not after["metadata"].get("ownerReferences")
    space.delete("Pod", name)


def test_a_pod_marked_adoptable_is_taken_over(space):
    name = unique("adopt")
    pod = foreign_pod(space, name, labels={"agents.x-k8s.io/adoptable": "true"})
    space.sandbox(name)
    box = space.wait_ready("Sandbox", name)
    after = space.get("Pod", name)
    assert (uid_of(after), controller_uid(after)) == (uid_of(pod), uid_of(box))
    space.delete("Sandbox", name)


def test_a_pod_owned_by_another_is_left_alone(space, box):
    """Not even the adoptable label lets a second sandbox take what has an owner."""
    name = unique("owned")
    owner = [{"apiVersion": "agents.x-k8s.io/v1beta1", "kind": "Sandbox", "name": name_of(box), "uid": uid_of(box),
              "controller": True}]
    pod = foreign_pod(space, name, labels={"agents.x-k8s.io/adoptable": "true"}, owners=owner)
    space.sandbox(name)
    refused = space.wait("Sandbox", name, "refused", reason_is("ReconcilerError"))
    assert f'pod "{name}" is owned by Sandbox/{name_of(box)}' in condition(refused)["message"]
    space.delete("Sandbox", name)
    space.wait_gone("Sandbox", name)
    assert uid_of(space.get("Pod", name)) == uid_of(pod)
    space.delete("Pod", name)


# ---- what this version does not do

@pytest.mark.parametrize("field,value", [
    ("service", True),
    ("volumeClaimTemplates", [{"metadata": {"name": "data"},
                               "spec": {"accessModes": ["ReadWriteOnce"],
                                        "resources": {"requests": {"storage": "1Gi"}}}}])])
def test_fields_that_are_not_carried_out_yet(space, field, value):
    name = unique("field")
    space.sandbox(name, {**blueprint(), field: value})
    refused = space.wait("Sandbox", name, "refused", reason_is("ReconcilerError"))
    assert condition(refused)["status"] == "False" and field in condition(refused)["message"]
    assert not is_ready(refused)
    space.delete("Sandbox", name)


def test_two_pods_of_one_sandbox(space, box):
    """Nothing is chosen and nothing deleted; it says so once."""
    name, second = name_of(box), unique("second")
    owner = [{"apiVersion": "agents.x-k8s.io/v1beta1", "kind": "Sandbox", "name": name, "uid": uid_of(box),
              "controller": True}]
    label = space.get("Pod", name)["metadata"]["labels"][HASH]
    foreign_pod(space, second, labels={HASH: label}, owners=owner)
    space.wait("Sandbox", name, "refused", reason_is("MultiplePods"))
    assert space.kube.wait_event(space.name, "MultiplePods", name)["type"] == "Warning"
    assert {name, second} <= set(map(name_of, space.list("Pod")))
    space.delete("Pod", second)
    space.wait_ready("Sandbox", name)
