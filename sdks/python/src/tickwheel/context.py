"""What a handler is given beside its payload.

A context talks to its surroundings through a `Link`: in a worker that is the thread that talks to the server, in an
isolated child a pipe to the worker, in a test nothing at all.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import inspect
import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, TypedDict, TypeVar, cast, overload

from ._codec import Mismatch, codec_for, encode, to_json
from ._durations import Duration, seconds, to_wire
from ._logs import JobLogger, Line
from .errors import Cancelled, LeaseLost, NotRetryable
from .models import Job

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._outcome import Reason
    from .aclient import AsyncClient
    from .client import Client

S = TypeVar("S")
T = TypeVar("T")

ONCE_RESULT_BYTES_MAX = 64 * 1024
PROGRESS_MESSAGE_CHARS_MAX = 200


class CancelState:
    """Whether an attempt must stop, and why. The first reason stays. Any thread may look."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self._reason: Reason | None = None
        self._lock = threading.Lock()

    @property
    def reason(self) -> Reason | None:
        return self._reason

    def set(self, reason: Reason) -> bool:
        """Whether this was the first reason."""
        with self._lock:
            if self._reason is not None:
                return False
            self._reason = reason
        self.event.set()
        return True

    def set_from_signal(self, reason: Reason) -> None:
        """The same without any lock: whoever holds it may be the one that was interrupted."""
        self._reason = self._reason or reason

    def check(self) -> None:
        """Raises `Cancelled` or `LeaseLost` if the attempt must stop."""
        if self._reason is not None:
            raise LeaseLost() if self._reason == "lease_lost" else Cancelled(self._reason)


class Link(ABC):
    """What a context needs from its surroundings."""

    cancel: CancelState

    @abstractmethod
    def send(self, operation: str, **arguments: Any) -> concurrent.futures.Future[Any]:
        """Starts `heartbeat`, `once`, `once_done` or `once_abandon`."""

    @abstractmethod
    def progress(self, percent: float, message: str | None) -> None:
        """Takes the latest progress."""

    @abstractmethod
    def log(self, line: Line) -> None:
        """Takes a line of the job's log."""

    @property
    @abstractmethod
    def draining(self) -> bool:
        """Whether the worker takes no new jobs."""


class _Arguments(TypedDict):
    jobs: Sequence[Job]
    attempt: int
    fencing_token: int
    deadline: float
    state: Any
    link: Link
    traceparent: str | None


class _BaseContext(Generic[S]):
    def __init__(
        self,
        *,
        jobs: Sequence[Job],
        attempt: int,
        fencing_token: int,
        deadline: float,
        state: S,
        link: Link,
        traceparent: str | None,
    ) -> None:
        self.jobs = list(jobs)
        """The jobs: one, or those of a batch."""
        self.job = jobs[0]
        """The job; of a batch, its first."""
        self.attempt = attempt
        """The number of the attempt, from 1 on."""
        self.fencing_token = fencing_token
        """Grows with each attempt of the job: give it to whatever must refuse an older one."""
        self.state = state
        """What the worker's lifespan yielded."""
        self.traceparent = traceparent
        """The trace that the job belongs to (W3C trace context), if any."""
        self._deadline = deadline
        self._link = link

    @functools.cached_property
    def log(self) -> logging.Logger:
        """A logger of the job."""
        return JobLogger(self.job.type, self._link.log)

    @property
    def idempotency_key(self) -> str:
        """The same on every attempt of the job: its id."""
        return self.job.id

    @property
    def time_left(self) -> float:
        """Seconds to the deadline of the attempt; never less than 0."""
        return max(0.0, self._deadline - time.monotonic())

    @property
    def cancel_reason(self) -> Reason | None:
        """Why the handler must stop: `requested`, `deadline`, `shutdown` or `lease_lost`; None: it need not."""
        return self._link.cancel.reason

    @property
    def draining(self) -> bool:
        """Whether the worker is about to stop."""
        return self._link.draining

    def progress(self, percent: float, message: str | None = None) -> None:
        """Says how far the job is, 0 to 100. Returns at once; the latest one is sent within a second."""
        text = None if message is None else "".join(c for c in message if c.isprintable())[:PROGRESS_MESSAGE_CHARS_MAX]
        self._link.progress(min(100.0, max(0.0, float(percent))), text or None)

    def check(self) -> None:
        """Raises `Cancelled` or `LeaseLost` if the handler must stop."""
        self._link.cancel.check()

    def _begin_once(self, key: str, ttl: Duration, scope: str, in_doubt: str) -> dict[str, Any]:
        if not key:
            raise ValueError("once needs a key")
        if in_doubt not in ("again", "fail") or scope not in ("job", "tenant"):
            raise ValueError('in_doubt is "again" or "fail", scope is "job" or "tenant"')
        return {"key": key, "ttl": to_wire(ttl), "scope": scope}

    def _once_key(self, key: str, scope: str) -> str:
        return f"{self.job.id}:{key}" if scope == "job" else key


