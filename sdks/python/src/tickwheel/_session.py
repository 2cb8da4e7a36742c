"""A worker's session with the server: everything that talks to it except heartbeats.

    connecting ─registered─▶ polling ⇄ full ──drain──▶ draining ──▶ cancelling ──▶ leaving
        ▲                       │ 404 unknown_worker: all attempts are lost
        └───────────────────────┘

All of this runs on one thread with a loop of its own, so that a handler that blocks the main loop stops neither
reports nor logs. The main side is reached through `MainSide`, and reaches in through `call_soon_threadsafe`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import socket
import time
import uuid
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from . import _outcome
from ._attempt import Attempt, tail
from ._backoff import Backoff
from ._beats import Heartbeater
from ._codec import encode
from ._durations import seconds, to_wire
from ._handlers import Handler
from ._http import API, AnswerTooLarge, AsyncTransport, Request
from ._lease import Lease
from ._log_sender import send_logs_for_ever
from ._logs import LogBudget
from ._operations import Operations
from ._outcome import Outcome, Reason
from ._poller import Poller
from ._reporter import report_for_ever
from ._reports import Reports
from ._server_watch import ServerWatch
from ._settings import WorkerSettings
from ._version import VERSION
from ._waiting import wait, wait_for_either
from ._watchdog import Watchdog
from .errors import Forbidden, Problem, ProtocolUnsupported, Unauthorized, Unreachable, WorkerRefused

log = logging.getLogger("tickwheel.worker")

PROTOCOL = 1
STUCK_LOG_S = 30.0
REFUSED_S = 30.0
CONNECT_S_MAX = 2.0  # who waits for a server takes a job soon after it is back
LOGS_BYTES = 64 * 1024
PROGRESS_FLUSH_S = 0.1
CANCELLED_EARLY_MAX = 100
REGISTERING_S_MAX = 1.0


class MainSide(Protocol):
    """What the session asks of the main loop. Each call returns at once."""

    def start(self, attempts: list[Attempt]) -> None: ...
    def cancel(self, attempt: Attempt) -> None: ...
    def kill(self, attempt: Attempt) -> None: ...
    def draining(self) -> None: ...
    def ping(self, pong: Callable[[], None]) -> None: ...
    def main_thread(self) -> int: ...


@dataclass(frozen=True)
class Registered:
    """What the server answered to the registration."""

    worker_id: str
    lease_s: float
    interval_s: float
    poll_wait_s: float
    limits: Mapping[str, int]

    @property
    def path(self) -> str:
        return f"{API}/workers/{self.worker_id}"


class Session:
    """A worker's session, on the network thread."""

    def __init__(self, settings: WorkerSettings, handlers: Mapping[str, Handler], queues: list[str]) -> None:
        self.settings, self.handlers, self._queues = settings, handlers, queues
        self.registered: Registered | None = None
        self.features: frozenset[str] = frozenset()
        self.lease = Lease()
        self.reports = Reports()
        self.log_budget = LogBudget()
        self.held: dict[str, Attempt] = {}
        """Attempts that the server counts as ours: until their report was accepted."""
        self.running: dict[str, Attempt] = {}
        """Attempts whose handlers have not ended: each takes a slot."""
        self.jobs_started = 0
        self.draining = False
        self.server_drain = False
        self.main_blocked = False
        self.lease_warned = False
        self.watch = ServerWatch()
        self.changed = asyncio.Event()
        """Set when there is more or less to ask for than before."""
        self.reports_ready = asyncio.Event()
        self.logs_ready = asyncio.Event()
        self.poller = Poller(self)
        self.watchdog = Watchdog(self)
        self.operations = Operations(self)
        self.heartbeater = Heartbeater(self._hear)
        self._session_ready = asyncio.Event()
        self._drain = asyncio.Event()
        self._skip = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._timers: dict[str, list[asyncio.TimerHandle]] = {}
        self._progress: dict[str, dict[str, Any]] = {}
        self._tasks: list[asyncio.Task[Any]] = []
        self._registering = False
        self._fault: BaseException | None = None
        self._cancelled_early: deque[str] = deque(maxlen=CANCELLED_EARLY_MAX)
        """Cancels that were heard before the answer that brings the job. Of others, nobody minds."""

    # Life.

    async def run(self, main: MainSide, ready: Callable[[], None]) -> None:
        """From the first request to the last. Raises `WorkerRefused` if the server refuses the worker at the start."""
        self.loop = asyncio.get_running_loop()
        self.main = main
        self._transport = AsyncTransport(self.settings.connection)
        try:
            if not await self._connect_unless_drained():
                return
            ready()
            beating = asyncio.Event()
            self._spawn(self.heartbeater.run(beating))
            await beating.wait()
            for work in (self.poller.run(), report_for_ever(self), send_logs_for_ever(self), self.watchdog.run()):
                self._spawn(work)
            await self._until_drained()
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await self._leave()
            await self._transport.close()
        if self._fault is not None:
            raise self._fault

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self.loop.create_task(work)
        self._tasks.append(task)
        task.add_done_callback(self._ended_task)

    def _ended_task(self, task: asyncio.Task[None]) -> None:
        self._tasks.remove(task)
        if not task.cancelled() and task.exception() is not None:
            self._fault = task.exception()
            log.critical("the worker has a fault and drains", exc_info=self._fault)
            self.begin_drain()

    async def _connect_unless_drained(self) -> bool:
        """Whether it is registered. A signal ends the wait for a server."""
        connecting = self.loop.create_task(self._connect(first=True))
        draining = self.loop.create_task(self._drain.wait())
        await asyncio.wait({connecting, draining}, return_when=asyncio.FIRST_COMPLETED)
        draining.cancel()
        if self._registering:  # a session that the server opens now should be left
            await asyncio.wait({connecting}, timeout=REGISTERING_S_MAX)
        if not connecting.done():
            connecting.cancel()
            await asyncio.gather(connecting, return_exceptions=True)
            return False
        connecting.result()
        return True

    async def _connect(self, *, first: bool) -> None:
        """Registers, for as long as it takes."""
        backoff = Backoff(CONNECT_S_MAX)
        body = self._registration()
        while True:
            try:
                info = (await self.exchange(Request("GET", f"{API}/server", timeout_s=10.0))).body
                self._check_protocol(info)
                self.features = frozenset(info.get("features") or ())
                asked_at = time.monotonic()
                self._registering = True
                answer = (await self.exchange(Request("POST", f"{API}/workers", body, timeout_s=10.0))).body
            except (Unreachable, AnswerTooLarge) as error:
                self.watch.away(str(error))
                await asyncio.sleep(backoff.after(error))
            except Problem as problem:
                if problem.status in (401, 403, 404, 422) and first:
                    raise WorkerRefused(f"the server refused the worker: {problem.status} {problem}") from problem
                if problem.status < 500 and problem.status != 429:
                    await self.refused(problem)
                else:
                    self.watch.away(str(problem))
                    await asyncio.sleep(backoff.after(problem))
            else:
                self.watch.back()
                self._enter(
                    Registered(
                        worker_id=str(answer["worker_id"]),
                        lease_s=seconds(answer["lease"]),
                        interval_s=seconds(answer.get("heartbeat_interval") or seconds(answer["lease"]) / 3),
                        poll_wait_s=seconds(answer.get("poll_wait") or 20.0),
                        limits=answer.get("limits") or {},
                    ),
                    asked_at,
                )
                return

    def _registration(self) -> bytes:
        settings = self.settings
        body: dict[str, Any] = {
            "name": settings.name,
            "queues": self._queues,
            "types": sorted(self.handlers),
            "capacity": settings.capacity,
            "protocol": PROTOCOL,
            "library": f"python/{VERSION}",
            "instance": str(uuid.uuid4()),
            "host": socket.gethostname()[:200] or "unknown",
            "pid": os.getpid(),
        }
        if settings.labels:
            body["labels"] = settings.labels
        if settings.lease_s is not None:
            body["lease"] = to_wire(settings.lease_s)
        return encode(body)

    def _check_protocol(self, info: Any) -> None:
        spoken: Any = info.get("worker_protocol") if hasattr(info, "get") else None
        if not spoken or not int(spoken["min"]) <= PROTOCOL <= int(spoken["max"]):
            raise ProtocolUnsupported(
                status=422,
                code="protocol_unsupported",
                detail=f"this library speaks worker protocol {PROTOCOL}, the server {spoken}",
            )

    def _enter(self, registered: Registered, asked_at: float) -> None:
        self.registered = registered
        self.lease.end()
        self.lease.renew(asked_at, registered.lease_s)
        self.lease_warned = False
        connection = self.settings.connection
        self.heartbeater.session(
            {
                "path": registered.path,
                "addresses": connection.addresses.urls,
                "index": connection.addresses.urls.index(connection.addresses.current),
                "key": connection.key.value,
                "key_file": str(connection.key.path) if connection.key.path else None,
                "ca_file": connection.ca_file,
                "lease_s": registered.lease_s,
                "interval_s": registered.interval_s,
                "resync": "resync" in self.features,
            }
        )
        log.info(
            "registered with %s: types %s, queues %s, capacity %d, lease %g s (worker_id=%s)",
            connection.addresses.current,
            ", ".join(sorted(self.handlers)),
            ", ".join(self._queues),
            self.settings.capacity,
            registered.lease_s,
            registered.worker_id,
            extra={"worker_id": registered.worker_id},
        )
        self._session_ready.set()

    def limit(self, name: str, otherwise: int) -> int:
        """A limit that the server gave with the registration."""
        return int(self.registered.limits.get(name, otherwise)) if self.registered else otherwise

    async def session(self) -> Registered:
        while self.registered is None:
            await self._session_ready.wait()
        return self.registered

    def lost(self, path: str) -> None:
        """The server does not know the session any more: what it held belongs to others."""
        if self.registered is None or self.registered.path != path:
            return
        worker_id = self.registered.worker_id
        lost = [attempt for attempt in self.held.values() if attempt.phase != "ended"]
        log.error("lease lost: the server ended the session, %d attempts are lost (worker_id=%s)", len(lost), worker_id)
        self.registered = None
        self._session_ready.clear()
        self.lease.end()
        self.heartbeater.session(None)
        for attempt in lost:
            self._abandon(attempt)
        self._spawn(self._reconnect())

    async def _reconnect(self) -> None:
        await asyncio.sleep(random.uniform(0, 1))  # noqa: S311 - spreads load
        await self._connect(first=False)
        self.changed.set()

    async def refused(self, problem: Problem) -> None:
        """The server does not want us for now: again after a while, or as soon as there is another key."""
        log.error("refused by the server: %s", problem)
        until = time.monotonic() + REFUSED_S
        while time.monotonic() < until:
            if problem.status in (401, 403) and self.settings.connection.key.reload():
                return
            await asyncio.sleep(1.0)

    async def exchange(self, request: Request) -> Any:
        try:
            return await self._transport.exchange(request)
        except (Unauthorized, Forbidden):
            if not self.settings.connection.key.reload():
                raise
            return await self._transport.exchange(request)

    async def call(self, request: Request) -> Any:
        """The body of an answer."""
        return (await self.exchange(request)).body

    # What the server says.

    def told(self, answer: Mapping[str, Any]) -> None:
        """What answers to polls and heartbeats have in common."""
        for token in answer.get("cancel") or ():
            attempt = self.held.get(token)
            if attempt is not None:
                self.cancel(attempt, "requested")
            else:
                self._cancelled_early.append(token)
        for token in answer.get("lost") or ():
            attempt = self.held.get(token)
            if attempt is not None and attempt.phase != "ended":
                log.error("lease lost: the attempt is somebody else's now%s", tail(attempt), extra=attempt.fields)
                self._abandon(attempt)
        drain = bool(answer.get("drain"))
        if drain != self.server_drain:
            self.server_drain = drain
            log.info("draining: the server asks for it" if drain else "taking jobs again: the server asks for it")
            self._tell_state()
            self.changed.set()

    def hold(self, attempt: Attempt) -> None:
        self.held[attempt.token] = self.running[attempt.token] = attempt
        self.jobs_started += 1
        attempt.worker_id = self.registered.worker_id if self.registered else None
        self._idle.clear()
        left_s = max(0.0, attempt.deadline - time.monotonic())
        self._later(attempt, left_s, lambda: self.cancel(attempt, "deadline"))
        if log.isEnabledFor(logging.DEBUG):
            log.debug("start%s", tail(attempt), extra=attempt.fields)
        if attempt.token in self._cancelled_early:
            self.cancel(attempt, "requested")

    def _later(self, attempt: Attempt, delay_s: float, action: Callable[[], None]) -> None:
        self._timers.setdefault(attempt.token, []).append(self.loop.call_later(delay_s, action))

    # Cancelling and ending.

    def cancel(self, attempt: Attempt, reason: Reason) -> None:
        """Makes an attempt stop."""
        if attempt.phase == "ended" or not attempt.cancel.set(reason):
            return
        if attempt.give_back():
            self.ended(attempt, _outcome.stopped(reason))
            return
        log.debug("cancelling: %s%s", reason, tail(attempt), extra=attempt.fields)
        self.main.cancel(attempt)
        self._later(attempt, attempt.handler.cancel_grace_s, lambda: self._grace_over(attempt))

    def _grace_over(self, attempt: Attempt) -> None:
        if attempt.phase == "ended":
            return
        if attempt.handler.kind == "isolated":
            self.main.kill(attempt)
            return
        attempt.stuck_since = time.monotonic()
        self._say_stuck(attempt)
        self._tell_state()

    def _say_stuck(self, attempt: Attempt) -> None:
        if attempt.phase == "ended":
            return
        since = attempt.stuck_since or 0.0
        log.warning(
            "slot stuck: %s does not end, %.0f s after its grace (cancelled: %s)%s",
            attempt.handler.name,
            time.monotonic() - since,
            attempt.cancel.reason,
            tail(attempt),
            extra=attempt.fields,
        )
        self._later(attempt, STUCK_LOG_S, lambda: self._say_stuck(attempt))

    @property
    def stuck(self) -> int:
        """How many slots are taken by handlers that do not end."""
        return sum(1 for attempt in self.running.values() if attempt.stuck_since is not None)

    def _tell_state(self) -> None:
        self.heartbeater.state("draining" if self.draining or self.server_drain else "active", self.stuck)

    def _abandon(self, attempt: Attempt) -> None:
        """An attempt belongs to somebody else now."""
        self.heartbeater.drop([attempt.token])
        if attempt.handler.on_lease_lost == "continue":
            return  # what it will have to say is offered, and the fencing token decides
        self.held.pop(attempt.token, None)
        attempt.abandoned = True
        self.cancel(attempt, "lease_lost")

    def ended(self, attempt: Attempt, outcome: Outcome) -> None:
        """A handler has ended."""
        for timer in self._timers.pop(attempt.token, ()):
            timer.cancel()
        self.running.pop(attempt.token, None)
        self._progress.pop(attempt.token, None)
        if attempt.stuck_since is not None:
            attempt.stuck_since = None
            self._tell_state()
        if not self.running:
            self._idle.set()
        self.changed.set()
        self._log_end(attempt, outcome)
        if attempt.abandoned:
            attempt.logs.discard()
        else:
            self.report(attempt, outcome)

    def _log_end(self, attempt: Attempt, outcome: Outcome) -> None:
        if outcome.status == "failed" and outcome.error is not None:
            error = outcome.error
            text = "attempt failed: %s: %s%s"
            log.warning(text, error.code, error.message[:500], tail(attempt), extra=attempt.fields)
        elif log.isEnabledFor(logging.DEBUG):
            log.debug("end: %s%s", outcome.status, tail(attempt), extra=attempt.fields)

    # Reports.

    def report(self, attempt: Attempt, outcome: Outcome) -> None:
        self.reports.add(attempt, outcome)
        self.reports_ready.set()

    # Logs and progress.

    def logged(self, waiting_bytes: int) -> None:
        if waiting_bytes >= LOGS_BYTES and not self.logs_ready.is_set():
            self.loop.call_soon_threadsafe(self.logs_ready.set)

    def progressed(self, token: str, percent: float, message: str | None) -> None:
        """An attempt has come further. From any thread."""
        entry: dict[str, Any] = {"token": token, "progress": percent}
        if message:
            entry["message"] = message
        first = not self._progress
        self._progress[token] = entry
        if first:
            self.loop.call_soon_threadsafe(self.loop.call_later, PROGRESS_FLUSH_S, self._flush_progress)

    def _flush_progress(self) -> None:
        progress, self._progress = self._progress, {}
        self.heartbeater.progress(progress)

    # Heartbeats and the lease.

    def _hear(self, message: dict[str, Any]) -> None:
        """What the heartbeater says."""
        kind = message["kind"]
        session = self.registered
        if kind == "ready" or session is None or message.get("session") != session.path:
            return
        if kind == "beat":
            self.watch.back()
            self.renew(message["sent"], message["answer"])
            self.told(message["answer"])
        elif kind == "failed":
            self.watch.away(str(message["why"]))
        elif kind == "unknown":
            self.lost(session.path)
        elif kind == "refused":
            log.error("refused by the server: heartbeats: %s %s", message["status"], message["code"] or "")

    def heard(self, sent_at: float, answer: Mapping[str, Any]) -> None:
        """A heartbeat was accepted."""
        self.renew(sent_at, answer)
        self.told(answer)

    def renew(self, sent_at: float, answer: Mapping[str, Any]) -> None:
        lease = answer.get("lease")
        self.lease.renew(sent_at, seconds(lease) if lease else self.lease.lease_s)
        if self.lease_warned and self.lease.is_provable(time.monotonic()):
            self.lease_warned = False

    # Draining.

    def begin_drain(self) -> None:
        """Takes no more jobs, and ends when those that run have ended."""
        if self.draining:
            return
        self.draining = True
        log.info("draining: %d attempts run, at most %g s", len(self.running), self.settings.drain_timeout_s)
        self._drain.set()
        self._tell_state()
        self.main.draining()
        self.changed.set()

    def hurry(self) -> None:
        """Does not wait for handlers any longer."""
        self._skip.set()

    async def _until_drained(self) -> None:
        await self._drain.wait()
        ends_at = time.monotonic() + self.settings.drain_timeout_s + self.settings.cancel_stage_s
        await wait_for_either(self._idle, self._skip, self.settings.drain_timeout_s)
        if self.running:
            log.info("draining: %d attempts did not end and are cancelled", len(self.running))
            for attempt in list(self.running.values()):
                self.cancel(attempt, "shutdown")
            await wait(self._idle, self.settings.cancel_stage_s)
        # What has ended is reported, for as long as there is time; at least one try.
        patience_s = max(1.0, ends_at - time.monotonic()) if not self._skip.is_set() else 1.0
        until = time.monotonic() + patience_s
        while len(self.reports) and time.monotonic() < until:
            await asyncio.sleep(0.01)

    async def _leave(self) -> None:
        session, self.registered = self.registered, None
        if session is not None:
            try:
                path = f"{session.path}?reason=drained"
                await asyncio.wait_for(self._transport.exchange(Request("DELETE", path, timeout_s=2.0)), 2.0)
            except (Unreachable, Problem, asyncio.TimeoutError) as error:
                log.warning("could not leave, the lease ends by itself: %s", error)
        await self.heartbeater.close()
        if self.draining:
            left = len(self.running)
            log.info("drained" if not left else f"drained: {left} attempts were left behind and go back")
