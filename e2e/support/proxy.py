# SPDX-License-Identifier: Apache-2.0
"""Proxies of the tests between a program and the API server.

CuttableProxy passes bytes on and can be cut. ApiProxy ends TLS on both sides and sees each request,
so that a test can count writes, hold them, or do something at an exact moment."""

import asyncio
import concurrent.futures
import dataclasses
import pathlib
import re
import socket
import ssl
import subprocess
import threading
import time
from urllib.parse import urlsplit

LIMIT = 1 << 20
# How a connection may end. A task of a server that is cancelled has nobody to tell.
ENDINGS = (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, asyncio.CancelledError)


class LoopThread:
    """An event loop in a thread of its own."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    def run(self, coroutine, timeout=30):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(timeout)

    def close(self):
        async def cancel_all():
            tasks = [t for t in asyncio.all_tasks() if t is not asyncio.current_task()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        try:
            self.run(cancel_all())
        except concurrent.futures.TimeoutError:
            pass
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)


async def pump(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


class CuttableProxy:
    """Bytes as they are. cut() ends what is open and refuses what is new, until mend()."""

    def __init__(self, target):
        parts = urlsplit(target)
        self.target = (parts.hostname, parts.port)
        self.thread = LoopThread()
        self.writers = set()
        self.server = None
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.url = f"https://127.0.0.1:{self.port}"

    async def serve(self, reader, writer):
        up_writer = None
        try:
            up_reader, up_writer = await asyncio.open_connection(*self.target)
            self.writers |= {writer, up_writer}
            await asyncio.gather(pump(reader, up_writer), pump(up_reader, writer))
        except ENDINGS:
            pass
        finally:
            self.writers -= {writer, up_writer}
            for one in (writer, up_writer):
                if one:
                    one.transport.abort()

    async def open(self):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", self.port)

    async def shut(self):
        self.server.close()
        for writer in list(self.writers):
            writer.transport.abort()

    def mend(self):
        self.thread.run(self.open())

    def cut(self):
        self.thread.run(self.shut())

    def __enter__(self):
        self.mend()
        return self

    def __exit__(self, *_):
        self.cut()
        self.thread.close()


def make_certificate(folder):
    """A certificate for 127.0.0.1 that vouches for itself; (certificate, key)."""
    certificate, key = pathlib.Path(folder, "proxy.pem"), pathlib.Path(folder, "proxy.key")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=e2e-proxy", "-addext",
                    "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    return certificate, key


@dataclasses.dataclass
class Seen:
    """A request that came through. answered: when its answer had been passed on."""
    number: int
    method: str
    path: str
    at: float
    status: int = 0
    answered: float = 0.0
    label: tuple = ()

    @property
    def is_write(self):
        """A change of the cluster; questions (reviews) and Events are none."""
        if self.method not in ("POST", "PUT", "PATCH", "DELETE"):
            return False
        return not re.search(r"/(tokenreviews|subjectaccessreviews|events|exec)(\?|$)", self.path)

    @property
    def what(self):
        parts = self.path.partition("?")[0].split("/")
        tail = parts[parts.index("namespaces") + 2:] if "namespaces" in parts else parts[-1:]
        return f"{self.method} " + "/".join([tail[0], *tail[2:]])


class Gate:
    """Decides about each write. Methods run in the proxy's thread and may be slow: only the request
    they are about waits meanwhile."""

    def before(self, seen):
        """The request has come and is not passed on yet. False: it never is, the connection ends."""
        return True

    def between(self, seen):
        """The API server has carried it out; its answer is not passed on yet. False: it never is."""
        return True

    def after(self, seen):
        """The answer has been written to the program's socket."""


