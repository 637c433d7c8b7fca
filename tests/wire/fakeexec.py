# SPDX-License-Identifier: Apache-2.0
"""pods/exec of the scripted API server: a container is a folder and a shell of this machine.

    fake = FakeExec(cwd=tmp_path)
    api.rule(is_exec, fake)

Faults are methods that a subclass overrides, or fields set before the request. Everything that the
client sees goes through Stream.send_frame().
"""

import base64
import contextlib
import hashlib
import json
import os
import signal
import socket
import subprocess
import threading
import time
from urllib.parse import parse_qs, urlsplit

from fakeapi import DONE, Closed

MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
STDIN, STDOUT, STDERR, ERROR, CLOSE = 0, 1, 2, 3, 255
MARK = str(os.getpid())  # of this run, in the environment of what it starts
BINARY, CLOSING, PING, PONG = 2, 8, 9, 10


def is_exec(request):
    return request.subresource == "exec"


def failure(message, reason="InternalError", causes=()):
    return {"metadata": {}, "status": "Failure", "message": message, "reason": reason,
            "details": {"causes": list(causes)}, "code": 500}


class Stream:
    """One WebSocket, the server's side."""

    def __init__(self, wire, request, subprotocol):
        self.sock, self.request = wire.sock, request
        self.lock = threading.RLock()
        self.counts = 1  # among those that run
        self.began = time.monotonic()
        accept = base64.b64encode(hashlib.sha1(
            request.headers["sec-websocket-key"].encode() + MAGIC).digest()).decode()
        head = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Accept": accept}
        if subprotocol:
            head["Sec-WebSocket-Protocol"] = subprotocol
        wire.head(101, head)

    def send_frame(self, payload, opcode=BINARY, final=True):
        n = len(payload)
        head = bytes([(0x80 if final else 0) | opcode])
        head += bytes([n]) if n < 126 else b"\x7e" + n.to_bytes(2, "big") if n < 65536 \
            else b"\x7f" + n.to_bytes(8, "big")
        with self.lock:
            self.sock.sendall(head + payload)

    def send_pieces(self, payload, piece):
        """One message in continuation frames."""
        pieces = [payload[i:i + piece] for i in range(0, len(payload), piece)] or [b""]
        with self.lock:  # pieces of different messages must not mix
            for i, part in enumerate(pieces):
                self.send_frame(part, BINARY if i == 0 else 0, i == len(pieces) - 1)

    def close(self, code=1000):
        self.send_frame(code.to_bytes(2, "big"), CLOSING)

    def _read(self, n):
        data = b""
        while len(data) < n:
            part = self.sock.recv(n - len(data))
            if not part:
                raise Closed
            data += part
        return data

    def read_frame(self):
        """(opcode, payload)"""
        first, second = self._read(2)
        n = second & 0x7f
        if n >= 126:
            n = int.from_bytes(self._read(2 if n == 126 else 8), "big")
        mask = self._read(4)
        payload = self._read(n)
        key = int.from_bytes((mask * (n // 4 + 1))[:n], "big")
        return first & 15, (int.from_bytes(payload, "big") ^ key).to_bytes(n, "big")

    def reset(self):
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)


class FakeExec:
    subprotocol = "v5.channel.k8s.io"
    piece = None     # frames of one message are at most this long
    no_close = False  # the stream stays open after the Status
    path = os.environ["PATH"]

    def __init__(self, cwd, **fields):
        self.cwd = cwd
        self.lock = threading.Lock()
        self.running, self.peak, self.streams = 0, 0, []
        for name, value in fields.items():
            setattr(self, name, value)

    # --- what tests override ---

    def start_failure(self, _request):
        """A Status instead of a process."""
        return None

    def stdin(self, data):
        return data

    def output(self, stream, channel, data):
        """Sends output; may spoil it."""
        message = bytes([channel]) + data
        if self.piece:
            stream.send_pieces(message, self.piece)
        else:
            stream.send_frame(message)

    def ended(self, stream, code):
        """The process is gone and all output is sent."""
        status = {"metadata": {}, "status": "Success"} if code == 0 else failure(
            f"command terminated with exit code {code}", "NonZeroExitCode",
            [{"reason": "ExitCode", "message": str(code)}])
        stream.send_frame(bytes([ERROR]) + json.dumps(status).encode())
        if not self.no_close:
            stream.close()

    # --- a request ---

    def __call__(self, wire, request):
        stream = Stream(wire, request, self.subprotocol)
        command = parse_qs(urlsplit(request.target).query)["command"]
        with self.lock:
            self.streams.append(stream)
            self.running += 1
            self.peak = max(self.peak, self.running)
        try:
            self._run(stream, request, command)
        except (OSError, Closed):
            pass
        finally:
            self._stopped(stream)
        wire.close()
        return DONE

    def _stopped(self, stream):
        """Before the client can know of the end: it may start the next one at once."""
        with self.lock:
            self.running -= stream.counts
            stream.counts = 0

    def _run(self, stream, request, command):
        problem = self.start_failure(request)
        if problem:
            stream.send_frame(bytes([ERROR]) + json.dumps(problem).encode())
            stream.close()
            stream.read_frame()
            return
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            cwd=self.cwd, env={"PATH": self.path, "FAKE_EXEC": MARK}, start_new_session=True)
        for channel in (STDOUT, STDERR):
            stream.send_frame(bytes([channel]))
        pumps = [threading.Thread(target=self._pump, args=(stream, channel, pipe), daemon=True)
                 for channel, pipe in ((STDOUT, process.stdout), (STDERR, process.stderr))]
        for pump in pumps:
            pump.start()
        threading.Thread(target=self._finish, args=(stream, process, pumps), daemon=True).start()
        self._take_input(stream, process)

    def _pump(self, stream, channel, pipe):
        with contextlib.suppress(OSError, Closed):
            while data := os.read(pipe.fileno(), 32768):
                self.output(stream, channel, data)

    def _finish(self, stream, process, pumps):
        code = process.wait()
        for pump in pumps:
            pump.join()
        self._stopped(stream)
        with contextlib.suppress(OSError, Closed):
            self.ended(stream, code if code >= 0 else 128 - code)

    def _take_input(self, stream, process):
        """Until the client closes; as with a real runtime, that ends stdin and nothing else."""
        try:
            while True:
                opcode, data = stream.read_frame()
                if opcode == CLOSING:
                    self._stopped(stream)
                    with contextlib.suppress(OSError):
                        stream.send_frame(data, CLOSING)
                    return
                if opcode == PING:
                    stream.send_frame(data, PONG)
                elif opcode == BINARY and data[:1] == b"\0":
                    self._write(process, self.stdin(data[1:]))
                elif opcode == BINARY and data == bytes([CLOSE, STDIN]):
                    self._close(process)
        finally:
            self._close(process)

    @staticmethod
    def _write(process, data):
        with contextlib.suppress(OSError, ValueError):
            process.stdin.write(data)
            process.stdin.flush()

    @staticmethod
    def _close(process):
        with contextlib.suppress(OSError, ValueError):
            process.stdin.close()


def left_over():
    """What still runs of any fake container: {pid: command line}; zombies do not count."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError, IndexError):
            with open(f"/proc/{pid}/environ", "rb", buffering=0) as file:
                if f"FAKE_EXEC={MARK}".encode() not in file.read().split(b"\0"):
                    continue
            with open(f"/proc/{pid}/stat", encoding="latin-1") as file:
                state = file.read().rsplit(")", 1)[1].split()[0]
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if state != "Z":
                    found[int(pid)] = file.read().replace(b"\0", b" ")
    return found


def kill_left_over():
    """Until there is none: one that is just making another is seen too late."""
    end = time.monotonic() + 30
    while pids := left_over():
        assert time.monotonic() < end, f"cannot be killed: {pids}"
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def wait_nothing_left(seconds=30):
    end = time.monotonic() + seconds
    while pids := left_over():
        assert time.monotonic() < end, f"still there after {seconds} s: {pids}"
        time.sleep(0.05)
