# SPDX-License-Identifier: Apache-2.0
"""Controller and gateway as processes of the tests, outside the cluster."""

import base64
import pathlib
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from urllib.parse import urlsplit

import yaml

from .system import build_dir

PROGRAMS = {"controller": "sandbox-controller", "gateway": "sandbox-gateway"}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def account_kubeconfig(kube, path, namespace, account, server=None, ca=None):
    """A kubeconfig of a service account, perhaps by way of a proxy; its path."""
    cluster = {"server": server or kube.host}
    if ca:
        cluster["certificate-authority"] = str(ca)
    else:
        cluster["certificate-authority-data"] = base64.b64encode(cluster_ca(kube).encode()).decode()
        if server:
            # Bytes are passed on as they are: the certificate is the API server's, for its own address.
            cluster["tls-server-name"] = urlsplit(kube.host).hostname
    config = {"apiVersion": "v1", "kind": "Config", "current-context": "e2e",
              "clusters": [{"name": "e2e", "cluster": cluster}],
              "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": "e2e"}}],
              "users": [{"name": "e2e", "user": {"token": kube.token(namespace, account, seconds=7200)}}]}
    pathlib.Path(path).write_text(yaml.safe_dump(config), encoding="utf-8")
    return path


def cluster_ca(kube):
    """The certificate authority of the cluster, as PEM."""
    with open(kube.kubeconfig, encoding="utf-8") as file:
        given = yaml.safe_load(file)["clusters"][0]["cluster"]
    if "certificate-authority-data" in given:
        return base64.b64decode(given["certificate-authority-data"]).decode()
    return pathlib.Path(given["certificate-authority"]).read_text(encoding="utf-8")


class Daemon:
    """Starts at once; use as a context manager, or stop() it."""

    program = None

    def __init__(self, kubeconfig, folder, *arguments, start=True):
        self.obs_port = free_port()
        self.arguments = [build_dir() / self.find(), f"--kubeconfig={kubeconfig}",
                          f"--obs-address=127.0.0.1:{self.obs_port}", *arguments]
        self.path = pathlib.Path(folder, f"{self.program}-{self.obs_port}.log")
        self.process = None
        self.starts = 0
        self.lock = threading.Lock()
        if start:
            self.start()

    def find(self):
        name = PROGRAMS[self.program]
        for where in (f"bin/{name}", f"{self.program}/{name}", name):
            if (build_dir() / where).exists():
                return where
        raise AssertionError(f"{build_dir()} has no {name}")

    def spawn(self):
        with self.lock, open(self.path, "ab") as log:
            self.process = subprocess.Popen(list(map(str, self.arguments)), stdout=log, stderr=log,
                                            stdin=subprocess.DEVNULL)
            self.starts += 1

    def start(self, timeout=30):
        self.spawn()
        self.wait_ready(timeout)
        return self

    def probe(self, path="/readyz", timeout=2):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(f"http://127.0.0.1:{self.obs_port}{path}", timeout=timeout) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError as error:
            return 0, str(error)

    def wait_ready(self, timeout=30):
        end = time.monotonic() + timeout
        pause = threading.Event()
        while (state := self.probe())[0] != 200:
            assert self.alive(), f"{self.program} ended: {self.log()[-3000:]}"
            assert time.monotonic() < end, f"{self.program} is not ready: {state}; {self.log()[-3000:]}"
            pause.wait(0.02)

    def metrics(self):
        return self.probe("/metrics")[1]

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def kill(self):
        """SIGKILL; returns when it is gone."""
        with self.lock:
            self.process.kill()
            self.process.wait()

    def stop(self, timeout=75):
        if self.alive():
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout)
            except subprocess.TimeoutExpired:
                self.kill()
                raise

    def run_to_end(self, timeout):
        with open(self.path, "ab") as log:
            return subprocess.run(list(map(str, self.arguments)), stdout=log, stderr=log, timeout=timeout, check=False)

    def log(self):
        return self.path.read_text(errors="replace") if self.path.exists() else ""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


class Controller(Daemon):
    program = "controller"


class Gateway(Daemon):
    program = "gateway"

    def __init__(self, kubeconfig, folder, *arguments, address="127.0.0.1", start=True):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/mcp"
        super().__init__(kubeconfig, folder, f"--listen={address}:{self.port}", *arguments, start=start)