class _Once(Generic[T]):
    """The rules of `once`, without the waiting: what an answer means and what a result becomes."""

    def __init__(self, key: str, in_doubt: str, result_type: type[T] | None) -> None:
        self.key, self.in_doubt = key, in_doubt
        self._codec = codec_for(result_type) if result_type is not None else None

    def may_run(self, answer: dict[str, Any]) -> bool:
        """Whether the effect is to run. Raises if it must not, because nobody knows whether it did."""
        if answer["state"] == "lost":
            raise LeaseLost()
        if answer["state"] == "in_doubt" and self.in_doubt == "fail":
            raise NotRetryable(
                f"nobody knows whether {self.key!r} was done: an attempt ended between effect and record",
                code="once_in_doubt",
            )
        return answer["state"] in ("first", "in_doubt")

    def pause_s(self, answer: dict[str, Any]) -> float:
        return min(max(seconds(answer.get("retry_in") or 1.0), 0.05), 5.0)

    def encoded(self, value: Any) -> Any:
        try:
            data = to_json(value)
            length = len(encode(data))
        except Mismatch as mismatch:
            raise NotRetryable(
                f"the effect {self.key!r} returned what is not JSON: {mismatch}", code="result_invalid"
            ) from mismatch
        if length > ONCE_RESULT_BYTES_MAX:
            text = f"the effect {self.key!r} returned {length} bytes, at most {ONCE_RESULT_BYTES_MAX} are kept"
            raise NotRetryable(text, code="result_too_large")
        return data

    def decoded(self, data: Any) -> T:
        return cast("T", self._codec.read(data) if self._codec else data)


