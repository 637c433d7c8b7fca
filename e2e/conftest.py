# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the end-to-end suites, and what a failing test shows of the cluster.

Needs KUBECONFIG of the one-node Kubernetes, the images in the cache and BUILD_DIR; tests/run.sh sees
to all of it. SANDBOX_E2E_KEEP=1 leaves controller and gateway installed, for the next run.
SANDBOX_E2E_OUTSIDE=1 runs both from BUILD_DIR as processes outside the cluster, sanitizer builds too.
"""
import json
import os
import pathlib
import stat
import sys
import time

import pytest

sys.path.insert(0, os.path.dirname(__file__))

from support import system as system_module  # noqa: E402
from support.audit import Audit  # noqa: E402
from support.kube import Kube  # noqa: E402
from support.mcp_raw import Raw, create  # noqa: E402
from support.outside import OutsideSystem  # noqa: E402
from support.space import BUSYBOX_IMAGE, Space, unique  # noqa: E402
from support.system import System  # noqa: E402

# The node's own tests take the machine's only node for themselves; see tests/run.sh.
collect_ignore = ["node"] if os.environ.get("KUBECONFIG") else []
# Wants a cluster without an installation of ours.
if not os.environ.get("SANDBOX_E2E_OWN_CLUSTER"):
    collect_ignore.append("own_cluster")
SHOWN = ["SandboxClaim", "Sandbox", "Pod", "SandboxWarmPool", "SandboxTemplate", "NetworkPolicy"]


def pytest_configure(config):
    config.addinivalue_line("markers", "long: only with tests/run.sh --long")


def pytest_collection_modifyitems(items):
    if os.environ.get("SANDBOX_TESTS_MODE") == "long":
        return
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker(pytest.mark.skip(reason="runs with tests/run.sh --long"))


@pytest.fixture(scope="session", autouse=True)
def kubectl_on_path(tmp_path_factory):
    """The node's own kubectl, in front of any other."""
    if not os.environ.get("KUBECONFIG"):
        return
    folder = tmp_path_factory.mktemp("bin")
    script = folder / "kubectl"
    node = pathlib.Path(__file__).parent / "node/node.sh"
    program = system_module.default_folder() / "bin/kubectl"
    script.write_text(f'#!/bin/sh\nexec "{program}" "$@"\n' if program.exists()
                      else f'#!/bin/sh\nexec "{node}" kubectl "$@"\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"


@pytest.fixture(scope="session", name="kube")
def kube_fixture():
    return Kube(os.environ["KUBECONFIG"])


@pytest.fixture(scope="session", name="system")
def system_fixture(kube):
    """Controller and gateway, installed and ready."""
    system = (OutsideSystem if os.environ.get("SANDBOX_E2E_OUTSIDE") else System)(kube)
    system.install()
    yield system
    system.stop()
    if not os.environ.get("SANDBOX_E2E_KEEP"):
        system.remove()


@pytest.fixture(scope="session", name="audit")
def audit_fixture():
    return Audit()


@pytest.fixture(scope="module", name="space")
def space_fixture(request, kube, system):
    """A namespace of the module's own; it is deleted at the end, without waiting for that."""
    assert system
    yield from make_space(kube, request.module.__name__.removeprefix("test_").replace("_", "-"))


def make_space(kube, what):
    name = unique(f"e2e-{what}"[:50])
    kube.create("Namespace", None, name)
    yield Space(kube, name)
    kube.delete("Namespace", None, name)


# ---- an agent at the gateway; modules that need something else have fixtures of the same names

@pytest.fixture(scope="module", name="warmpool")
def warmpool_fixture(space):
    """A warm pool of two with a shell and the usual tools in the image; its name."""
    space.template("box", image=BUSYBOX_IMAGE)
    space.pool("pool", "box", 2)
    space.pool_ready("pool")
    return "pool"


@pytest.fixture(scope="module", name="raw")
def raw_fixture(space, system):
    """Plain HTTP to the gateway's Service, as a service account that may use sandboxes here."""
    return Raw(system.address(), space.user())


@pytest.fixture(scope="module", name="box")
def box_fixture(raw, space, warmpool):
    """A sandbox that the tests of a module share."""
    return create(raw, space.name, warmpool, shutdown_after_seconds=1800)


# ---- what a failing test shows

@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.failed and report.when in ("setup", "call"):
        try:
            text = dump(item)
        except Exception as error:  # pylint: disable=broad-exception-caught
            text = f"the cluster could not be shown: {error!r}"
        report.sections.append(("the cluster", text))
    return report


def dump(item):
    """Objects, events and logs; whole in a file, the interesting part here."""
    fixtures = getattr(item, "funcargs", {})
    spaces = {v.name: v for v in fixtures.values() if isinstance(v, Space)}
    system = next((v for v in fixtures.values() if isinstance(v, System)), None)
    kube = next((v for v in fixtures.values() if isinstance(v, Kube)), None) or \
        next((s.kube for s in spaces.values()), None) or getattr(system, "kube", None)
    if not kube:
        return "no cluster involved"
    system = system or System(kube)
    folder = system_module.ROOT / "build/results/e2e-failures"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / (item.nodeid.replace("/", "_").replace("::", "--")[-150:] + ".txt")
    brief = [f"all of it is in {path}"]
    with open(path, "w", encoding="utf-8") as file:
        for space in spaces.values():
            brief += [f"==== {space.name}", kube.kubectl("-n", space.name, "get", "-o", "wide", ",".join(
                kind.lower() for kind in SHOWN), check=False).stdout]
            events = "\n".join(event_line(e) for e in sorted(space.list("Event"), key=event_time))
            brief += [events[-4000:]]
            for kind in SHOWN:
                for obj in space.list(kind):
                    obj["metadata"].pop("managedFields", None)
                    file.write(json.dumps(obj, indent=1) + "\n")
            file.write(events + "\n")
        for app in (system_module.CONTROLLER, system_module.GATEWAY):
            logs = system.logs(app, 2000)
            file.write(f"==== logs of {app}\n{logs}\n")
            brief += [f"==== the end of the logs of {app}", logs[-3000:]]
    return "\n".join(brief)


def event_time(event):
    return event.get("eventTime") or event.get("lastTimestamp") or event["metadata"]["creationTimestamp"]


def event_line(event):
    about = event["involvedObject"]
    return (f"{event_time(event)} {event['type']} {about.get('kind')}/{about.get('name')} {event['reason']}: "
            f"{event.get('message', '')}")


# ---- how long it all took

STARTED = time.monotonic()


def pytest_terminal_summary(terminalreporter):
    figures = getattr(pytest, "figures", [])
    if figures:
        terminalreporter.section("figures")
        for line in figures:
            terminalreporter.write_line(line)
    terminalreporter.write_line(f"end to end: {time.monotonic() - STARTED:.0f} s")


@pytest.fixture(scope="session", name="figure")
def figure_fixture():
    """figure(TEXT) prints a measured number at the end of the run."""
    pytest.figures = []
    return pytest.figures.append
