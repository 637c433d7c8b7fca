# SPDX-License-Identifier: Apache-2.0
import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(__file__))

from fakeapi import FakeApi  # noqa: E402
from probe import Probe  # noqa: E402


@pytest.fixture
def api():
    with FakeApi() as server:
        yield server


@pytest.fixture
def probe(api, tmp_path):
    """Starts probes against api; all are stopped, and none may have died or leaked."""
    started = []

    def start(*args, **kwargs):
        kwargs.setdefault("kubeconfig", api.write_kubeconfig(tmp_path / "kubeconfig"))
        started.append(Probe(*args, **kwargs))
        return started[-1]

    yield start
    for p in started:
        p.stop()
