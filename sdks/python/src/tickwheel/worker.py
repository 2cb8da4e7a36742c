"""The worker: handlers, middlewares, and the life of the process that runs them."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import dataclasses
import logging
import os
import signal
import sys
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Generic, TypeVar, cast, overload

from . import _tracing  # pyright: ignore[reportPrivateUsage]
from ._durations import Duration, seconds
from ._handlers import Handler, OnLeaseLost, is_async, takes_context
from ._health import Stats, stats_of
from ._isolate import IsolatedPool
from ._logs import ForwardingHandler
from ._network import MainLoop, NetworkThread
from ._operations import SessionLink
from ._outcome import RESULT_BYTES_MAX
from ._runner import Middleware, Runner
from ._session import Session
from ._settings import Mistakes, WorkerSettings, worker_settings
from .aclient import AsyncClient
from .client import Client
from .context import Context, SyncContext
from .errors import ConfigurationError, WorkerRefused
from .jobtype import JobType

log = logging.getLogger("tickwheel.worker")

P = TypeVar("P")
R = TypeVar("R")
S = TypeVar("S")
T = TypeVar("T")
M = TypeVar("M", bound=Callable[..., Any])

CANCEL_GRACE: Duration = "5s"
LIFESPAN_END_S_MAX = 5.0
EXIT_REFUSED, EXIT_THIRD_SIGNAL = 2, 130

made_here: list[Worker[Any]] = []
"""The workers of this process: a child process finds its own here."""
in_isolated_child = False


class StopImport(BaseException):
    """Ends the main program of a child process where it would run the worker."""


class HandlerDecorator(Generic[P, R, S]):
    """Registers the function that it decorates."""

    def __init__(self, register: Callable[[Callable[..., Any]], None]) -> None:
        self._register = register

    @overload
    def __call__(
        self, function: Callable[[P, Context[S]], Awaitable[R]]
    ) -> Callable[[P, Context[S]], Awaitable[R]]: ...
    @overload
    def __call__(self, function: Callable[[P], Awaitable[R]]) -> Callable[[P], Awaitable[R]]: ...
    @overload
    def __call__(self, function: Callable[[P, SyncContext[S]], R]) -> Callable[[P, SyncContext[S]], R]: ...
    @overload
    def __call__(self, function: Callable[[P], R]) -> Callable[[P], R]: ...
    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        self._register(function)
        return function


class BatchDecorator(Generic[P, R, S]):
    """Registers the batch handler that it decorates."""

    def __init__(self, register: Callable[[Callable[..., Any]], None]) -> None:
        self._register = register

    @overload
    def __call__(
        self, function: Callable[[list[P], Context[S]], Awaitable[Sequence[R | BaseException]]]
    ) -> Callable[[list[P], Context[S]], Awaitable[Sequence[R | BaseException]]]: ...
    @overload
    def __call__(
        self, function: Callable[[list[P]], Awaitable[Sequence[R | BaseException]]]
    ) -> Callable[[list[P]], Awaitable[Sequence[R | BaseException]]]: ...
    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        self._register(function)
        return function


class Worker(Generic[S]):
    """Runs jobs. `run()` is the whole life of a process; `serve()` is the same inside a program of your own."""

    @overload
    def __init__(
        self: Worker[None],
        *,
        name: str | None = ...,
        queues: Sequence[str] | None = ...,
        capacity: int | None = ...,
        labels: Mapping[str, str | bool | float] | None = ...,
        lease: Duration | None = ...,
        drain_timeout: Duration | None = ...,
        health_port: int | None = ...,
        server: str | Sequence[str] | None = ...,
        api_key: str | None = ...,
        ca_file: str | None = ...,
        lifespan: None = ...,
    ) -> None: ...
    @overload
    def __init__(
        self,
        *,
        name: str | None = ...,
        queues: Sequence[str] | None = ...,
        capacity: int | None = ...,
        labels: Mapping[str, str | bool | float] | None = ...,
        lease: Duration | None = ...,
        drain_timeout: Duration | None = ...,
        health_port: int | None = ...,
        server: str | Sequence[str] | None = ...,
        api_key: str | None = ...,
        ca_file: str | None = ...,
        lifespan: Callable[[], AbstractAsyncContextManager[S]],
    ) -> None: ...
    def __init__(
        self,
        *,
        name: str | None = None,
        queues: Sequence[str] | None = None,
        capacity: int | None = None,
        labels: Mapping[str, str | bool | float] | None = None,
        lease: Duration | None = None,
        drain_timeout: Duration | None = None,
        health_port: int | None = None,
        server: str | Sequence[str] | None = None,
        api_key: str | None = None,
        ca_file: str | None = None,
        lifespan: Callable[[], AbstractAsyncContextManager[Any]] | None = None,
    ) -> None:
        self.handlers: dict[str, Handler] = {}
        """The handlers, by the name of their job type."""
        self.middlewares: list[Middleware] = []
        self.lifespan = lifespan
        self._arguments: dict[str, Any] = {
            "name": name,
            "queues": queues,
            "capacity": capacity,
            "labels": labels,
            "lease": lease,
            "drain_timeout": drain_timeout,
            "health_port": health_port,
            "server": server,
            "api_key": api_key,
            "ca_file": ca_file,
        }
        self._network: NetworkThread | None = None
        self._signals = 0
        self._parent_pid: int | None = None
        self._port_offset = 0
        self._jobs_max: int | None = None
        made_here.append(self)

    # Registering.

    def handler(
        self,
        job_type: JobType[P, R],
        *,
        capacity: int | None = None,
        not_retryable: Sequence[type[BaseException]] = (),
        cancel_grace: Duration = CANCEL_GRACE,
        on_lease_lost: OnLeaseLost = "cancel",
        isolate: bool = False,
    ) -> HandlerDecorator[P, R, S]:
        """Decorates the handler of a job type: `async def` on the main loop, `def` on a thread, or in a child process
        with `isolate=True`."""

        def register(function: Callable[..., Any]) -> None:
            if isolate and is_async(function):
                raise TypeError(f"{function!r}: an isolated handler is a plain def")
            kind = "isolated" if isolate else "async" if is_async(function) else "thread"
            self._add(
                Handler(
                    job_type,
                    function,
                    cast("Any", kind),
                    takes_context(function),
                    capacity,
                    tuple(not_retryable),
                    seconds(cancel_grace),
                    on_lease_lost,
                )
            )

        return HandlerDecorator(register)

    def batch_handler(
        self,
        job_type: JobType[P, R],
        *,
        jobs_max: int,
        wait_max: Duration,
        capacity: int | None = None,
        not_retryable: Sequence[type[BaseException]] = (),
        cancel_grace: Duration = CANCEL_GRACE,
        on_lease_lost: OnLeaseLost = "cancel",
    ) -> BatchDecorator[P, R, S]:
        """Decorates a handler of many jobs of a type. It returns one entry per job, in order: a result or an error."""
        if jobs_max < 1:
            raise ValueError(f"jobs_max must be at least 1, not {jobs_max}")

        def register(function: Callable[..., Any]) -> None:
            if not is_async(function):
                raise TypeError(f"{function!r}: a batch handler is an async def")
            self._add(
                Handler(
                    job_type,
                    function,
                    "batch",
                    takes_context(function),
                    capacity,
                    tuple(not_retryable),
                    seconds(cancel_grace),
                    on_lease_lost,
                    jobs_max,
                    seconds(wait_max),
                )
            )

        return BatchDecorator(register)

    def middleware(self, function: M) -> M:
        """Decorates an `async def` around every attempt: `(ctx, call_next)`. The first registered is the outermost."""
        if not is_async(function):
            raise TypeError(f"{function!r}: a middleware is an async def")
        self.middlewares.append(function)
        return function

    def _add(self, handler: Handler) -> None:
        name = handler.job_type.name
        if name in self.handlers:
            raise ValueError(f"{name} has a handler already: {self.handlers[name].name}")
        if handler.capacity is not None and handler.capacity < 1:
            raise ValueError(f"{name}: capacity must be at least 1")
        if handler.on_lease_lost not in ("cancel", "continue"):
            raise ValueError(f'{name}: on_lease_lost is "cancel" or "continue"')
        self.handlers[name] = handler

    def at(self, server: str | Sequence[str], *, api_key: str | None = None) -> Worker[S]:
        """The same handlers and options for another server, such as that of a test."""
        other = copy.copy(self)
        other._arguments = {**self._arguments, "server": server, "api_key": api_key}
        other._network = None
        return other

    # Running.

    def settings(self) -> WorkerSettings:
        """What it runs with, from arguments and the environment. Raises `ConfigurationError` with all mistakes."""
        mistakes = Mistakes()
        settings = worker_settings(**self._arguments, mistakes=mistakes)
        if not self.handlers:
            mistakes.found.append("the worker has no handlers")
        mistakes.report()
        port = settings.health_port
        if port:
            port += self._port_offset
        return dataclasses.replace(settings, parent_pid=self._parent_pid, jobs_max=self._jobs_max, health_port=port)

    def supervised(self, parent_pid: int, index: int, jobs_max: int | None) -> None:
        """It is one of several processes: it ends with their parent or after so many jobs."""
        self._parent_pid, self._port_offset, self._jobs_max = parent_pid, index, jobs_max

    def run(self) -> None:
        """Works until SIGTERM or SIGINT, drains, and returns. Exits with code 2 if it cannot start."""
        if in_isolated_child:
            raise StopImport
        configure_logging()
        stuck = False
        loop = asyncio.new_event_loop()
        main = loop.create_task(self.serve(handle_signals=True))
        try:
            asyncio.set_event_loop(loop)
            stuck = not _run_through(loop, main)
        except (ConfigurationError, WorkerRefused) as error:
            log.error("cannot start: %s", error)
            sys.exit(EXIT_REFUSED)
        finally:
            if not stuck:
                _finish(loop)
                asyncio.set_event_loop(None)
                loop.close()
        if stuck:
            # Threads of an executor and tasks that refuse to be cancelled would keep the process for ever.
            logging.shutdown()
            sys.stdout.flush()
            os._exit(0)

    async def serve(self, *, handle_signals: bool = False) -> bool:
        """Works until `stop()`. Whether all handlers have ended. Raises `ConfigurationError` or `WorkerRefused`."""
        settings = self.settings()
        _tracing.prepare()
        loop = asyncio.get_running_loop()
        session = Session(settings, self.handlers, settings.queues or self.queues_of_types())
        main = MainLoop(loop)
        network = self._network = NetworkThread(session, main, loop)
        self._signals = 0
        with contextlib.ExitStack() as stack:
            if handle_signals:
                stack.enter_context(self._signals_handled())
            async with self._lifespan_entered() as state:
                stack.enter_context(ForwardingHandler.installed())
                isolated = IsolatedPool() if any(h.kind == "isolated" for h in self.handlers.values()) else None
                main.runner = Runner(
                    state=state,
                    middlewares=self.middlewares,
                    link=lambda attempt: SessionLink(session, attempt),
                    ended=network.ended,
                    client=_once(self.make_client),
                    sync_client=_once(self.make_sync_client),
                    isolated=isolated,
                    result_bytes_max=lambda: session.limit("result_bytes", RESULT_BYTES_MAX),
                )
                if isolated is not None:
                    main.drain_hook = isolated.drain
                network.start()
                try:
                    await network.ready
                    await network.done
                except asyncio.CancelledError:
                    network.soon(session.begin_drain)
                    network.soon(session.hurry)
                    await asyncio.wait([network.done], timeout=settings.cancel_stage_s + 5.0)
                    raise
                finally:
                    all_ended = await main.runner.close()
        return all_ended

    def stop(self) -> None:
        """Begins to drain; a second call does not wait for handlers any longer. From any thread."""
        network = self._network
        if network is None:
            return
        self._signals += 1
        network.soon(network.session.begin_drain)
        if self._signals > 1:
            network.soon(network.session.hurry)

    def stats(self) -> Stats | None:
        """What it is doing. None: it has not started."""
        return None if self._network is None else stats_of(self._network.session)

    @property
    def health_port(self) -> int | None:
        """Where it answers `/healthz`, once it has started. With port 0, the system chose it."""
        return None if self._network is None else self._network.health.port

    def make_client(self) -> AsyncClient:
        """A client of the worker's server."""
        return AsyncClient(**self._connection_arguments())

    def make_sync_client(self) -> Client:
        """The same for code that blocks."""
        return Client(**self._connection_arguments())

    def run_in_lifespan(self, body: Callable[[Any], None]) -> None:
        """Runs `body(state)` in a lifespan of its own, without a running loop."""
        loop = asyncio.new_event_loop()
        entered = self._lifespan_entered()
        state = loop.run_until_complete(entered.__aenter__())
        try:
            body(state)
        finally:
            loop.run_until_complete(entered.__aexit__(None, None, None))
            loop.close()

    def _connection_arguments(self) -> dict[str, Any]:
        return {name: self._arguments[name] for name in ("server", "api_key", "ca_file")}

    def queues_of_types(self) -> list[str]:
        """The queues that jobs of its types go to by default: those it serves if nobody says otherwise."""
        return sorted({str(h.job_type.defaults.get("queue", "default")) for h in self.handlers.values()})

    @contextlib.asynccontextmanager
    async def _lifespan_entered(self) -> AsyncGenerator[Any]:
        if self.lifespan is None:
            yield None
            return
        manager = self.lifespan()
        state = await manager.__aenter__()
        try:
            yield state
        finally:
            try:
                await asyncio.wait_for(manager.__aexit__(None, None, None), LIFESPAN_END_S_MAX)
            except Exception:
                log.exception("the lifespan did not end well")

    @contextlib.contextmanager
    def _signals_handled(self) -> Generator[None]:
        """Not through the loop: a handler that blocks it must not keep a signal from being seen."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        names = ("SIGTERM", "SIGINT", "SIGBREAK")
        before: dict[int, Any] = {}
        for name in names:
            number = getattr(signal, name, None)
            if number is not None:
                before[number] = signal.signal(number, self._on_signal)
        try:
            yield
        finally:
            for number, previous in before.items():
                signal.signal(number, previous)

    def _on_signal(self, _number: int, _frame: object) -> None:
        if self._signals >= 2:
            os._exit(EXIT_THIRD_SIGNAL)
        self.stop()


def _once(make: Callable[[], T]) -> Callable[[], T]:
    """Makes one when it is first asked for, and gives the same from then on."""
    made: list[T] = []

    def get() -> T:
        if not made:
            made.append(make())
        return made[0]

    return get


def _run_through(loop: asyncio.AbstractEventLoop, main: asyncio.Task[bool]) -> bool:
    """Runs the loop until the task has ended, also through a `sys.exit` in some task of a handler."""
    while True:
        try:
            return loop.run_until_complete(main)
        except SystemExit as error:
            if main.done():
                raise
            log.warning("a task of a handler raised SystemExit(%s): ignored", error.code)


def _finish(loop: asyncio.AbstractEventLoop) -> None:
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.wait(tasks, timeout=1.0))
    loop.run_until_complete(loop.shutdown_asyncgens())


def configure_logging() -> None:
    """Logs to standard error at INFO, unless the program has configured logging itself."""
    if not logging.getLogger().handlers:
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
