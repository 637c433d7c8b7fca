# SPDX-License-Identifier: Apache-2.0
"""What the built image archives hold: names, sizes, users, no more files than needed, and no needless rebuild.

Builds into a folder of its own, from the cache where it can. Needs root, the standard library and pytest.
"""

import hashlib
import io
import json
import re
import subprocess
import tarfile
from pathlib import Path

import pytest

BUILD_SH = Path(__file__).with_name("build.sh")
PROGRAMS = ["sandbox-controller", "sandbox-gateway"]
IMAGES = [*PROGRAMS, "sandbox-python", "busybox", "pause"]
LARGEST_PROGRAM_IMAGE = 30 * 1000 * 1000


def build(folder, *what):
    done = subprocess.run([BUILD_SH, *what, "--out", folder], capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


class Image:
    def __init__(self, path):
        self.archive = tarfile.open(path)
        self.manifest = json.load(self.archive.extractfile("manifest.json"))[0]
        self.config = json.load(self.archive.extractfile(self.manifest["Config"]))
        self.layers = [self.archive.extractfile(name).read() for name in self.manifest["Layers"]]
        self.members = {}
        self.files = {}
        for layer in self.layers:
            content = tarfile.open(fileobj=io.BytesIO(layer))
            for member in content.getmembers():
                name = "/" + member.name.removeprefix("./").strip("/")
                self.members[name] = member
                if member.isreg():
                    self.files[name] = content.extractfile(member).read()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    build(folder)
    return folder


@pytest.fixture(scope="module")
def images(folder):
    return {name: Image(folder / f"{name}.tar") for name in IMAGES}


@pytest.mark.parametrize("name", IMAGES)
def test_archive_is_whole(images, name):
    image = images[name]
    assert f"docker.io/k8s-agent-sandbox/{name}:dev" in image.manifest["RepoTags"] or \
        f"k8s-agent-sandbox/{name}:dev" in image.manifest["RepoTags"]
    sums = ["sha256:" + hashlib.sha256(layer).hexdigest() for layer in image.layers]
    assert image.config["rootfs"]["diff_ids"] == sums


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_image_is_small_and_bare(images, folder, name):
    image = images[name]
    assert (folder / f"{name}.tar").stat().st_size < LARGEST_PROGRAM_IMAGE
    assert image.config["config"]["User"] == "65532:65532"
    assert image.config["config"]["Entrypoint"] == [f"/usr/bin/{name}"]
    programs = {path for path, member in image.members.items()
                if member.isreg() and member.mode & 0o111 and not re.search(r"\.so[.0-9]*$", path)}
    assert programs == {f"/usr/bin/{name}"}
    others = {path for path in image.files if not re.search(r"\.so[.0-9]*$", path)}
    assert others == {f"/usr/bin/{name}", "/etc/passwd", "/etc/group", "/etc/nsswitch.conf"}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_image_has_exactly_the_libraries_it_needs(images, name, tmp_path):
    image = images[name]
    present = {path.rsplit("/", 1)[1]: path for path in image.files if re.search(r"\.so[.0-9]*$", path)}
    needed, queue = set(), [f"/usr/bin/{name}"]
    while queue:
        binary = tmp_path / "binary"
        binary.write_bytes(image.files[queue.pop()])
        dynamic = subprocess.run(["readelf", "-dlW", binary], check=True, capture_output=True, text=True).stdout
        found = set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic))
        found |= {path.rsplit("/", 1)[1] for path in re.findall(r"interpreter: (\S+)\]", dynamic)}
        queue += [present[library] for library in found - needed if library in present]
        needed |= found
    assert needed == set(present)


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_is_hardened(images, name, tmp_path):
    binary = tmp_path / "binary"
    binary.write_bytes(images[name].files[f"/usr/bin/{name}"])
    text = subprocess.run(["readelf", "-hldW", binary], check=True, capture_output=True, text=True).stdout
    assert "DYN (Position-Independent Executable file)" in text
    assert "GNU_RELRO" in text and "NOW" in text
    assert re.search(r"GNU_STACK.* RW ", text)
    assert "(RPATH)" not in text and "(RUNPATH)" not in text


def test_pause_image_has_no_shell(images):
    assert list(images["pause"].files) == ["/pause"]


def test_sandbox_images_have_what_tools_use(images):
    busybox = images["busybox"].members
    assert {f"/bin/{tool}" for tool in ("sh", "cat", "head", "tail", "stat", "mkdir", "mv", "rm", "wc")} <= set(busybox)
    python = images["sandbox-python"]
    assert {"/usr/bin/python", "/usr/bin/python3", "/usr/bin/pip"} <= set(python.members)
    assert not [path for path in python.members if path.endswith("EXTERNALLY-MANAGED")]
    assert python.config["config"]["User"] == "1000:1000"
    assert (python.members["/workspace"].uid, python.members["/workspace"].gid) == (1000, 1000)


def test_second_build_writes_nothing(folder, images):
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    said = build(folder, "all")
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    assert said.count("is up to date") == len(IMAGES)


def test_unknown_image_is_refused(tmp_path):
    done = subprocess.run([BUILD_SH, "nonsense", "--out", tmp_path], capture_output=True, text=True)
    assert done.returncode == 1 and "no image is called nonsense" in done.stderr
