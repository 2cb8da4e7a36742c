"""Isolated handlers: child processes that run one job at a time and can be killed.

A child is `python -m tickwheel._isolated_child`. It imports the module that made the worker, enters a lifespan of its
own, and then takes jobs over a socket, as lines of JSON. What its handler asks of the context comes back the same way.
A child is kept for the next job, and replaced after `JOBS_PER_CHILD_MAX` jobs or when it dies.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

from ._attempt import Attempt
from ._logs import Line
from ._outcome import Failure, Outcome
from .context import Link

JOBS_PER_CHILD_MAX = 1_000
LINE_BYTES_MAX = 4 * 1024 * 1024
START_S_MAX = 60.0
END_S_MAX = 2.0


@dataclass(frozen=True)
class Origin:
    """How a child finds the worker: a module to import, or the file of the main program."""

    module: str | None
    path: str | None

    @staticmethod
    def of(module_name: str) -> Origin:
        """Where a handler was defined."""
        if module_name != "__main__":
            return Origin(module_name, None)
        main = sys.modules["__main__"]
        spec = getattr(main, "__spec__", None)
        if spec is not None and spec.name != "__main__":
            return Origin(spec.name, None)
        path = getattr(main, "__file__", None)
        return Origin(None, os.path.abspath(path) if path else None)


class Child:
    """One child process."""

    def __init__(self, process: subprocess.Popen[bytes], reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        self.process, self.reader, self.writer = process, reader, writer
        self.jobs = 0
        self.killed = False

    @staticmethod
    async def start(origin: Origin) -> Child:
        ours, theirs = socket.socketpair()
        start = {"module": origin.module, "path": origin.path, "sys_path": sys.path, "parent": os.getpid()}
        process = subprocess.Popen(  # noqa: S603 - the same interpreter, no shell
            [sys.executable, "-m", "tickwheel._isolated_child", str(theirs.fileno()), json.dumps(start)],
            pass_fds=(theirs.fileno(),),
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )
        theirs.close()
        reader, writer = await asyncio.open_connection(sock=ours, limit=LINE_BYTES_MAX)
        return Child(process, reader, writer)

    def send(self, message: dict[str, Any]) -> None:
        self.writer.write(json.dumps(message).encode() + b"\n")

    async def receive(self) -> dict[str, Any] | None:
        """The next message. None: it is gone."""
        try:
            line = await self.reader.readline()
        except (ConnectionError, ValueError):
            return None
        return json.loads(line) if line.endswith(b"\n") else None

    def signal(self, number: int) -> None:
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(number)

    async def end(self) -> int:
        """Waits a moment, then insists. The exit status."""
        self.writer.close()
        for _ in range(int(END_S_MAX / 0.02)):
            if self.process.poll() is not None:
                return self.process.returncode
            await asyncio.sleep(0.02)
        self.process.kill()
        return self.process.wait()


class IsolatedPool:
    """The children of a worker, on the main loop."""

    def __init__(self) -> None:
        self._idle: dict[str, list[Child]] = {}
        self._busy: dict[str, Child] = {}

    async def run(self, attempt: Attempt, link: Link) -> Outcome:
        """Runs an attempt in a child. A child that dies is a failure, unless we killed it."""
        child = await self._take(attempt)
        self._busy[attempt.token] = child
        try:
            if attempt.cancel.reason is not None:  # it came while the child was starting
                self._idle.setdefault(attempt.job.type, []).append(child)
                attempt.cancel.check()
            outcome = await self._converse(child, attempt, link)
        finally:
            del self._busy[attempt.token]
        if outcome is None:
            status = await child.end()
            if attempt.cancel.reason is not None:
                attempt.cancel.check()
            return Outcome("failed", error=Failure("process_died", f"the child process ended {_how(status)}"))
        child.jobs += 1
        if child.jobs < JOBS_PER_CHILD_MAX:
            self._idle.setdefault(attempt.job.type, []).append(child)
        else:
            await child.end()
        return outcome

    def cancel(self, attempt: Attempt) -> None:
        """SIGTERM: the handler sees `Cancelled` where it is."""
        child = self._busy.get(attempt.token)
        if child is not None:
            child.send({"kind": "cancel", "reason": attempt.cancel.reason})
            child.signal(signal.SIGTERM)

    def kill(self, attempt: Attempt) -> bool:
        """SIGKILL: the grace is over."""
        child = self._busy.get(attempt.token)
        if child is None:
            return False
        child.killed = True
        child.signal(signal.SIGKILL)
        return True

    def drain(self) -> None:
        """Tells handlers that the worker is about to stop."""
        for child in self._busy.values():
            child.send({"kind": "draining"})

    async def close(self) -> None:
        """Ends all children."""
        children = [child for idle in self._idle.values() for child in idle]
        for child in self._busy.values():
            child.signal(signal.SIGKILL)
        await asyncio.gather(*(child.end() for child in [*children, *self._busy.values()]))
        self._idle.clear()

    async def _take(self, attempt: Attempt) -> Child:
        idle = self._idle.get(attempt.job.type, [])
        while idle:
            child = idle.pop()
            if child.process.poll() is None:
                return child
            await child.end()
        return await Child.start(Origin.of(attempt.handler.function.__module__))

    async def _converse(self, child: Child, attempt: Attempt, link: Link) -> Outcome | None:
        child.send(_job_message(attempt, link))
        replies: set[asyncio.Task[None]] = set()
        while (message := await child.receive()) is not None:
            kind = message["kind"]
            if kind == "progress":
                link.progress(message["percent"], message["message"])
            elif kind == "log":
                link.log(Line(message["level"], message["message"], message["written_at"], message["fields"]))
            elif kind == "call":
                task = asyncio.get_running_loop().create_task(_answer(child, link, message))
                replies.add(task)
                task.add_done_callback(replies.discard)
            elif kind == "outcome":
                return outcome_from(message)
        return None


def _job_message(attempt: Attempt, link: Link) -> dict[str, Any]:
    return {
        "kind": "job",
        "type": attempt.job.type,
        "job": attempt.raw_job,
        "attempt": attempt.assignment.number,
        "fencing_token": attempt.assignment.fencing_token,
        "deadline": attempt.deadline,
        "traceparent": attempt.assignment.traceparent,
        "draining": link.draining,
    }


async def _answer(child: Child, link: Link, message: dict[str, Any]) -> None:
    reply: dict[str, Any] = {"kind": "reply", "number": message["number"]}
    try:
        reply["value"] = await asyncio.wrap_future(link.send(message["operation"], **message["arguments"]))
    except asyncio.CancelledError:
        reply["cancelled"] = link.cancel.reason or "lease_lost"
    except Exception as error:
        reply["error"] = f"{type(error).__name__}: {error}"
    child.send(reply)


def _how(status: int) -> str:
    if status >= 0:
        return f"with exit code {status}"
    try:
        return f"by {signal.Signals(-status).name}"
    except ValueError:
        return f"by signal {-status}"


def outcome_to(outcome: Outcome) -> dict[str, Any]:
    """An outcome as a message."""
    error = outcome.error
    return {
        "kind": "outcome",
        "status": outcome.status,
        "result": None if outcome.result is None else base64.b64encode(outcome.result).decode(),
        "error": None if error is None else [error.code, error.message, error.type, error.stack],
        "retryable": outcome.retryable,
        "delay_s": outcome.delay_s,
    }


def outcome_from(message: dict[str, Any]) -> Outcome:
    """The outcome that a message stands for."""
    return Outcome(
        message["status"],
        None if message["result"] is None else base64.b64decode(message["result"]),
        None if message["error"] is None else Failure(*message["error"]),
        message["retryable"],
        message["delay_s"],
    )
