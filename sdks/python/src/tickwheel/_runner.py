"""Runs handlers: `async def` on the main loop, `def` on threads of its own, isolated ones in child processes.

Everything here happens on the main loop, except the handlers that have threads or processes. When an attempt has ended,
`ended` is called with its outcome, once.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import queue
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from . import _outcome
from ._attempt import Attempt
from ._handlers import Handler
from ._isolate import IsolatedPool
from ._logs import Line, current_sink
from ._outcome import Outcome
from ._tracing import attempt_span
from .context import CancelState, Context, Link, SyncContext
from .errors import InvalidPayload

if TYPE_CHECKING:
    from .aclient import AsyncClient
    from .client import Client

log = logging.getLogger("tickwheel.worker")

Next = Callable[[], Awaitable[Any]]
Middleware = Callable[[Any, Next], Awaitable[Any]]
BATCH_MISMATCH = "batch_result_mismatch"


class DaemonThreads:
    """Threads for handlers that block. They do not keep the process from exiting, unlike those of an executor."""

    def __init__(self) -> None:
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._idle = self._count = 0

    def submit(self, work: Callable[[], None]) -> None:
        """Runs the work on an idle thread, or on a new one."""
        with self._lock:
            grow = self._idle <= 0
            if grow:
                self._count += 1
            else:
                self._idle -= 1
        if grow:
            threading.Thread(target=self._run, args=(work,), daemon=True, name=f"tickwheel-{self._count}").start()
        else:
            self._work.put(work)

    def _run(self, work: Callable[[], None] | None) -> None:
        while work is not None:
            work()
            with self._lock:
                self._idle += 1
            work = self._work.get()

    def close(self) -> None:
        """Lets idle threads end."""
        with self._lock:
            for _ in range(self._count):
                self._work.put(None)


class Runner:
    """Executes attempts on the main loop."""

    def __init__(
        self,
        *,
        state: Any,
        middlewares: Sequence[Middleware],
        link: Callable[[Attempt], Link],
        ended: Callable[[Attempt, Outcome], None],
        client: Callable[[], AsyncClient],
        sync_client: Callable[[], Client],
        isolated: IsolatedPool | None,
        result_bytes_max: Callable[[], int] = lambda: _outcome.RESULT_BYTES_MAX,
    ) -> None:
        self._state, self._middlewares, self._link, self._ended = state, list(middlewares), link, ended
        self._client, self._sync_client = client, sync_client
        self._isolated = isolated
        self._result_bytes_max = result_bytes_max
        self._threads = DaemonThreads()
        self._loop = asyncio.get_running_loop()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._batches: dict[str, BatchCollector] = {}
        self._batch_links: dict[str, BatchLink] = {}

    def start(self, attempt: Attempt, *, more_may_come: bool = True) -> None:
        """Begins an attempt, unless it was given back before the main loop came to it."""
        if not attempt.begin():
            return
        if attempt.handler.kind == "batch":
            name = attempt.handler.job_type.name
            collector = self._batches.setdefault(name, BatchCollector(self._loop, attempt.handler, self._start_batch))
            collector.add(attempt, more_may_come)
            return
        self._track([attempt], self._execute(attempt))

    def cancel(self, attempt: Attempt) -> None:
        """Makes a handler notice that it must stop. The reason is in `attempt.cancel` already."""
        if attempt.phase == "ended":
            return
        if attempt.handler.kind == "batch":
            self._cancel_in_batch(attempt)
        elif attempt.handler.kind == "async":
            self._cancel_task(attempt)
        elif attempt.handler.kind == "isolated" and self._isolated is not None:
            self._isolated.cancel(attempt)

    def kill(self, attempt: Attempt) -> bool:
        """Ends a handler that has used up its grace. False: nobody can."""
        if attempt.handler.kind == "isolated" and self._isolated is not None:
            return self._isolated.kill(attempt)
        return False

    async def close(self) -> bool:
        """Lets go of threads and children. False: some handlers did not end."""
        self._threads.close()
        if self._isolated is not None:
            await self._isolated.close()
        return not self._tasks

    def _track(self, attempts: Sequence[Attempt], run: Any) -> None:
        task = self._loop.create_task(run)
        for attempt in attempts:
            self._tasks[attempt.token] = task
        task.add_done_callback(lambda done: self._untrack(attempts, done))

    def _untrack(self, attempts: Sequence[Attempt], task: asyncio.Task[None]) -> None:
        for attempt in attempts:
            self._tasks.pop(attempt.token, None)
            self._batch_links.pop(attempt.token, None)
        for attempt in attempts:
            if attempt.phase != "ended":  # it was cancelled before its first step
                error = asyncio.CancelledError() if task.cancelled() else task.exception() or RuntimeError()
                self._end(attempt, _outcome.failed(error, attempt.cancel.reason))

    def _cancel_task(self, attempt: Attempt) -> None:
        task = self._tasks.get(attempt.token)
        if task is not None:
            task.cancel()

    # One attempt.

    async def _execute(self, attempt: Attempt) -> None:
        handler = attempt.handler
        try:
            payload = handler.job_type.read_payload(attempt.job.payload)
        except InvalidPayload as error:
            self._end(attempt, _outcome.invalid_payload(error))
            return
        link = self._link(attempt)
        context = self._context(link, [attempt])
        call = self._call_of(attempt, payload, context, link)
        ended, value = await self._surrounded([attempt], link, context, call)
        if not ended:
            self._end(attempt, _outcome.failed(value, attempt.cancel.reason, handler.not_retryable))
        elif isinstance(value, Outcome):  # an isolated handler's, which has crossed a pipe already
            self._end(attempt, value)
        else:
            self._end(attempt, _outcome.completed(handler.job_type, value, self._result_bytes_max()))

    def _call_of(self, attempt: Attempt, payload: Any, context: Context[Any], link: Link) -> Next:
        handler = attempt.handler
        if handler.kind == "thread" or (handler.kind == "isolated" and self._isolated is None):
            return lambda: self._on_thread(handler, payload, attempt, link)
        if handler.kind == "isolated" and self._isolated is not None:
            isolated = self._isolated
            return lambda: isolated.run(attempt, link)
        return lambda: handler.call(payload, context)

    def _context(self, link: Link, attempts: Sequence[Attempt]) -> Context[Any]:
        first = attempts[0].assignment
        context: Context[Any] = Context(
            jobs=[attempt.job for attempt in attempts],
            attempt=first.number,
            fencing_token=first.fencing_token,
            deadline=min(attempt.deadline for attempt in attempts),
            state=self._state,
            link=link,
            traceparent=first.traceparent,
            client=self._client,
        )
        return context

    async def _surrounded(
        self, attempts: Sequence[Attempt], link: Link, context: Context[Any], call: Next
    ) -> tuple[bool, Any]:
        """Calls a handler inside the middlewares. Whether it returned, and what; else what it raised."""
        returned: list[Any] = []

        async def innermost() -> Any:
            value = await call()
            returned.append(value)
            return value

        chain: Next = innermost
        for middleware in reversed(self._middlewares):
            chain = _wrapped(middleware, context, chain)
        token = current_sink.set(link.log)
        jobs = [(a.job.id, a.assignment.number, a.assignment.traceparent) for a in attempts]
        first = attempts[0]
        try:
            with attempt_span(first.job.type, first.job.queue, jobs, batch=first.handler.kind == "batch"):
                return True, await chain()
        except BaseException as error:
            if returned:
                log.warning("a middleware failed after the handler had returned: %r", error, extra=first.fields)
                return True, returned[0]
            return False, error
        finally:
            current_sink.reset(token)

    async def _on_thread(self, handler: Handler, payload: Any, attempt: Attempt, link: Link) -> Any:
        future: asyncio.Future[Any] = self._loop.create_future()
        context: SyncContext[Any] = SyncContext(
            jobs=[attempt.job],
            attempt=attempt.assignment.number,
            fencing_token=attempt.assignment.fencing_token,
            deadline=attempt.deadline,
            state=self._state,
            link=link,
            traceparent=attempt.assignment.traceparent,
            client=self._sync_client,
        )
        variables = contextvars.copy_context()

        def work() -> None:
            try:
                value, error = variables.run(handler.call, payload, context), None
            except BaseException as raised:
                value, error = None, raised
            try:
                self._loop.call_soon_threadsafe(_settle, future, value, error)
            except RuntimeError:
                pass  # the loop is gone: the worker has left

        self._threads.submit(work)
        return await future

    def _end(self, attempt: Attempt, outcome: Outcome) -> None:
        if attempt.end(outcome):
            self._ended(attempt, outcome)

    # Batches.

    def _start_batch(self, attempts: Sequence[Attempt]) -> None:
        self._track(attempts, self._execute_batch(attempts))

    def _cancel_in_batch(self, attempt: Attempt) -> None:
        reason = attempt.cancel.reason or "shutdown"
        collector = self._batches.get(attempt.handler.job_type.name)
        if collector is not None and collector.remove(attempt):
            self._end(attempt, _outcome.stopped(reason))
            return
        # The call is one: it stops only when nobody wants any of its results.
        task = self._tasks.get(attempt.token)
        link = self._batch_links.get(attempt.token)
        if task is not None and link is not None and link.all_cancelled:
            link.cancel.set(reason)
            task.cancel()

    async def _execute_batch(self, attempts: Sequence[Attempt]) -> None:
        handler = attempts[0].handler
        readable: list[Attempt] = []
        payloads: list[Any] = []
        for attempt in attempts:
            try:
                payloads.append(handler.job_type.read_payload(attempt.job.payload))
                readable.append(attempt)
            except InvalidPayload as error:
                self._end(attempt, _outcome.invalid_payload(error))
        if not readable:
            return
        link = BatchLink([self._link(attempt) for attempt in readable])
        self._batch_links.update(dict.fromkeys((attempt.token for attempt in readable), link))
        context = self._context(link, readable)
        ended, value = await self._surrounded(readable, link, context, lambda: handler.call(payloads, context))
        for attempt, outcome in zip(readable, self._batch_outcomes(handler, readable, ended, value), strict=True):
            self._end(attempt, outcome)

    def _batch_outcomes(
        self, handler: Handler, attempts: Sequence[Attempt], ended: bool, value: Any
    ) -> Sequence[Outcome]:
        if not ended:
            return [_outcome.failed(value, attempt.cancel.reason, handler.not_retryable) for attempt in attempts]
        entries: list[Any] | None = list(cast("Any", value)) if isinstance(value, (list, tuple)) else None
        if entries is None or len(entries) != len(attempts):
            found = f"a {type(cast('Any', value)).__name__}" if entries is None else len(entries)
            text = f"the handler was given {len(attempts)} jobs and returned {found}"
            return [Outcome("failed", error=_outcome.Failure(BATCH_MISMATCH, text)) for _ in attempts]
        return [
            _outcome.failed(entry, attempt.cancel.reason, handler.not_retryable)
            if isinstance(entry, BaseException)
            else _outcome.completed(handler.job_type, entry, self._result_bytes_max())
            for attempt, entry in zip(attempts, entries, strict=True)
        ]


def _wrapped(middleware: Middleware, context: Context[Any], chain: Next) -> Next:
    async def call() -> Any:
        return await middleware(context, chain)

    return call


def _settle(future: asyncio.Future[Any], value: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(value)
    elif isinstance(error, StopIteration):  # which no future can hold
        future.set_exception(RuntimeError("the handler raised StopIteration"))
    else:
        future.set_exception(error)


class BatchCollector:
    """Gathers jobs of one type until there are enough, or the first one has waited long enough."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, handler: Handler, start: Callable[[Sequence[Attempt]], None]
    ) -> None:
        self._loop, self._handler, self._start = loop, handler, start
        self._waiting: list[Attempt] = []
        self._timer: asyncio.TimerHandle | None = None

    def add(self, attempt: Attempt, more_may_come: bool) -> None:
        """Adds a job. If no more can come, there is nothing to wait for."""
        self._waiting.append(attempt)
        if len(self._waiting) >= self._handler.jobs_max or not more_may_come:
            self.flush()
        elif self._timer is None:
            self._timer = self._loop.call_later(self._handler.wait_max_s, self.flush)

    def remove(self, attempt: Attempt) -> bool:
        """Takes out a job that was cancelled before its batch began. False: it is not here."""
        if attempt not in self._waiting:
            return False
        self._waiting.remove(attempt)
        return True

    def flush(self) -> None:
        """Starts what there is."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        batch, self._waiting = self._waiting[: self._handler.jobs_max], self._waiting[self._handler.jobs_max :]
        if batch:
            self._start(batch)
        if self._waiting:
            self._timer = self._loop.call_later(self._handler.wait_max_s, self.flush)


class BatchLink(Link):
    """The surroundings of a batch: what its handler says is said of each of its jobs."""

    def __init__(self, links: Sequence[Link]) -> None:
        self._links = list(links)
        self.cancel = CancelState()

    @property
    def all_cancelled(self) -> bool:
        return all(link.cancel.reason is not None for link in self._links)

    def send(self, operation: str, **arguments: Any) -> Any:
        return self._links[0].send(operation, **arguments)

    def progress(self, percent: float, message: str | None) -> None:
        for link in self._links:
            link.progress(percent, message)

    def log(self, line: Line) -> None:
        for link in self._links:
            link.log(Line(line.level, line.message, line.written_at, line.fields))

    @property
    def draining(self) -> bool:
        return self._links[0].draining
