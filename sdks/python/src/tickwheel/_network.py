"""The network thread: a thread with an event loop of its own, on which a worker's session lives."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable

from ._attempt import Attempt
from ._health import HealthServer
from ._outcome import Outcome
from ._runner import Runner
from ._session import Session


class MainLoop:
    """The main loop, seen from the network thread. A loop that is gone is not told anything."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._thread = threading.get_ident()
        self.runner: Runner | None = None
        self.drain_hook: Callable[[], None] = lambda: None

    def _soon(self, action: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(action)
        except RuntimeError:
            pass

    def start(self, attempts: list[Attempt]) -> None:
        def begin() -> None:
            assert self.runner is not None  # noqa: S101 - it is made before the first poll
            for attempt in attempts:
                self.runner.start(attempt)

        self._soon(begin)

    def cancel(self, attempt: Attempt) -> None:
        self._soon(lambda: self.runner.cancel(attempt) if self.runner else None)

    def kill(self, attempt: Attempt) -> None:
        self._soon(lambda: None if self.runner is None else _ignore(self.runner.kill(attempt)))

    def draining(self) -> None:
        self._soon(self.drain_hook)

    def ping(self, pong: Callable[[], None]) -> None:
        self._soon(pong)

    def main_thread(self) -> int:
        return self._thread


def _ignore(_: object) -> None:
    return None


class NetworkThread:
    """Runs a session until it has left."""

    def __init__(self, session: Session, main: MainLoop, loop: asyncio.AbstractEventLoop) -> None:
        self.session, self._main, self._main_loop = session, main, loop
        self.ready: asyncio.Future[None] = loop.create_future()
        self.done: asyncio.Future[None] = loop.create_future()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.health = HealthServer(session)
        self._early: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self._ended: deque[tuple[Attempt, Outcome]] = deque()
        self._thread = threading.Thread(target=self._run, daemon=True, name="tickwheel-network")

    def start(self) -> None:
        self._thread.start()

    def soon(self, action: Callable[[], None]) -> None:
        """Does something on the network thread, from any thread, also before it runs and after it has ended."""
        with self._lock:
            if self._loop is None:
                self._early.append(action)
                return
        try:
            self._loop.call_soon_threadsafe(action)
        except RuntimeError:
            pass

    def ended(self, attempt: Attempt, outcome: Outcome) -> None:
        """A handler has ended."""
        # Waking the network thread is a system call that lets go of the interpreter: once for all that end together.
        self._ended.append((attempt, outcome))
        if len(self._ended) == 1:
            self.soon(self._take_ended)

    def _take_ended(self) -> None:
        # Each stays in the queue until it is handled: who ends after the last one finds the queue empty, and wakes us.
        try:
            while self._ended:
                try:
                    self.session.ended(*self._ended[0])
                finally:
                    self._ended.popleft()
        finally:
            if self._ended:
                self.soon(self._take_ended)

    def _run(self) -> None:
        error: BaseException | None = None
        try:
            asyncio.run(self._live())
        except BaseException as raised:
            error = raised
        self._tell(self.ready, error)
        self._tell(self.done, error)

    async def _live(self) -> None:
        with self._lock:
            self._loop = asyncio.get_running_loop()
        for action in self._early:
            self._loop.call_soon(action)
        await self.health.start()
        try:
            await self.session.run(self._main, self._registered)
        finally:
            await self.health.close()

    def _registered(self) -> None:
        self._tell(self.ready, None)

    def _tell(self, future: asyncio.Future[None], error: BaseException | None) -> None:
        def settle() -> None:
            if future.done():
                return
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)
                future.exception()  # seen, also if nobody waits any more

        try:
            self._main_loop.call_soon_threadsafe(settle)
        except RuntimeError:
            pass
