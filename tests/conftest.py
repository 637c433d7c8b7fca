# SPDX-License-Identifier: Apache-2.0
"""The order of the tests, and how many were left out."""

import pytest

LEFT_OUT = "left_out"


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
