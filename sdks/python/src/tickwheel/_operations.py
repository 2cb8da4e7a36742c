"""What a handler asks of the server through its context: heartbeats by hand and `once`.

Every call is repeated until it is answered, the attempt must stop, or the server says that it is somebody else's.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from ._attempt import Attempt
from ._backoff import Backoff
from ._codec import encode
from ._http import API, Request
from ._logs import Line
from .context import Link
from .errors import NotFound, Problem, StaleToken, Unreachable

if TYPE_CHECKING:
    from ._session import Session

log = logging.getLogger("tickwheel.worker")


class SessionLink(Link):
    """The surroundings of a handler in a worker."""

    def __init__(self, session: Session, attempt: Attempt) -> None:
        self._session, self._attempt = session, attempt
        self.cancel = attempt.cancel

    def send(self, operation: str, **arguments: Any) -> concurrent.futures.Future[Any]:
        work = self._session.operations.start(self._attempt, operation, arguments)
        return asyncio.run_coroutine_threadsafe(work, self._session.loop)

    def progress(self, percent: float, message: str | None) -> None:
        self._session.progressed(self._attempt.token, percent, message)

    def log(self, line: Line) -> None:
        self._attempt.logs.add(line)

    @property
    def draining(self) -> bool:
        return self._session.draining or self._session.server_drain


class Operations:
    """The operations of contexts, on the network thread."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._warned = False

    async def start(self, attempt: Attempt, operation: str, arguments: dict[str, Any]) -> Any:
        if operation == "heartbeat":
            return await self._heartbeat(attempt)
        if "once" not in self._session.features:
            return self._without_once(operation)
        return await self._once(attempt, operation, arguments)

    async def _heartbeat(self, attempt: Attempt) -> str:
        """`held`, or `lost` if the attempt is somebody else's."""
        backoff = Backoff()
        while True:
            attempt.cancel.check()
            session = self._session.registered
            if session is None or attempt.token not in self._session.held:
                return "lost"
            body = encode({"attempts": [{"token": attempt.token}]})
            sent_at = time.monotonic()
            try:
                answer = await self._session.call(Request("POST", f"{session.path}/heartbeat", body, timeout_s=5.0))
            except NotFound:
                return "lost"
            except (Unreachable, Problem) as error:
                await _pause(attempt, backoff.after(error))
                continue
            self._session.heard(sent_at, answer)
            return "lost" if attempt.token in (answer.get("lost") or ()) else "held"

    async def _once(self, attempt: Attempt, operation: str, arguments: dict[str, Any]) -> Any:
        path = f"{API}/attempts/{quote(attempt.token, safe='')}/once/{quote(arguments['key'], safe='')}"
        body: dict[str, Any]
        if operation == "once":
            body = {"scope": arguments["scope"], "ttl": arguments["ttl"]}
        elif operation == "once_done":
            path, body = f"{path}/done", {"result": arguments["result"]}
        else:
            path, body = f"{path}/abandon", {}
        backoff = Backoff()
        while True:
            if operation == "once":
                attempt.cancel.check()
            try:
                return await self._session.call(Request("POST", path, encode(body), timeout_s=5.0))
            except StaleToken:
                return {"state": "lost"} if operation == "once" else "lost"
            except Unreachable as error:
                await _pause(attempt, backoff.after(error))
            except Problem as problem:
                if problem.status < 500 and problem.status != 429:
                    raise
                await _pause(attempt, backoff.after(problem))

    def _without_once(self, operation: str) -> Any:
        if not self._warned:
            self._warned = True
            log.warning("the server does not know `once`: effects may happen twice, with the same idempotency key")
        return {"state": "first"} if operation == "once" else None


async def _pause(attempt: Attempt, pause_s: float) -> None:
    """Waits, but not on behalf of an attempt that must stop."""
    attempt.cancel.check()
    await asyncio.sleep(max(pause_s, 0.05))
    attempt.cancel.check()
