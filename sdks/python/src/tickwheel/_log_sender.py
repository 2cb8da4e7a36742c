"""Sends the logs of running attempts: twice a second, or as soon as there is much. The rest goes with the report."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Any

from ._attempt import Attempt
from ._codec import encode
from ._http import Request
from ._waiting import wait
from .errors import NotFound, Problem, Unreachable

if TYPE_CHECKING:
    from ._session import Registered, Session

log = logging.getLogger("tickwheel.worker")

EVERY_S = 0.5
REQUEST_BYTES_MAX = 4 * 1024 * 1024
REQUEST_LEN_MAX = 500
SAY_DROPPED_S = 30.0


async def send_logs_for_ever(session: Session) -> None:
    """Sends logs until this is cancelled."""
    await LogSender(session).run()


class LogSender:
    """The log loop of a session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._said = (0, 0.0)

    async def run(self) -> None:
        """Sends logs until this is cancelled."""
        while True:
            await wait(self._session.logs_ready, EVERY_S)
            self._session.logs_ready.clear()
            if "logs" not in self._session.features:
                for attempt in self._session.held.values():
                    attempt.logs.discard()
                continue
            self._say_dropped()
            if self._session.registered is not None:
                await self._send_logs(self._session.registered)

    async def _send_logs(self, session: Registered) -> None:
        entries: list[dict[str, Any]] = []
        attempts: list[Attempt] = []
        size = 0
        for attempt in list(self._session.held.values()):
            if attempt.phase == "ended" or attempt.logs.is_empty or len(entries) >= REQUEST_LEN_MAX:
                continue
            taken = attempt.logs.take()
            if taken is not None:
                entries.append({"token": attempt.token, **taken})
                attempts.append(attempt)
                size += sum(len(line["message"]) for line in taken["lines"])
            if size > REQUEST_BYTES_MAX:
                break
        if not entries:
            return
        try:
            request = Request("POST", f"{session.path}/logs", encode({"logs": entries}), timeout_s=10.0)
            answer = (await self._session.exchange(request)).body
        except NotFound:
            self._session.lost(session.path)
            return
        except (Unreachable, Problem) as error:
            self._session.watch.away(str(error))
            await asyncio.sleep(EVERY_S)
            return
        for attempt, entry, result in zip(attempts, entries, answer["results"], strict=True):
            if result.get("error") is None:
                attempt.logs.accepted(entry)
            else:
                attempt.logs.discard()

    def _say_dropped(self) -> None:
        said, said_at = self._said
        dropped = self._session.log_budget.lines_dropped
        if dropped > said and time.monotonic() - said_at > SAY_DROPPED_S:
            log.warning("lines dropped: %d lines of jobs' logs were too many at once", dropped - said)
            self._said = (dropped, time.monotonic())