class ApiProxy:
    """TLS on both sides. Use its url and ca in a kubeconfig with a token."""

    def __init__(self, target, ca_data, folder, gate=None):
        parts = urlsplit(target)
        self.target = (parts.hostname, parts.port)
        self.upstream = ssl.create_default_context(cadata=ca_data)
        self.ca, key = make_certificate(folder)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(self.ca, key)
        self.gate = gate or Gate()
        self.seen = []
        self.lock = threading.Lock()
        self.workers = concurrent.futures.ThreadPoolExecutor(8)
        self.thread = LoopThread()
        self.server = None
        self.url = ""

    def writes(self):
        with self.lock:
            return [s for s in self.seen if s.is_write]

    def note(self, method, path):
        with self.lock:
            self.seen.append(Seen(len(self.seen), method, path, time.monotonic()))
            return self.seen[-1]

    async def ask(self, function, seen):
        return await asyncio.get_running_loop().run_in_executor(self.workers, function, seen)

    # ---- one connection of the program

    async def serve(self, reader, writer):
        up_writer = None
        try:
            up_reader, up_writer = await asyncio.open_connection(*self.target, ssl=self.upstream, limit=LIMIT)
            while await self.exchange(reader, writer, up_reader, up_writer):
                pass
        except ENDINGS:
            pass
        finally:
            for one in (writer, up_writer):
                if one:
                    one.transport.abort()

    async def exchange(self, reader, writer, up_reader, up_writer):
        """One request and its answer; False when the connection is over."""
        head = await reader.readuntil(b"\r\n\r\n")
        method, path, _ = head.split(b"\r\n", 1)[0].decode().split(" ")
        seen = self.note(method, path)
        body = await reader.readexactly(length_of(head)) if length_of(head) else b""
        gated = seen.is_write
        if gated and not await self.ask(self.gate.before, seen):
            return False
        up_writer.write(head + body)
        await up_writer.drain()
        answer = await up_reader.readuntil(b"\r\n\r\n")
        while answer.startswith(b"HTTP/1.1 1") and not answer.startswith(b"HTTP/1.1 101"):
            answer = await up_reader.readuntil(b"\r\n\r\n")
        seen.status = int(answer.split(b" ", 2)[1])
        if seen.status == 101:
            return await self.tunnel(answer, reader, writer, up_reader, up_writer)
        if gated:
            return await self.pass_whole(seen, answer, writer, up_reader)
        writer.write(answer)
        await self.pass_body(answer, writer, up_reader)
        seen.answered = time.monotonic()
        return b"connection: close" not in answer.lower()

    async def pass_whole(self, seen, answer, writer, up_reader):
        """An answer to a write is read to its end before any of it is passed on."""
        whole = Collected()
        await self.pass_body(answer, whole, up_reader)
        if not await self.ask(self.gate.between, seen):
            return False
        writer.write(answer + bytes(whole.data))
        await writer.drain()
        seen.answered = time.monotonic()
        await self.ask(self.gate.after, seen)
        return True

    @staticmethod
    async def pass_body(head, writer, up_reader):
        if b"transfer-encoding: chunked" in head.lower():
            while True:
                line = await up_reader.readuntil(b"\r\n")
                size = int(line.split(b";")[0], 16)
                writer.write(line + await up_reader.readexactly(size + 2))
                await writer.drain()
                if size == 0:
                    return
        elif length_of(head):
            writer.write(await up_reader.readexactly(length_of(head)))
            await writer.drain()

    @staticmethod
    async def tunnel(answer, reader, writer, up_reader, up_writer):
        writer.write(answer)
        await asyncio.gather(pump(reader, up_writer), pump(up_reader, writer))
        return False

    # ---- life

    async def open(self):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0, ssl=self.context, limit=LIMIT)
        self.url = f"https://127.0.0.1:{self.server.sockets[0].getsockname()[1]}"

    def __enter__(self):
        self.thread.run(self.open())
        return self

    async def shut(self):
        self.server.close()

    def __exit__(self, *_):
        self.thread.run(self.shut())
        self.thread.close()
        self.workers.shutdown(wait=False, cancel_futures=True)


class Collected:
    """Takes what would be written."""

    def __init__(self):
        self.data = bytearray()

    def write(self, data):
        self.data += data

    async def drain(self):
        return


def length_of(head):
    found = re.search(rb"\r\ncontent-length:\s*(\d+)", head, re.IGNORECASE)
    return int(found.group(1)) if found else 0
