# SPDX-License-Identifier: Apache-2.0
"""Controller and gateway on the cluster: installed with the same shell functions as the demo's."""

import hashlib
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAMESPACE = "agent-sandbox-system"
CONTROLLER = "agent-sandbox-controller"
GATEWAY = "sandbox-gateway"
PORT = 8080


def cache():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.environ.get("HOME", "/root"), ".cache")
    return pathlib.Path(base, "k8s-agent-sandbox")


def build_dir():
    return pathlib.Path(os.environ.get("BUILD_DIR", ROOT / "build/release"))


def node_sh(*arguments, timeout=300):
    done = subprocess.run([ROOT / "e2e/node/node.sh", *arguments], capture_output=True, text=True, timeout=timeout,
                          check=False)
    assert done.returncode == 0, f"node.sh {' '.join(map(str, arguments))}: {done.stdout}{done.stderr}"
    return done.stdout


def default_folder():
    """Where the node keeps everything; it goes when the node does."""
    return pathlib.Path(os.environ.get("K8S_AGENT_SANDBOX_NODE_DIR", "/var/lib/k8s-agent-sandbox-node"))


def images():
    return sorted((cache() / "images").glob("*.tar"))


def load_images():
    """Into the node, unless it has just these already."""
    stamp = default_folder() / "e2e-images"
    wanted = sha256_of(images())
    if not stamp.exists() or stamp.read_text() != wanted:
        node_sh("load", *images())
        stamp.write_text(wanted)


class System:
    """The installation that all suites share."""

    def __init__(self, kube):
        self.kube = kube
        self.state = ROOT / "build/e2e/state"

    def shell(self, script, timeout=600):
        """Runs functions of e2e/lib/install.sh."""
        whole = sha256_of(images())
        prelude = f"""set -euo pipefail
cd {ROOT}
. e2e/lib/common.sh
. e2e/lib/install.sh
KUBECTL=(kubectl --kubeconfig {self.kube.kubeconfig}) STATE={self.state}
IMAGE_PREFIX= IMAGE_TAG=dev IMAGE_HASH={whole}
"""
        done = subprocess.run(["bash", "-c", prelude + script], capture_output=True, text=True, timeout=timeout,
                              check=False)
        assert done.returncode == 0, f"{script}: {done.stdout[-4000:]}{done.stderr[-4000:]}"

    def install(self):
        self.state.mkdir(parents=True, exist_ok=True)
        load_images()
        self.shell('install_overlays "$PWD"; install_system; install_wait')

    def stop(self):
        """Before the end; pods go on."""

    def remove(self):
        self.shell("install_remove")

    def address(self):
        """Where the gateway's Service answers; this machine is the node, so its address works here."""
        service = self.kube.get("Service", NAMESPACE, GATEWAY)
        return f"http://{service['spec']['clusterIP']}:{PORT}/mcp"

    def pods(self, app):
        label = {CONTROLLER: f"app={CONTROLLER}", GATEWAY: f"app.kubernetes.io/name={GATEWAY}"}[app]
        return [p for p in self.kube.list("Pod", NAMESPACE, label) if not p["metadata"].get("deletionTimestamp")]

    def addresses(self):
        """{pod name: the endpoint of that one gateway replica}"""
        return {p["metadata"]["name"]: f"http://{p['status']['podIP']}:{PORT}/mcp" for p in self.pods(GATEWAY)}

    def scale(self, app, replicas):
        """Returns once exactly that many run and are ready, and none of the others is left."""
        self.kube.patch("Deployment", NAMESPACE, app, {"spec": {"replicas": replicas}}, sub="scale")
        label = {CONTROLLER: f"app={CONTROLLER}", GATEWAY: f"app.kubernetes.io/name={GATEWAY}"}[app]

        def settled(pods):
            ready = [p for p in pods if any(c["type"] == "Ready" and c["status"] == "True"
                                            for c in p.get("status", {}).get("conditions") or [])]
            return len(pods) == len(ready) == replicas

        self.kube.wait_all("Pod", NAMESPACE, f"{replicas} of {app}", settled, 90, labels=label)

    def kill_all(self, app):
        """Every pod of it, without notice; returns when the new ones are ready."""
        pods = [p["metadata"]["name"] for p in self.pods(app)]
        for pod in pods:
            self.kube.request("DELETE", self.kube.path("Pod", NAMESPACE, pod), {"gracePeriodSeconds": 0})
        self.kube.wait_gone("Pod", NAMESPACE, *pods)
        self.scale(app, len(pods))

    def logs(self, app, lines=200):
        return "\n".join(f"---- {name}\n" + self.kube.kubectl("-n", NAMESPACE, "logs", name, f"--tail={lines}",
                                                             check=False).stdout
                         for name in (p["metadata"]["name"] for p in self.pods(app)))

    def restarts(self):
        return {p["metadata"]["name"]: sum(c["restartCount"] for c in p["status"].get("containerStatuses") or [])
                for app in (CONTROLLER, GATEWAY) for p in self.pods(app)}


def sha256_of(paths):
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
