# SPDX-License-Identifier: Apache-2.0
"""The Python SDK `k8s-agent-sandbox`, which was written for another controller, against ours."""

import pytest
from k8s_agent_sandbox.exceptions import (SandboxClaimFailedError, SandboxNotFoundError,
                                          SandboxWarmPoolNotFoundError)
from k8s_agent_sandbox.models import SandboxInClusterConnectionConfig
from k8s_agent_sandbox.sandbox_client import SandboxClient

from support.kube import condition
from support.space import parse_time


@pytest.fixture(name="client", scope="module")
def client_fixture(space):
    space.template("box")
    space.pool("pool", "box", 2)
    space.pool("cold", "box", 0)
    space.pool_ready("pool")
    return SandboxClient(connection_config=SandboxInClusterConnectionConfig(), api_client=space.kube.api_client)


@pytest.mark.parametrize("pool", ["pool", "cold"])
def test_create_find_delete(client, space, pool):
    made = client.create_sandbox(pool, namespace=space.name, sandbox_ready_timeout=60, shutdown_after_seconds=300,
                                 labels={"team": "red"}, pod_labels={"sandbox.users.io/team": "red"})
    claim = space.get("SandboxClaim", made.claim_name)
    assert claim["metadata"]["labels"] == {"team": "red", "agents.x-k8s.io/created-by": "python-client"}
    assert made.sandbox_id == claim["status"]["sandbox"]["name"]
    assert made.status() == ("SandboxReady", condition(claim)["message"])
    pod = space.wait("Pod", made.get_pod_name(), "labelled",
                     lambda p: p["metadata"]["labels"].get("sandbox.users.io/team") == "red")
    assert made.get_pod_ip() == pod["status"]["podIP"]
    assert made.get_sandbox_name_hash() == pod["metadata"]["labels"]["agents.x-k8s.io/sandbox-name-hash"]
    assert 280 < parse_time(claim["spec"]["lifecycle"]["shutdownTime"]) - parse_time(
        claim["metadata"]["creationTimestamp"]) <= 300
    # Somebody else finds it by its name.
    other = SandboxClient(connection_config=SandboxInClusterConnectionConfig(), api_client=space.kube.api_client)
    found = other.get_sandbox(made.claim_name, namespace=space.name)
    assert found.sandbox_id == made.sandbox_id
    assert made.claim_name in other.list_all_sandboxes(space.name)
    assert other.list_all_sandboxes(space.name, label_selector="team=blue") == []
    name, box = made.claim_name, made.sandbox_id
    client.delete_sandbox(name, namespace=space.name)
    space.wait_gone("SandboxClaim", name)
    space.wait_gone("Sandbox", box)
    space.wait_gone("Pod", box)
    assert name not in client.list_all_sandboxes(space.name)


def test_what_it_cannot_have(client, space):
    """The reasons on the claim are those that the SDK knows."""
    with pytest.raises(SandboxWarmPoolNotFoundError):
        client.create_sandbox("no-such-pool", namespace=space.name, sandbox_ready_timeout=20)
    with pytest.raises(SandboxClaimFailedError, match="InvalidMetadata"):
        client.create_sandbox("pool", namespace=space.name, sandbox_ready_timeout=20, pod_labels={"example.com/a": "b"})
    with pytest.raises(SandboxClaimFailedError, match="EnvVarsInjectionRejected"):
        client.create_sandbox("pool", namespace=space.name, sandbox_ready_timeout=20, env={"A": "1"})
    # A failed creation leaves nothing.
    space.kube.wait_empty("SandboxClaim", space.name)
    with pytest.raises(SandboxNotFoundError):
        client.get_sandbox("no-such-claim", namespace=space.name, resolve_timeout=2)


def test_a_context_cleans_up(space, client):
    assert client
    with SandboxClient(connection_config=SandboxInClusterConnectionConfig(),
                       api_client=space.kube.api_client) as within:
        made = within.create_sandbox("pool", namespace=space.name, sandbox_ready_timeout=60)
        name, box = made.claim_name, made.sandbox_id
    space.wait_gone("SandboxClaim", name)
    space.wait_gone("Sandbox", box)
