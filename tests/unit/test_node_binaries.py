# SPDX-License-Identifier: Apache-2.0
"""Where the one-node Kubernetes gets its programs: an official release with its sums, or PATH. Both against stand-ins:
a server of this test's own, and scripts that print versions."""
import hashlib
import http.server
import io
import os
import pathlib
import subprocess
import tarfile
import threading

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
KUBERNETES, ETCD = "v1.99.0", "v3.6.0"
PROGRAMS = ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl"]
ARCH = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]


def sum_of(data):
    return hashlib.sha256(data).hexdigest()


def etcd_archive():
    name = f"etcd-{ETCD}-linux-{ARCH}"
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for member, data in ((f"{name}/etcd", b"the etcd"), (f"{name}/README.md", b"read me")):
            info = tarfile.TarInfo(member)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return f"{name}.tar.gz", out.getvalue()


@pytest.fixture(name="files")
def files_fixture():
    """What the server has, by path."""
    files = {}
    for program in PROGRAMS:
        data = f"the {program}".encode()
        files[f"/k8s/{KUBERNETES}/bin/linux/{ARCH}/{program}"] = data
        files[f"/k8s/{KUBERNETES}/bin/linux/{ARCH}/{program}.sha256"] = sum_of(data).encode()
    name, data = etcd_archive()
    files[f"/etcd/{ETCD}/{name}"] = data
    files[f"/etcd/{ETCD}/SHA256SUMS"] = f"{'0' * 64}  another.tar.gz\n{sum_of(data)}  {name}\n".encode()
    return files


@pytest.fixture(name="url")
def url_fixture(files):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            data = files.get(self.path)
            self.send_response(200 if data is not None else 404)
            self.end_headers()
            self.wfile.write(data or b"")

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def get(tmp_path, source, url="", path=""):
    """Runs the shell functions; the folder that came of it, or None where the source said no."""
    script = f"""
        set -euo pipefail
        NODE_DIR={ROOT}/e2e/node KUBERNETES_VERSION={KUBERNETES} ETCD_VERSION={ETCD}
        . {ROOT}/e2e/lib/common.sh
        . {ROOT}/e2e/node/lib/binaries.sh
        apt_need() {{ :; }}
        RELEASE_URL={url}/k8s ETCD_URL={url}/etcd BINARIES={tmp_path}/bin
        binaries_from_{source} && echo "GOT=$BINARIES" || echo "GOT="
    """
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60, check=False,
                          env={"PATH": f"{path}{os.environ['PATH']}", "HOME": str(tmp_path),
                               "XDG_CACHE_HOME": str(tmp_path / "cache")})
    assert done.returncode == 0, done.stdout + done.stderr
    got = done.stdout.strip().rsplit("GOT=", 1)[1]
    return pathlib.Path(got) if got else None


def test_release(tmp_path, url):
    folder = get(tmp_path, "download", url)
    assert sorted(os.listdir(folder)) == sorted(PROGRAMS + ["etcd"])
    for program in PROGRAMS + ["etcd"]:
        assert (folder / program).read_text() == f"the {program}" and os.access(folder / program, os.X_OK)


@pytest.mark.parametrize("what", ["program", "archive", "sum-of-program", "sums-of-archive", "not-listed"])
def test_release_that_is_not_what_its_sums_say(tmp_path, url, files, what):
    name, _ = etcd_archive()
    path, data = {
        "program": (f"/k8s/{KUBERNETES}/bin/linux/{ARCH}/kubelet", b"another kubelet"),
        "archive": (f"/etcd/{ETCD}/{name}", b"no archive"),
        "sum-of-program": (f"/k8s/{KUBERNETES}/bin/linux/{ARCH}/kubelet.sha256", b"0" * 64),
        "sums-of-archive": (f"/etcd/{ETCD}/SHA256SUMS", f"{'0' * 64}  {name}\n".encode()),
        "not-listed": (f"/etcd/{ETCD}/SHA256SUMS", b""),
    }[what]
    files[path] = data
    assert get(tmp_path, "download", url) is None
    assert not (tmp_path / "bin").exists()


def test_release_that_is_out_of_reach(tmp_path, url, files):
    files.clear()
    assert get(tmp_path, "download", url) is None and not (tmp_path / "bin").exists()


def programs_on_path(folder, version):
    folder.mkdir()
    for program in PROGRAMS + ["etcd"]:
        says = {"etcd": "etcd Version: 3.6.0", "kubectl": f"Client Version: {version}"}.get(program, f"Kubernetes {version}")
        (folder / program).write_text(f"#!/bin/sh\necho '{says}'\n")
        (folder / program).chmod(0o755)
    return f"{folder}:"


def test_path(tmp_path):
    folder = get(tmp_path, "path", path=programs_on_path(tmp_path / "theirs", KUBERNETES))
    assert {p.name: os.readlink(p) for p in folder.iterdir()} == {
        program: str(tmp_path / "theirs" / program) for program in PROGRAMS + ["etcd"]}


def test_path_with_another_version(tmp_path):
    assert get(tmp_path, "path", path=programs_on_path(tmp_path / "theirs", "v1.30.1")) is None
