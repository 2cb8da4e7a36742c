"""The worker's side of its heartbeater: starts it, feeds it, restarts it, and falls back to a thread.

Everything here runs on the network thread's loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from . import _heartbeater

log = logging.getLogger("tickwheel.worker")

RESTART_S_MIN, RESTART_S_MAX = 1.0, 30.0
READY_S_MAX = 10.0
BUFFER_BYTES_MAX = 4 * 1024 * 1024
QUIET_S = 60.0


class Heartbeater:
    """Sends heartbeats from a process of its own."""

    def __init__(self, hear: Callable[[dict[str, Any]], None], *, as_thread: bool = False) -> None:
        self._hear = hear
        self._as_thread = as_thread
        self._process: subprocess.Popen[bytes] | None = None
        self._writer: asyncio.WriteTransport | None = None
        self._session: Mapping[str, Any] | None = None
        self._tokens: dict[str, None] = {}
        self._state: dict[str, Any] = {"state": "active", "stuck": 0}
        self._closing = False
        self.is_process = False

    @property
    def pid(self) -> int | None:
        """The process id, for those who look."""
        return self._process.pid if self._process else None

    @property
    def held(self) -> int:
        """How many attempts it counts."""
        return len(self._tokens)

    # What it is told. Each is remembered: a new process is told everything again.

    def session(self, session: Mapping[str, Any] | None) -> None:
        """There is a session to keep alive, or none any more."""
        self._session = session
        self._send({"kind": "no_session"} if session is None else {"kind": "session", "session": session})

    def add(self, tokens: Iterable[str]) -> None:
        """Attempts are held from now on."""
        new = list(tokens)
        self._tokens.update(dict.fromkeys(new))
        self._send({"kind": "add", "tokens": new})

    def drop(self, tokens: Iterable[str]) -> None:
        """Attempts are not held any more."""
        old = [token for token in tokens if token in self._tokens]
        for token in old:
            del self._tokens[token]
        if old:
            self._send({"kind": "drop", "tokens": old})

    def progress(self, progress: Mapping[str, Any]) -> None:
        """News of attempts. Lost if the process dies now: the next news is on its way."""
        known = {token: entry for token, entry in progress.items() if token in self._tokens}
        if known:
            self._send({"kind": "progress", "progress": known})

    def state(self, state: str, stuck: int) -> None:
        """What the worker is doing."""
        new = {"state": state, "stuck": stuck}
        if new != self._state:
            self._state = new
            self._send({"kind": "state", **new})

    def answer(self, number: int) -> None:
        """The worker hears it."""
        self._send({"kind": "answer", "number": number})

    def _send(self, message: dict[str, Any]) -> None:
        if self._writer is None:
            return
        if self._writer.get_write_buffer_size() > BUFFER_BYTES_MAX:
            log.error("heartbeater does not read: it is replaced")
            self._kill()
            return
        self._writer.write(json.dumps(message).encode() + b"\n")

    # Its life.

    async def run(self, started: asyncio.Event) -> None:
        """Keeps one running until this is cancelled."""
        pause_s = RESTART_S_MIN
        while True:
            begun = asyncio.get_running_loop().time()
            try:
                reader = await self._start()
            except (OSError, asyncio.TimeoutError) as error:
                log.warning("heartbeater cannot start as a process, it becomes a thread: %s", error)
                self._kill()
                self._as_thread = True
                continue
            self._tell_everything()
            started.set()
            await self._listen(reader)
            if self._closing:
                return
            self._kill()
            if asyncio.get_running_loop().time() - begun > QUIET_S:
                pause_s = RESTART_S_MIN
            log.error("heartbeater gone: a new one starts in %.0f s", pause_s)
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, RESTART_S_MAX)

    async def _start(self) -> asyncio.StreamReader:
        if self._as_thread:
            return await self._start_thread()
        path = _heartbeater.__file__
        if not path or not os.path.exists(path) or not sys.executable:
            raise OSError("its program or the interpreter cannot be found")
        self._process = subprocess.Popen(  # noqa: S603 - the same interpreter, no shell
            [sys.executable, "-I", "-S", path, str(os.getpid())], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        reader = await self._connect(self._process.stdout, self._process.stdin)
        ready = await asyncio.wait_for(reader.readline(), READY_S_MAX)
        if not ready:
            raise OSError(f"it ended with {self._process.wait()}")
        self.is_process = True
        return reader

    async def _start_thread(self) -> asyncio.StreamReader:
        their_source, our_writer = os.pipe()
        our_source, their_target = os.pipe()
        heart = _heartbeater.Heart(_heartbeater.sender(their_target))

        def listen() -> None:
            _heartbeater.serve(their_source, heart, None)
            heart.stop()
            os.close(their_source)

        def beat() -> None:
            with contextlib.suppress(OSError):
                heart.beat_for_ever(lambda: False)
            os.close(their_target)

        for work in (listen, beat):
            threading.Thread(target=work, daemon=True, name="tickwheel-heartbeater").start()
        self.is_process = False
        return await self._connect(os.fdopen(our_source, "rb", 0), os.fdopen(our_writer, "wb", 0))

    async def _connect(self, source: Any, target: Any) -> asyncio.StreamReader:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=BUFFER_BYTES_MAX)
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), source)
        self._writer, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, target)
        return reader

    def _tell_everything(self) -> None:
        self._send({"kind": "state", **self._state})
        if self._tokens:
            self._send({"kind": "add", "tokens": list(self._tokens)})
        if self._session is not None:
            self._send({"kind": "session", "session": self._session})

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        while True:
            try:
                line = await reader.readline()
            except (OSError, ValueError):
                return
            if not line:
                return
            message = json.loads(line)
            if message["kind"] == "ask":
                self.answer(message["number"])
            else:
                self._hear(message)

    def _kill(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None and not writer.is_closing():
            writer.abort()
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(OSError):
                process.kill()
            process.wait()

    async def close(self) -> None:
        """Says goodbye: the worker leaves by itself."""
        self._closing = True
        self._send({"kind": "bye"})
        process = self._process
        for _ in range(25):
            if process is None or process.poll() is not None:
                break
            await asyncio.sleep(0.02)
        self._kill()
