"""A proxy between one worker program and the server, that can cut, freeze, delay, swallow and make up answers.

It reads whole HTTP/1.1 messages, so that a fault can be aimed at one kind of call, and remembers every request. All
proxies of a process share one event loop in a thread of its own.
"""

import asyncio
import json
import re
import socket
import struct
import threading
import time
from dataclasses import dataclass, field

from .waiting import PATIENCE, eventually

REMEMBERED_BYTES_MAX = 2 * 1024 * 1024

# The kinds of calls, by method and path.
KINDS = [
    ("server", "GET", r"/api/v1/server"),
    ("register", "POST", r"/api/v1/workers"),
    ("poll", "POST", r"/api/v1/workers/[^/]+/poll"),
    ("heartbeat", "POST", r"/api/v1/workers/[^/]+/heartbeat"),
    ("report", "POST", r"/api/v1/workers/[^/]+/report"),
    ("logs", "POST", r"/api/v1/workers/[^/]+/logs"),
    ("leave", "DELETE", r"/api/v1/workers/[^/]+"),
    ("once", "POST", r"/api/v1/attempts/[^/]+/once/.+"),
    ("submit", "POST", r"/api/v1/jobs(/batch)?"),
]


def kind_of(method: str, path: str) -> str:
    path = path.split("?")[0]
    for kind, its_method, pattern in KINDS:
        if method == its_method and re.fullmatch(pattern, path):
            return kind
    return "other"


@dataclass
class Request:
    """A request that passed through, and the status of its answer (None: none came yet)."""

    kind: str
    method: str
    path: str
    headers: dict
    body: bytes
    at: float
    status: int | None = None
    answer: bytes = b""
    answered_at: float | None = None  # when the worker got the answer

    def json(self):
        return json.loads(self.body or b"null")

    def answer_json(self):
        return json.loads(self.answer or b"null")


@dataclass
class Fault:
    """What is to happen to the next calls of a kind. `count` says to how many."""

    kind: str
    count: int
    action: str  # "reset", "silence", "delay", "answer"
    delay: float = 0.0
    status: int = 200
    body: bytes = b""
    when: object = None  # asked with the request and its answer; false: leave this call alone
    hits: list = field(default_factory=list)


class Gone(Exception):
    """The connection has ended."""