class Context(_BaseContext[S]):
    """What an `async def` handler is given."""

    def __init__(self, *, client: Callable[[], AsyncClient], **arguments: Unpack[_Arguments]) -> None:
        super().__init__(**arguments)
        self._client = client

    @property
    def client(self) -> AsyncClient:
        """A client of the same server."""
        return self._client()

    async def heartbeat(self) -> None:
        """Asks the server whether the attempt is still its worker's own. Raises `Cancelled` or `LeaseLost`."""
        self.check()
        if await self._send("heartbeat") == "lost":
            raise LeaseLost()
        self.check()

    async def sleep(self, duration: Duration) -> None:
        """Sleeps. Ends early if the handler must stop."""
        self.check()
        await asyncio.sleep(seconds(duration))

    @overload
    async def once(
        self,
        key: str,
        effect: Callable[[str], Awaitable[T]],
        *,
        ttl: Duration = ...,
        scope: Literal["job", "tenant"] = ...,
        in_doubt: Literal["again", "fail"] = ...,
        result_type: type[T] | None = ...,
    ) -> T: ...
    @overload
    async def once(
        self,
        key: str,
        effect: Callable[[str], T],
        *,
        ttl: Duration = ...,
        scope: Literal["job", "tenant"] = ...,
        in_doubt: Literal["again", "fail"] = ...,
        result_type: type[T] | None = ...,
    ) -> T: ...
    async def once(
        self,
        key: str,
        effect: Callable[[str], Any],
        *,
        ttl: Duration = "7d",
        scope: Literal["job", "tenant"] = "job",
        in_doubt: Literal["again", "fail"] = "again",
        result_type: type[Any] | None = None,
    ) -> Any:
        """Runs `effect(idempotency_key)` unless it was done before; then gives what it returned then, as JSON."""
        arguments = self._begin_once(key, ttl, scope, in_doubt)
        rules = _Once[Any](key, in_doubt, result_type)
        while True:
            self.check()
            answer = await self._send("once", **arguments)
            if answer["state"] == "done":
                return rules.decoded(answer.get("result"))
            if rules.may_run(answer):
                break
            await self.sleep(rules.pause_s(answer))
        try:
            value: Any = effect(self._once_key(key, scope))
            if inspect.isawaitable(value):
                value = await value
        except Exception:
            if in_doubt == "again":
                await self._send("once_abandon", key=key, scope=scope)
            raise
        data = rules.encoded(value)
        if await self._send("once_done", key=key, scope=scope, result=data) == "lost":
            raise LeaseLost()
        return rules.decoded(data)

    async def _send(self, operation: str, **arguments: Any) -> Any:
        try:
            return await asyncio.wrap_future(self._link.send(operation, **arguments))
        except asyncio.CancelledError:
            self.check()
            raise


class SyncContext(_BaseContext[S]):
    """What a plain `def` handler is given. Every call that reaches out raises `Cancelled` if the handler must stop."""

    def __init__(self, *, client: Callable[[], Client], **arguments: Unpack[_Arguments]) -> None:
        super().__init__(**arguments)
        self._client = client

    @property
    def client(self) -> Client:
        """A client of the same server."""
        return self._client()

    def progress(self, percent: float, message: str | None = None) -> None:
        """Says how far the job is, 0 to 100. Returns at once; the latest one is sent within a second."""
        self.check()
        super().progress(percent, message)

    def heartbeat(self) -> None:
        """Asks the server whether the attempt is still its worker's own. Raises `Cancelled` or `LeaseLost`."""
        self.check()
        if self._send("heartbeat") == "lost":
            raise LeaseLost()
        self.check()

    def sleep(self, duration: Duration) -> None:
        """Sleeps. Ends early if the handler must stop."""
        self.check()
        if self._link.cancel.event.wait(seconds(duration)):
            self.check()

    def once(
        self,
        key: str,
        effect: Callable[[str], T],
        *,
        ttl: Duration = "7d",
        scope: Literal["job", "tenant"] = "job",
        in_doubt: Literal["again", "fail"] = "again",
        result_type: type[T] | None = None,
    ) -> T:
        """Runs `effect(idempotency_key)` unless it was done before; then gives what it returned then, as JSON."""
        arguments = self._begin_once(key, ttl, scope, in_doubt)
        rules = _Once(key, in_doubt, result_type)
        while True:
            self.check()
            answer = self._send("once", **arguments)
            if answer["state"] == "done":
                return rules.decoded(answer.get("result"))
            if rules.may_run(answer):
                break
            self.sleep(rules.pause_s(answer))
        try:
            value = effect(self._once_key(key, scope))
        except Exception:
            if in_doubt == "again":
                self._send("once_abandon", key=key, scope=scope)
            raise
        data = rules.encoded(value)
        if self._send("once_done", key=key, scope=scope, result=data) == "lost":
            raise LeaseLost()
        return rules.decoded(data)

    def _send(self, operation: str, **arguments: Any) -> Any:
        try:
            return self._link.send(operation, **arguments).result()
        except concurrent.futures.CancelledError:
            self.check()
            raise Cancelled("lease_lost") from None
