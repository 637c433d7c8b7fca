# SPDX-License-Identifier: Apache-2.0
"""Many things at once."""

import concurrent.futures
import time

from support.kube import name_of
from support.space import blueprint, in_seconds, parse_time

CLAIMS = 200


def test_claims_that_expire_at_once(space, figure):
    """Their pods can go to no node: the node would be what is measured otherwise."""
    space.template("nowhere", blueprint(nodeSelector={"nowhere": "1"}))
    space.pool("nowhere", "nowhere", 0)
    end = in_seconds(30)
    lifecycle = {"shutdownTime": end, "shutdownPolicy": "Delete"}
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        names = [name_of(c) for c in pool.map(lambda i: space.claim(f"c{i:03}", "nowhere", lifecycle), range(CLAIMS))]

    def all_there(found):
        return set(names) <= set(map(name_of, found))

    space.kube.wait_all("Pod", space.name, f"{CLAIMS} pods", all_there, timeout=max(1, parse_time(end) - time.time()))
    assert time.time() < parse_time(end), "they were still being made when their time was over"
    space.kube.wait_empty("SandboxClaim", space.name, timeout=90)
    claims_gone = time.time() - parse_time(end)
    space.kube.wait_empty("Sandbox", space.name, timeout=90)
    space.kube.wait_empty("Pod", space.name, timeout=90)
    assert claims_gone >= 0, "some were gone before their time"
    figure(f"{CLAIMS} claims that expire at once: claims gone {claims_gone:.1f} s after the instant, "
           f"sandboxes and pods {time.time() - parse_time(end):.1f} s")