class Stream:
    """One end of a connection, read as HTTP messages."""

    def __init__(self, reader, writer):
        self.reader, self.writer, self.buffer = reader, writer, b""

    async def more(self):
        try:
            data = await self.reader.read(65536)
        except OSError as error:
            raise Gone from error
        if not data:
            raise Gone
        self.buffer += data

    async def take(self, count):
        while len(self.buffer) < count:
            await self.more()
        data, self.buffer = self.buffer[:count], self.buffer[count:]
        return data

    async def until(self, mark):
        while mark not in self.buffer:
            await self.more()
        at = self.buffer.index(mark) + len(mark)
        data, self.buffer = self.buffer[:at], self.buffer[at:]
        return data

    async def message(self, has_body=True):
        """The head as it came, its first line, its headers, the body as it came and the body's content."""
        head = await self.until(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").rstrip().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        if not has_body:
            return head, first, headers, b"", b""
        if headers.get("transfer-encoding", "").lower() == "chunked":
            raw, content = b"", b""
            while True:
                size_line = await self.until(b"\r\n")
                size = int(size_line.split(b";")[0], 16)
                chunk = await self.take(size + 2)
                raw += size_line + chunk
                content += chunk[:-2]
                if size == 0:
                    return head, first, headers, raw, content
        body = await self.take(int(headers.get("content-length", "0")))
        return head, first, headers, body, body

    async def send(self, data):
        try:
            self.writer.write(data)
            await self.writer.drain()
        except OSError as error:
            raise Gone from error

    def reset(self):
        """Closes it the hard way: the other side sees a reset, not an end."""
        sock = self.writer.get_extra_info("socket")
        if sock is not None:
            try:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            except OSError:
                pass
        self.writer.transport.abort()


class Loop:
    """The event loop that all proxies run on."""

    _shared = None

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.loop.set_exception_handler(lambda _loop, _context: None)
        threading.Thread(target=self.loop.run_forever, daemon=True, name="proxies").start()

    @classmethod
    def shared(cls):
        if cls._shared is None:
            cls._shared = cls()
        return cls._shared

    def call(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(10)


class Proxy:
    """`target` is asked for (host, port) at each connection, so that a server may come back on another port."""

    def __init__(self, target):
        self.target = target
        self.requests = []
        self.faults = []
        self.remembers_bodies = True
        self.keys = None  # the keys that are accepted; None: the server decides
        self.is_cut = False
        self._streams = set()
        self._loop = Loop.shared()
        self._loop.call(self._start())

    async def _start(self):
        self._open = asyncio.Event()
        self._open.set()
        self._listener = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=1 << 20)
        self.port = self._listener.sockets[0].getsockname()[1]

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    # What a case does with it.

    def cut(self):
        """Resets every connection and refuses new ones until `heal`."""
        self.is_cut = True
        self._loop.call(self._reset_all())

    def freeze(self):
        """Nothing passes in either direction, and nobody is told, until `heal`."""
        self._loop.call(self._set_open(False))

    def heal(self):
        self.is_cut = False
        self._loop.call(self._set_open(True))

    def swallow(self, kind, count=1, silently=False, when=None):
        """The server gets the request, the worker gets no answer: a reset, or silence for as long as it waits."""
        return self._add(Fault(kind, count, "silence" if silently else "reset", when=when))

    def delay(self, kind, seconds, count=1):
        return self._add(Fault(kind, count, "delay", delay=seconds))

    def answer(self, kind, status, body, count=1_000_000):
        """Makes an answer up; the server hears nothing."""
        return self._add(Fault(kind, count, "answer", status=status, body=json.dumps(body).encode()))

    def count(self, *kinds, since=0.0):
        return len(self.of_kind(*kinds, since=since))

    def of_kind(self, *kinds, since=0.0):
        return [request for request in list(self.requests) if request.kind in kinds and request.at >= since]

    def await_answer(self, kind, within=PATIENCE):
        """Until the worker got an answer to a call that is made from now on."""
        begun = time.monotonic()
        eventually(f"an answered {kind}",
                   lambda: any(request.answered_at for request in self.of_kind(kind, since=begun)), within, pause=0.01)

    def close(self):
        self.is_cut = True
        self._loop.call(self._close())

    # How it does it.

    def _add(self, fault):
        self.faults.append(fault)
        return fault

    async def _set_open(self, is_open):
        (self._open.set if is_open else self._open.clear)()

    async def _reset_all(self):
        for stream in list(self._streams):
            stream.reset()

    async def _close(self):
        self._listener.close()
        await self._reset_all()

    async def _serve(self, reader, writer):
        client = Stream(reader, writer)
        self._streams.add(client)
        server = None
        try:
            await self._open.wait()
            if self.is_cut:
                return
            while True:
                head, first, headers, raw, content = await client.message()
                await self._open.wait()
                method, path, _ = first.split(" ", 2)
                request = Request(kind_of(method, path), method, path, headers, self._kept(content), time.monotonic())
                self.requests.append(request)
                if self._made_up(request) or self._refused(request):
                    await client.send(self._made_up_bytes(request))
                    continue
                if server is None:
                    server = await self._connect()
                await server.send(head + raw)
                answer = await self._answer_unless_client_leaves(client, server)
                head, first, headers, raw, content = answer
                request.status, request.answer = int(first.split(" ")[1]), self._kept(content)
                await self._pass_on(request, client, head + raw)
                if headers.get("connection", "").lower() == "close":
                    return
        except Gone:
            pass
        finally:
            for stream in (client, server):
                if stream is not None:
                    self._streams.discard(stream)
                    stream.reset()

    def _kept(self, content):
        return content[:REMEMBERED_BYTES_MAX] if self.remembers_bodies else b""

    async def _connect(self):
        host, port = self.target()
        try:
            server = Stream(*await asyncio.open_connection(host, port, limit=1 << 20))
        except OSError as error:
            raise Gone from error
        self._streams.add(server)
        return server

    async def _answer_unless_client_leaves(self, client, server):
        """A client that gives up on a waiting poll must be seen to do so by the server."""
        answer = asyncio.ensure_future(server.message())
        leaving = asyncio.ensure_future(client.more())
        try:
            while True:
                await asyncio.wait({answer, leaving}, return_when=asyncio.FIRST_COMPLETED)
                if answer.done():
                    return answer.result()
                leaving.result()  # raises Gone, unless more bytes came
                leaving = asyncio.ensure_future(client.more())
        finally:
            for task in (answer, leaving):
                task.cancel()
            await asyncio.gather(answer, leaving, return_exceptions=True)

    async def _pass_on(self, request, client, data):
        fault = self._fault_for(request, ("reset", "silence", "delay"))
        if fault and fault.action == "reset":
            raise Gone
        if fault and fault.action == "silence":
            while True:
                await client.more()
        if fault and fault.action == "delay":
            await asyncio.sleep(fault.delay)
        await self._open.wait()
        await client.send(data)
        request.answered_at = time.monotonic()

    def _fault_for(self, request, actions):
        for fault in self.faults:
            if fault.kind == request.kind and fault.count > 0 and fault.action in actions:
                if fault.when is None or fault.when(request):
                    fault.count -= 1
                    fault.hits.append(request)
                    return fault
        return None

    def _made_up(self, request):
        fault = self._fault_for(request, ("answer",))
        if fault:
            request.status, request.answer = fault.status, fault.body
        return fault is not None

    def _refused(self, request):
        if self.keys is None or request.headers.get("authorization", "").removeprefix("Bearer ") in self.keys:
            return False
        problem = {"type": "urn:tickwheel:problem:unauthorized", "title": "Unauthorized", "status": 401,
                   "code": "unauthorized", "detail": "this key is not valid"}
        request.status, request.answer = 401, json.dumps(problem).encode()
        return True

    @staticmethod
    def _made_up_bytes(request):
        kind = "application/json" if request.status < 400 else "application/problem+json"
        head = f"HTTP/1.1 {request.status} Made up\r\ncontent-type: {kind}\r\ncontent-length: {len(request.answer)}\r\n\r\n"
        return head.encode() + request.answer


class Wire:
    """A relay for any protocol, between a server and its store. It can be cut."""

    def __init__(self, target):
        self.target, self.is_cut, self._writers = target, False, set()
        self._loop = Loop.shared()
        self._loop.call(self._start())

    async def _start(self):
        self._listener = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._listener.sockets[0].getsockname()[1]

    def cut(self):
        self.is_cut = True
        self._loop.call(self._abort_all())

    def heal(self):
        self.is_cut = False

    def close(self):
        self.cut()
        self._loop.call(self._stop_listening())

    async def _stop_listening(self):
        self._listener.close()

    async def _abort_all(self):
        for writer in list(self._writers):
            writer.transport.abort()

    async def _serve(self, reader, writer):
        if self.is_cut:
            writer.transport.abort()
            return
        try:
            server_reader, server_writer = await asyncio.open_connection(*self.target)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, server_writer}
        try:
            await asyncio.gather(self._relay(reader, server_writer), self._relay(server_reader, writer))
        finally:
            self._writers -= {writer, server_writer}

    @staticmethod
    async def _relay(reader, writer):
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.transport.abort()
