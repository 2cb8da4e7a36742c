"""Runs a handler the way a worker would: JSON both ways, middleware, error rules, but no server."""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
import threading
import time
import uuid
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, Generic, TypeVar, cast

from .._attempt import Assignment, Attempt
from .._durations import Duration, seconds
from .._handlers import Handler
from .._logs import ForwardingHandler, Line, LogBudget, LogBuffer
from .._outcome import Failure, Outcome, Reason, Status
from .._runner import Runner
from ..context import CancelState, Link
from ..jobtype import JobType
from ..models import Job
from ..worker import Worker
from ._recording import AsyncRecordingClient, RecordingClient

P = TypeVar("P")
R = TypeVar("R")
T = TypeVar("T")


@dataclass(frozen=True)
class Result(Generic[R]):
    """How an attempt ended: what the server would be told."""

    status: Status
    """`completed`, `failed`, `snoozed`, `cancelled` or `released`."""
    result: R | None = None
    """The result, after a way through JSON."""
    error: Failure | None = None
    """Why it failed: `code`, `message`, `type`, `stack`."""
    retryable: bool = True
    """Whether the server may try again."""
    delay: float | None = None
    """The delay that `RetryAfter` or `Snooze` asked for, in seconds."""
    progress: list[tuple[float, str | None]] = field(default_factory=lambda: list[tuple[float, "str | None"]]())
    """What was said with `ctx.progress`."""
    logs: list[str] = field(default_factory=lambda: list[str]())
    """The messages that would be in the job's log."""
    submitted: list[Any] = field(default_factory=lambda: list[Any]())
    """What was submitted with `ctx.client`."""


class TestLink(Link):
    """The surroundings of a handler in a test. `once` remembers for as long as the test runs it."""

    __test__ = False

    def __init__(self, cancel: CancelState) -> None:
        self.cancel = cancel
        self.said: list[tuple[float, str | None]] = []
        self.lines: list[Line] = []
        self._done: dict[str, Any] = {}

    def send(self, operation: str, **arguments: Any) -> concurrent.futures.Future[Any]:
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        future.set_result(self._answer(operation, arguments))
        return future

    def _answer(self, operation: str, arguments: dict[str, Any]) -> Any:
        if operation == "heartbeat":
            return "held"
        key = arguments["key"]
        if operation == "once":
            return {"state": "done", "result": self._done[key]} if key in self._done else {"state": "first"}
        if operation == "once_done":
            self._done[key] = arguments["result"]
        return None

    def progress(self, percent: float, message: str | None) -> None:
        self.said.append((percent, message))

    def log(self, line: Line) -> None:
        self.lines.append(line)

    @property
    def draining(self) -> bool:
        return False


def run(
    worker: Worker[Any],
    job_type: JobType[P, R],
    payload: P,
    *,
    state: Any = None,
    attempt: int = 1,
    timeout: Duration = "5m",
    cancel_after: Duration | None = None,
    cancel_reason: Reason = "requested",
) -> Result[R]:
    """Runs the worker's handler of a job type once. `cancel_after` cancels it, as the server would."""
    cancel_s = None if cancel_after is None else seconds(cancel_after)
    arguments = _Arguments(worker, job_type, state, attempt, seconds(timeout), cancel_s, cancel_reason)
    (result,) = _blocking(lambda: _run(arguments, [payload]))
    return result


def run_batch(
    worker: Worker[Any], job_type: JobType[P, R], payloads: Sequence[P], *, state: Any = None, attempt: int = 1
) -> list[Result[R]]:
    """Runs the worker's batch handler of a job type with all of these at once. One result per payload, in order."""
    arguments = _Arguments(worker, job_type, state, attempt, 300.0, None, "requested")
    return _blocking(lambda: _run(arguments, payloads))


@dataclass(frozen=True)
class _Arguments:
    worker: Worker[Any]
    job_type: JobType[Any, Any]
    state: Any
    number: int
    timeout_s: float
    cancel_s: float | None
    cancel_reason: Reason


