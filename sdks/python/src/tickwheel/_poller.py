"""Polling: asks for as many jobs as there is room for, one request at a time.

A poll that failed is repeated with the same number, and so is one that was given up because it asked for too much: if
its answer had jobs, the same jobs come again. Nothing is fetched ahead, so nothing waits behind a slow handler.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ._attempt import Assignment, Attempt
from ._backoff import Backoff
from ._calls import read_job
from ._codec import encode
from ._durations import to_wire
from ._http import AnswerTooLarge, Request
from ._logs import LINE_BYTES_MAX, SENT_BYTES_MAX, LogBuffer
from ._outcome import Outcome
from ._waiting import wait
from .errors import NotFound, Problem, Unreachable

if TYPE_CHECKING:
    from ._session import Registered, Session

FULL_POLL_AFTER_S = 0.1
GATHER_S = 0.005
EMPTY_ANSWER_S = 0.05
PATIENCE_S = 10.0
JOBS_MAX = 1_000


@dataclass(frozen=True)
class Demand:
    """What a poll asks for."""

    jobs_max: int
    slots: Mapping[str, int]

    def is_outdated_by(self, now: Demand) -> bool:
        """Whether a poll that waits should be asked anew: it asks for nothing, too much, or not for a type."""
        if (self.jobs_max == 0) != (now.jobs_max == 0):
            return True
        return any(free == 0 and now.slots.get(name, 0) > 0 for name, free in self.slots.items())


class Poller:
    """The poll loop of a session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._seq = 0
        self.turned_at = time.monotonic()
        """When the loop last began anew."""

    def demand(self) -> Demand:
        """What there is room for."""
        closed = (
            self._session.draining
            or self._session.server_drain
            or self._session.main_blocked
            or self._session.reports.is_full
        )
        free = 0 if closed else self._session.settings.capacity - len(self._session.running)
        limit = self._session.limit("poll_jobs", JOBS_MAX)
        slots: dict[str, int] = {}
        for name, handler in self._session.handlers.items():
            if handler.capacity is not None:
                taken = sum(1 for attempt in self._session.running.values() if attempt.job.type == name)
                slots[name] = max(0, handler.capacity - taken)
        return Demand(max(0, min(free, limit)), slots)

    async def run(self) -> None:
        """Polls until this is cancelled."""
        backoff = Backoff()
        repeat = False
        while True:
            session = await self._session.session()
            self.turned_at = time.monotonic()
            if not repeat:
                await self._settle()
            demand = self.demand()
            if not repeat:
                self._seq += 1
            sent_at = time.monotonic()
            try:
                answer = await self._poll(session, demand)
            except (Unreachable, AnswerTooLarge) as error:
                self._session.watch.away(str(error))
                repeat = True
                await asyncio.sleep(backoff.after(error))
            except NotFound:
                repeat = False
                self._session.lost(session.path)
            except Problem as problem:
                repeat = True
                if problem.status < 500 and problem.status != 429 and problem.status != 408:
                    await self._session.refused(problem)
                else:
                    self._session.watch.away(str(problem))
                    await asyncio.sleep(backoff.after(problem))
            else:
                backoff.reset()
                if answer is None:  # asked anew; jobs of an answer that crossed come again with the same number
                    repeat = demand.jobs_max > 0
                    continue
                repeat = False
                self._session.watch.back()
                await self._polled(session, answer, sent_at)
                took_s = time.monotonic() - sent_at
                if not answer.get("jobs") and took_s < EMPTY_ANSWER_S and demand == self.demand():
                    await asyncio.sleep(EMPTY_ANSWER_S)

    async def _settle(self) -> None:
        """Lets a full worker's slots become free before it asks, a few milliseconds or a moment."""
        demand = self.demand()
        if demand.jobs_max == 0 and not self._session.draining:
            until = time.monotonic() + FULL_POLL_AFTER_S
            while demand.jobs_max == 0 and not self._session.draining and (left_s := until - time.monotonic()) > 0:
                self._session.changed.clear()
                await wait(self._session.changed, left_s)
                demand = self.demand()
        if 0 < demand.jobs_max < self._session.settings.capacity / 2:
            await asyncio.sleep(GATHER_S)

    async def _poll(self, session: Registered, demand: Demand) -> dict[str, Any] | None:
        """The answer to a poll. None: the poll was given up, because there is something else to ask for."""
        body: dict[str, Any] = {"max": demand.jobs_max, "wait": to_wire(session.poll_wait_s), "seq": self._seq}
        if demand.slots:
            body["slots"] = dict(demand.slots)
        timeout_s = session.poll_wait_s + PATIENCE_S
        request = Request("POST", f"{session.path}/poll", encode(body), timeout_s=timeout_s)
        poll = self._session.loop.create_task(self._session.exchange(request))
        try:
            while True:
                self._session.changed.clear()
                if demand.is_outdated_by(self.demand()) or self._session.registered is not session:
                    return None
                changed = self._session.loop.create_task(self._session.changed.wait())
                await asyncio.wait({poll, changed}, return_when=asyncio.FIRST_COMPLETED)
                changed.cancel()
                if poll.done():
                    body_of: dict[str, Any] = poll.result().body
                    return body_of
        finally:
            if not poll.done():
                poll.cancel()
            await asyncio.gather(poll, return_exceptions=True)

    async def _polled(self, session: Registered, answer: dict[str, Any], sent_at: float) -> None:
        now = time.monotonic()
        entries: list[dict[str, Any]] = answer.get("jobs") or []
        late = now - sent_at > session.poll_wait_s + session.interval_s
        stalled = self._session.watchdog.stalled_since(sent_at)
        self._session.told(answer)
        if entries and (late or stalled):
            entries = await self._still_ours(session, entries)
        if self._session.registered is session:
            self._take(entries, now)

    async def _still_ours(self, session: Registered, entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The answer was read late: asks which of its jobs were given to others meanwhile."""
        tokens = [str(entry["token"]) for entry in entries]
        body: dict[str, Any] = {"attempts": []}
        if "resync" in self._session.features:
            body["tokens"] = [*self._session.held, *tokens]
        while self._session.registered is session:
            sent_at = time.monotonic()
            try:
                answer = (await self._session.exchange(Request("POST", f"{session.path}/heartbeat", encode(body)))).body
            except NotFound:
                self._session.lost(session.path)
                return []
            except (Unreachable, Problem) as error:
                self._session.watch.away(str(error))
                await asyncio.sleep(0.25)
                continue
            self._session.renew(sent_at, answer)
            self._session.told(answer)
            lost = set(answer.get("lost") or ())
            return [entry for entry in entries if entry["token"] not in lost]
        return []

    def _take(self, entries: list[dict[str, Any]], received_at: float) -> None:
        session = self._session
        some_handler = next(iter(session.handlers.values()))
        line_bytes_max = session.limit("log_line_bytes", LINE_BYTES_MAX)
        log_bytes_max = min(SENT_BYTES_MAX, session.limit("log_bytes", SENT_BYTES_MAX))
        attempts: list[Attempt] = []
        for entry in entries:
            assignment = Assignment.read(entry, read_job)
            if assignment.token not in session.held:  # else it is the same answer again
                handler = session.handlers.get(assignment.job.type, some_handler)
                logs = LogBuffer(session.log_budget, session.logged)
                logs.line_bytes_max, logs.bytes_max = line_bytes_max, log_bytes_max
                attempts.append(Attempt(assignment, handler, logs, received_at, entry["job"]))
        session.heartbeater.add([attempt.token for attempt in attempts])
        closed = session.draining or session.server_drain
        wanted: list[Attempt] = []
        for attempt in attempts:
            if not closed and attempt.job.type in session.handlers:
                wanted.append(attempt)
                session.hold(attempt)
            else:
                self._return_unstarted(attempt)
        if wanted:
            session.main.start(wanted)

    def _return_unstarted(self, attempt: Attempt) -> None:
        self._session.held[attempt.token] = attempt
        attempt.end(Outcome("released"))
        self._session.report(attempt, Outcome("released"))
