# SPDX-License-Identifier: Apache-2.0
"""The demo on somebody's own cluster, with images from a registry: it works there and takes away only what
it made. The cluster is the one-node Kubernetes without an installation of ours, the registry Debian's."""
import json
import os
import pathlib
import socket
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
NODE_SH = ROOT / "e2e/node/node.sh"
PORT = 5000
KINDS = ("crd,clusterrole,clusterrolebinding,namespace,deployment,service,serviceaccount,configmap,role,rolebinding,"
         "networkpolicy,poddisruptionbudget,pod")
# What a cluster's own controllers put into each namespace, when they come to it.
CLUSTERS_OWN = ("/default", "/kube-root-ca.crt")


def run(*command, timeout=120, **options):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=timeout, check=False,
                          **options)


@pytest.fixture(scope="module", name="kubeconfig")
def kubeconfig_fixture():
    return os.environ["KUBECONFIG"]


@pytest.fixture(name="kubectl")
def kubectl_fixture(kubeconfig):
    def call(*arguments, text=None):
        done = run(NODE_SH, "kubectl", "--kubeconfig", kubeconfig, *arguments, input=text)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return call


@pytest.fixture(name="registry")
def registry_fixture(kubectl, tmp_path):
    """Plain HTTP on the node's address."""
    nodes = json.loads(kubectl("get", "nodes", "-o", "json"))["items"]
    host = next(a["address"] for a in nodes[0]["status"]["addresses"] if a["type"] == "InternalIP")
    config = tmp_path / "registry.yml"
    config.write_text(json.dumps({"version": 0.1, "storage": {"filesystem": {"rootdirectory": str(tmp_path / "data")}},
                                  "http": {"addr": f"{host}:{PORT}"}}))
    with open(tmp_path / "registry.log", "w", encoding="utf-8") as log:
        with subprocess.Popen(["docker-registry", "serve", config], stdout=log, stderr=log) as process:
            end = time.monotonic() + 20
            while True:
                try:
                    socket.create_connection((host, PORT), 1).close()
                    break
                except OSError:
                    assert process.poll() is None and time.monotonic() < end, (tmp_path / "registry.log").read_text()
                    time.sleep(0.1)
            assert run(NODE_SH, "registry", f"{host}:{PORT}").returncode == 0
            yield f"{host}:{PORT}/demo"
            process.terminate()


def names(kubectl):
    items = json.loads(kubectl("get", KINDS, "-A", "-o", "json"))["items"]
    found = {f"{o['kind']}/{o['metadata'].get('namespace', '')}/{o['metadata']['name']}" for o in items}
    return {name for name in found if not name.endswith(CLUSTERS_OWN)}


def test_demo_works_and_removes_only_its_own(kubectl, kubeconfig, registry):
    # Somebody's own things in the places that the demo uses, one under a name that the demo has as well.
    kubectl("apply", "-f", "-", text=json.dumps({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "agent-sandbox-system"}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "precious", "namespace": "agent-sandbox-system"}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "example-agent", "namespace": "default"}}]}))
    before = names(kubectl)
    assert "ServiceAccount/default/example-agent" in before
    try:
        done = run(ROOT / "e2e/demo.sh", "--once", "--kubeconfig", kubeconfig, "--image-registry", registry, timeout=900)
        assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]
        assert "The demo did what it should." in done.stdout
        assert names(kubectl) == before
    finally:
        kubectl("delete", "--ignore-not-found", "namespace/agent-sandbox-system")
        kubectl("-n", "default", "delete", "--ignore-not-found", "serviceaccount/example-agent")


def test_needs_a_registry(kubeconfig):
    done = run(ROOT / "e2e/demo.sh", "--kubeconfig", kubeconfig)
    assert done.returncode == 2
    assert "--image-registry" in done.stderr
