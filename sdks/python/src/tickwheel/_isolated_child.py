"""The child process of an isolated handler. See `_isolate.py` for the other side.

The handler runs on the main thread, so that SIGTERM can end it with `Cancelled` wherever it is. A second thread reads
what the worker says; when the worker is gone, the child ends at once.
"""

from __future__ import annotations

import concurrent.futures
import contextvars
import importlib
import itertools
import json
import logging
import os
import queue
import runpy
import signal
import socket
import sys
import threading
import time
from typing import Any

from . import _isolate, _outcome, worker
from ._calls import read_job
from ._logs import ForwardingHandler, Line, current_sink
from ._outcome import Outcome
from ._tracing import inherited
from .context import CancelState, Link, SyncContext
from .errors import Cancelled, InvalidPayload, TickwheelError


class Pipe:
    """The connection to the worker. Any thread may send."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._lines = connection.makefile("rb")
        self._lock = threading.Lock()

    def send(self, message: dict[str, Any]) -> None:
        line = json.dumps(message).encode() + b"\n"
        with self._lock:
            self._connection.sendall(line)

    def receive(self) -> dict[str, Any] | None:
        line = self._lines.readline()
        return json.loads(line) if line else None


class ChildLink(Link):
    """The surroundings of a handler in a child: everything goes over the pipe."""

    def __init__(self, pipe: Pipe, draining: bool) -> None:
        self._pipe, self._draining = pipe, draining
        self.cancel = CancelState()
        self._numbers = itertools.count(1)
        self._calls: dict[int, concurrent.futures.Future[Any]] = {}

    def send(self, operation: str, **arguments: Any) -> concurrent.futures.Future[Any]:
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        number = next(self._numbers)
        self._calls[number] = future
        self._pipe.send({"kind": "call", "number": number, "operation": operation, "arguments": arguments})
        return future

    def reply(self, message: dict[str, Any]) -> None:
        future = self._calls.pop(message["number"], None)
        if future is None:
            return
        if "cancelled" in message:
            self.cancel.set(message["cancelled"])
            future.set_exception(Cancelled(message["cancelled"]))
        elif "error" in message:
            future.set_exception(TickwheelError(message["error"]))
        else:
            future.set_result(message["value"])

    def progress(self, percent: float, message: str | None) -> None:
        self._pipe.send({"kind": "progress", "percent": percent, "message": message})

    def log(self, line: Line) -> None:
        self._pipe.send(
            {
                "kind": "log",
                "level": line.level,
                "message": line.message,
                "written_at": line.written_at,
                "fields": line.fields,
            }
        )

    @property
    def draining(self) -> bool:
        return self._draining

    def drain(self) -> None:
        self._draining = True


class Child:
    """Takes jobs one after another and runs them on the main thread."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self._jobs: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._link: ChildLink | None = None
        self._running = False
        self._reason: Any = None

    def listen(self) -> None:
        """Reads what the worker says. Without a worker there is nothing left to do."""
        while (message := self._pipe.receive()) is not None:
            kind, link = message["kind"], self._link
            if kind == "job":
                self._reason = None
                self._jobs.put(message)
            elif kind == "cancel":
                self._reason = message["reason"]
            elif link is None:
                continue
            elif kind == "draining":
                link.drain()
            elif kind == "reply":
                link.reply(message)
        os._exit(0)

    def interrupted(self, _signal: int, _frame: object) -> None:
        link = self._link
        if link is None or not self._running:
            return
        self._running = False  # once: what cleans up is not interrupted again
        for _ in range(50):  # the reason comes over the pipe; the other thread reads it in a moment
            if self._reason is not None:
                break
            time.sleep(0.01)
        link.cancel.set_from_signal(self._reason or "shutdown")
        link.cancel.check()

    def run(self, owner: worker.Worker[Any], state: Any) -> None:
        while True:
            message = self._jobs.get()
            link = self._link = ChildLink(self._pipe, message["draining"])
            outcome = self._execute(owner, state, message, link)
            self._link = None
            self._pipe.send(_isolate.outcome_to(outcome))

    def _execute(self, owner: worker.Worker[Any], state: Any, message: dict[str, Any], link: ChildLink) -> Outcome:
        handler = owner.handlers[message["type"]]
        job = read_job(message["job"])
        try:
            payload = handler.job_type.read_payload(job.payload)
        except InvalidPayload as error:
            return _outcome.invalid_payload(error)
        context: SyncContext[Any] = SyncContext(
            jobs=[job],
            attempt=message["attempt"],
            fencing_token=message["fencing_token"],
            deadline=message["deadline"],
            state=state,
            link=link,
            traceparent=message["traceparent"],
            client=owner.make_sync_client,
        )

        def call() -> Any:
            current_sink.set(link.log)
            inherited.set(message["traceparent"])
            try:
                self._running = True
                if self._reason is not None:
                    self.interrupted(0, None)
                return handler.call(payload, context)
            finally:
                self._running = False

        try:
            value = contextvars.copy_context().run(call)
        except BaseException as error:
            return _outcome.failed(error, link.cancel.reason, handler.not_retryable)
        return _outcome.completed(handler.job_type, value)


def find_worker(start: dict[str, Any]) -> worker.Worker[Any]:
    """Imports what made the worker. A main program stops where it would run it."""
    worker.made_here.clear()
    worker.in_isolated_child = True
    if start["module"]:
        importlib.import_module(start["module"])
    else:
        try:
            runpy.run_path(start["path"], run_name="__tickwheel_main__")
        except worker.StopImport:
            pass
    owners = [made for made in worker.made_here if any(h.kind == "isolated" for h in made.handlers.values())]
    if len(owners) != 1:
        raise SystemExit(
            f"tickwheel: {len(owners)} workers with isolated handlers in {start['module'] or start['path']}"
        )
    return owners[0]


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    start = json.loads(sys.argv[2])
    pipe = Pipe(socket.socket(fileno=int(sys.argv[1])))
    child = Child(pipe)
    threading.Thread(target=child.listen, daemon=True).start()
    sys.path[:] = start["sys_path"]
    owner = find_worker(start)
    signal.signal(signal.SIGTERM, child.interrupted)
    logging.getLogger().addHandler(ForwardingHandler())
    owner.run_in_lifespan(lambda state: child.run(owner, state))


if __name__ == "__main__":
    main()
