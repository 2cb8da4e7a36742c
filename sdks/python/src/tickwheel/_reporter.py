"""Reporting: one request at a time, and while it travels the next batch gathers.

A report is repeated until the server has accepted it or calls it stale, also under a new session.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ._attempt import tail
from ._backoff import Backoff
from ._http import AnswerTooLarge, Request
from ._reports import Batch, Waiting
from .errors import NotFound, Problem, Unreachable

if TYPE_CHECKING:
    from ._session import Session

log = logging.getLogger("tickwheel.worker")


async def report_for_ever(session: Session) -> None:
    """Reports until this is cancelled."""
    await Reporter(session).run()


class Reporter:
    """The report loop of a session."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def run(self) -> None:
        """Reports until this is cancelled."""
        backoff = Backoff()
        while True:
            if not len(self._session.reports):
                self._session.reports_ready.clear()
                await self._session.reports_ready.wait()
            session = await self._session.session()
            batch = self._session.reports.next_batch("logs" in self._session.features)
            request = Request("POST", f"{session.path}/report", batch.body, timeout_s=max(10.0, session.lease_s))
            try:
                answer = (await self._session.exchange(request)).body
            except NotFound:
                self._session.lost(session.path)
            except (Unreachable, AnswerTooLarge) as error:
                self._session.watch.away(str(error))
                await asyncio.sleep(backoff.after(error))
            except Problem as problem:
                if problem.status in (400, 413, 415, 422):
                    given_up = self._session.reports.refused(batch, str(problem))
                    if given_up is not None:
                        self._report_given_up(given_up, problem)
                elif problem.status in (401, 403):
                    await self._session.refused(problem)
                else:
                    self._session.watch.away(str(problem))
                    await asyncio.sleep(backoff.after(problem))
            else:
                backoff.reset()
                self._session.watch.back()
                self._reported(batch, answer)

    def _reported(self, batch: Batch, answer: dict[str, Any]) -> None:
        done: list[str] = []
        for waiting, logs, result in zip(batch.items, batch.logs, answer["results"], strict=True):
            problem = result.get("error")
            if problem is None:
                if logs is not None:
                    waiting.attempt.logs.accepted(logs)
            elif not self._is_final(waiting, problem):
                continue
            self._session.reports.done(waiting)
            waiting.attempt.logs.discard()
            self._session.held.pop(waiting.attempt.token, None)
            done.append(waiting.attempt.token)
        self._session.heartbeater.drop(done)
        self._session.changed.set()

    def _is_final(self, waiting: Waiting, problem: Mapping[str, Any]) -> bool:
        """Whether a report that was refused is over."""
        attempt, code = waiting.attempt, str(problem.get("code"))
        status = int(problem.get("status") or 0)
        if status >= 500 or status == 429:
            return False
        if code in ("stale_token", "illegal_state") or status in (404, 409) or waiting.replaced:
            log.warning("stale report: %s%s", problem.get("detail") or code, tail(attempt), extra=attempt.fields)
            return True
        log.warning("report refused: %s%s", problem.get("detail") or code, tail(attempt), extra=attempt.fields)
        self._session.reports.replace(waiting, str(problem.get("detail") or code))
        return False

    def _report_given_up(self, waiting: Waiting, problem: Problem) -> None:
        attempt = waiting.attempt
        log.error("refused by the server: a report: %s%s", problem, tail(attempt), extra=attempt.fields)
        self._session.held.pop(attempt.token, None)
        self._session.heartbeater.drop([attempt.token])
