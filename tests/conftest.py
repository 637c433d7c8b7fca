# SPDX-License-Identifier: Apache-2.0
"""What all tests begin with, their order, and how many were left out."""

import os
import pathlib
import shutil
import signal

import pytest

LEFT_OUT = "left_out"

# Behind an & in a script both are ignored, which every child would inherit; in a container they are not.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)

# The one-node cluster's, where the machine has none of its own.
if not shutil.which("kubectl"):
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    for program in cache.glob("k8s-agent-sandbox-node/bin-*/kubectl"):
        os.environ["PATH"] += f"{os.pathsep}{program.parent}"


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.get_closest_marker("long_wait") is None)


def pytest_deselected(items):
    config = items[0].config
    setattr(config, LEFT_OUT, getattr(config, LEFT_OUT, 0) + len(items))


def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):  # a worker of xdist tells the one who prints
        session.config.workeroutput[LEFT_OUT] = getattr(session.config, LEFT_OUT, 0)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Every worker leaves out the same tests."""
    setattr(node.config, LEFT_OUT, getattr(node, "workeroutput", {}).get(LEFT_OUT, 0))


def pytest_terminal_summary(terminalreporter, config):
    if count := getattr(config, LEFT_OUT, 0):
        terminalreporter.write_line(f"left out: {count} tests")