def _blocking(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Runs a coroutine, also if the test has a loop that is running."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work())
    outcome: list[Any] = []
    thread = threading.Thread(target=lambda: outcome.append(_caught(work)), daemon=True)
    thread.start()
    thread.join()
    value, error = outcome[0]
    if error is not None:
        raise error
    return cast("T", value)


def _caught(work: Callable[[], Coroutine[Any, Any, Any]]) -> tuple[Any, BaseException | None]:
    try:
        return asyncio.run(work()), None
    except BaseException as error:
        return None, error


async def _run(arguments: _Arguments, payloads: Sequence[Any]) -> list[Result[Any]]:
    worker, job_type = arguments.worker, arguments.job_type
    handler = worker.handlers.get(job_type.name)
    if handler is None:
        raise LookupError(f"the worker has no handler for {job_type.name}")
    if len(payloads) != 1 and handler.kind != "batch":
        raise LookupError(f"the handler of {job_type.name} is not a batch handler")
    attempts = [_attempt(arguments, handler, payload) for payload in payloads]
    links = {attempt.token: TestLink(attempt.cancel) for attempt in attempts}
    client, sync_client = AsyncRecordingClient(), RecordingClient()
    ended: dict[str, Outcome] = {}
    all_ended = asyncio.Event()

    def note(attempt: Attempt, outcome: Outcome) -> None:
        ended[attempt.token] = outcome
        if len(ended) == len(attempts):
            all_ended.set()

    runner = Runner(
        state=arguments.state,
        middlewares=worker.middlewares,
        link=lambda attempt: links[attempt.token],
        ended=note,
        client=lambda: client,
        sync_client=lambda: sync_client,
        isolated=None,  # a test wants to look into its handler, so it runs in this process
    )
    with ForwardingHandler.installed():
        for attempt in attempts:
            runner.start(attempt)
        if arguments.cancel_s is not None:
            await asyncio.sleep(arguments.cancel_s)
            for attempt in attempts:
                attempt.cancel.set(arguments.cancel_reason)
                runner.cancel(attempt)
        await all_ended.wait()
    await runner.close()
    submitted = [*client.submitted, *sync_client.submitted]
    return [_result(job_type, ended[attempt.token], links[attempt.token], submitted) for attempt in attempts]


def _attempt(arguments: _Arguments, handler: Handler, payload: Any) -> Attempt:
    new = arguments.job_type.new(payload)
    now = datetime.now(timezone.utc)
    options = new.options
    job = Job(
        attempt=arguments.number,
        cancel_requested=False,
        created_at=now,
        delivery=options.get("delivery", "at_least_once"),
        depends_on=[],
        execute_at=now,
        id=str(uuid.uuid4()),
        max_retries=options.get("retry", {}).get("max_retries", 3),
        metadata=dict(options.get("metadata", {})),
        priority=options.get("priority", "normal"),
        queue=options.get("queue", "default"),
        retries=max(0, arguments.number - 1),
        retry=dict(options.get("retry", {})),
        status="running",
        tags=list(options.get("tags", [])),
        target={"worker": {}},
        tenant="default",
        timeout=f"{arguments.timeout_s:g}s",
        type=arguments.job_type.name,
        payload=json.loads(json.dumps(new.payload)),
    )
    assignment = Assignment(job, arguments.number, uuid.uuid4().hex, arguments.number, arguments.timeout_s, None)
    return Attempt(assignment, handler, LogBuffer(LogBudget()), time.monotonic())


def _result(job_type: JobType[Any, R], outcome: Outcome, link: TestLink, submitted: list[Any]) -> Result[R]:
    value = None if outcome.result is None else job_type.read_result(json.loads(outcome.result))
    return Result(
        status=outcome.status,
        result=value,
        error=outcome.error,
        retryable=outcome.retryable,
        delay=outcome.delay_s,
        progress=link.said,
        logs=[line.message for line in link.lines],
        submitted=submitted,
    )
