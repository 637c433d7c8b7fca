# SPDX-License-Identifier: Apache-2.0
"""Runs the scripts of gateway/transport over pipes, as a container runtime would, with each shell
and tool set of this machine. Speaks the client's side of the protocol."""
import os
import pathlib
import secrets
import shutil
import subprocess
import tempfile
import threading
import time

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "gateway/transport/scripts"
HELLO = b"sandbox-exec 1\n"
KEPT_MAX = 32 << 20  # of a stream; of a flood its beginning and its end are kept
KEPT_HEAD = 1 << 20
KEPT_END = 4096


def minify(text):
    """What transport_script() does: no comments, no indentation."""
    lines = (line.strip() for line in text.splitlines())
    return "".join(line + "\n" for line in lines if line and not line.startswith("#"))


def script(name):
    return minify((SCRIPTS / f"{name}.sh").read_text(encoding="utf-8"))


def encode(value):
    """A parameter line: bytes that are not printable ASCII, and backslashes, as \\0ooo."""
    value = value.encode() if isinstance(value, str) else value
    return b"".join(bytes([b]) if 32 <= b < 127 and b != 92 else b"\\0%03o" % b for b in value)


class Flavour:
    """A shell as `sh`, with its tools, in a PATH of its own."""

    def __init__(self, name, shell, busybox):
        self.name = name
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix=f"flavour-{name}-"))
        self.dir.chmod(0o755)
        if busybox:
            for applet in subprocess.check_output([shell, "--list"], text=True).split():
                (self.dir / applet).symlink_to(shell)
            self.path = str(self.dir)
        else:
            (self.dir / "sh").symlink_to(shell)
            self.path = f"{self.dir}:/usr/sbin:/usr/bin:/sbin:/bin"

    def without(self, *tools):
        """A copy whose PATH has none of the tools named."""
        copy = object.__new__(Flavour)
        copy.name = f"{self.name}-without-{'-'.join(tools)}"
        copy.dir = pathlib.Path(tempfile.mkdtemp(prefix=f"flavour-{copy.name}-"))
        for folder in dict.fromkeys(map(os.path.realpath, self.path.split(":"))):
            for entry in os.scandir(folder) if os.path.isdir(folder) else ():
                target = copy.dir / entry.name
                if entry.name not in tools and not target.is_symlink():
                    target.symlink_to(os.path.join(folder, entry.name))
        copy.path = str(copy.dir)
        return copy

    def remove(self):
        shutil.rmtree(self.dir)


def flavours():
    found = [("dash", shutil.which("dash"), False), ("bash", shutil.which("bash"), False),
             ("busybox", shutil.which("busybox"), True)]
    return [Flavour(*f) for f in found if f[1]]


def _of_process(pid, what):
    """A file of /proc/PID; empty where the process has ended. One that is just becoming another
    program has neither environment nor command line for a moment: it is looked at again."""
    for _ in range(50):
        try:
            with open(f"/proc/{pid}/{what}", "rb", buffering=0) as file:
                if content := file.read():
                    return content
            state, parent = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[:2]
        except OSError:
            return b""
        if state in "ZX" or parent == "2":  # or it is the kernel's own
            return b""
        time.sleep(0.001)
    return b""


class Job:
    """One exec: the client's side. `result` is the last line of stdout, split."""

    def __init__(self, flavour, name, *params, data=b"", keep_stdin=True, cwd=None, env=None,
                 user=None):
        self.nonce = secrets.token_hex(16)
        self.id = secrets.token_hex(8)
        self.mark = secrets.token_hex(8)
        self.strangers = set(os.listdir("/proc"))  # processes that were there before
        self.all_gone = False
        environment = {"PATH": flavour.path, "HARNESS_MARK": self.mark, **(env or {})}
        self.process = subprocess.Popen(
            ["sh", "-c", script("bootstrap")], executable=os.path.join(flavour.dir, "sh"),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd,
            env=environment, start_new_session=True, user=user, group=user,
            extra_groups=[] if user else None)
        self.streams = [bytearray(), bytearray()]
        self.got_trailer = [threading.Event(), threading.Event()]
        self.closing = threading.Event()
        self.started = time.monotonic()
        hello = self.process.stdout.read(len(HELLO))
        assert hello == HELLO, hello
        self.readers = [threading.Thread(target=self._read, args=(i, stream), daemon=True)
                        for i, stream in enumerate((self.process.stdout, self.process.stderr))]
        for reader in self.readers:
            reader.start()
        lines = [self.nonce, self.id, *params]
        head = (script("common") + script(name) + ".\n").encode()
        head += b"".join(encode(line) + b"\n" for line in lines)
        self._write(head + data)
        if not keep_stdin:
            self.process.stdin.close()

    def _write(self, data):
        try:
            self.process.stdin.write(data)
            self.process.stdin.flush()
        except BrokenPipeError:
            pass

    def control(self, line):
        self._write(line.encode() + b"\n")

    def _read(self, index, stream):
        mark = self.nonce.encode()
        while chunk := os.read(stream.fileno(), 65536):
            start = max(0, len(self.streams[index]) - len(mark) - 256)
            self.streams[index] += chunk
            at = self.streams[index].find(mark, start)
            if at >= 0 and b"\n" in self.streams[index][at:]:
                self.got_trailer[index].set()
                if self.closing.is_set():
                    return
            elif len(self.streams[index]) > KEPT_MAX:
                del self.streams[index][KEPT_HEAD:-KEPT_END]
                time.sleep(0.2)  # a reader that a flood outruns, or it would be a gigabyte a second

    def wait(self, seconds=30):
        """Waits for both trailers, as the client does; returns self."""
        end = time.monotonic() + seconds
        for event in self.got_trailer:
            if not event.wait(max(0, end - time.monotonic())):
                raise TimeoutError(f"no trailer in {seconds} s: {self.streams!r:.2000}")
        self.took = time.monotonic() - self.started
        self.out, self.result = self._split(0)
        self.err, _ = self._split(1)
        return self

    def _split(self, index):
        stream = self.streams[index]
        at = stream.index(self.nonce.encode())
        trailer, _, _ = stream[at:].partition(b"\n")
        return bytes(stream[:at]), trailer.decode().split()[1:]

    def left_over(self):
        """Processes of this job that still live, as {pid: command line}."""
        found, mark = {}, f"HARNESS_MARK={self.mark}\0".encode()
        for pid in filter(str.isdigit, set(os.listdir("/proc")) - self.strangers):
            if mark in _of_process(pid, "environ") + b"\0" and (command := _of_process(pid, "cmdline")):
                found[int(pid)] = command.replace(b"\0", b" ").decode(errors="replace").strip()
        return found

    def end(self, seconds=10):
        """Waits until the script itself is gone; returns what is still there of the job."""
        self.process.wait(seconds)
        end = time.monotonic() + 2
        while (left := self.left_over()) and time.monotonic() < end:
            time.sleep(0.01)
        self.all_gone = not left
        return left

    def close(self):
        self.closing.set()
        for pid in () if self.all_gone else self.left_over():
            try:
                os.kill(pid, 9)
            except ProcessLookupError:
                pass
        self.process.wait(10)
        for reader in self.readers:
            reader.join(10)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            try:
                stream.close()
            except (BrokenPipeError, ValueError):
                pass

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()
