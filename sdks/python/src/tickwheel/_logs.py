"""The logs of attempts: gathered from any thread, bounded, numbered when they are first sent.

An attempt keeps at most 256 KiB that nobody has accepted yet, all attempts together at most 16 MiB. When there is more,
the oldest lines go. The server keeps 1 MiB of an attempt; what would come after that is not sent. The last line says
how many are missing.
"""

from __future__ import annotations

import contextlib
import contextvars
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

from ._durations import to_wire

ATTEMPT_BYTES_MAX = 256 * 1024
SENT_BYTES_MAX = 1024 * 1024 - 1024
TOTAL_BYTES_MAX = 16 * 1024 * 1024
LINE_BYTES_MAX = 16 * 1024
LINES_PER_REQUEST_MAX = 5_000
LINE_OVERHEAD_BYTES = 100
FORWARDED_FROM = logging.INFO
OWN_LOGGERS = ("tickwheel", "httpx2", "httpcore2", "httpx", "httpcore")


@dataclass
class Line:
    """One line. `written_at` is an instant of the monotonic clock."""

    level: str
    message: str
    written_at: float
    fields: dict[str, Any] = field(default_factory=lambda: dict[str, Any]())

    @property
    def size(self) -> int:
        return len(self.message.encode(errors="replace")) + LINE_OVERHEAD_BYTES

    def to_wire(self, now: float) -> dict[str, Any]:
        wire: dict[str, Any] = {
            "age": to_wire(max(0.0, now - self.written_at)),
            "level": self.level,
            "message": self.message,
        }
        if self.fields:
            wire["fields"] = self.fields
        return wire


class LogBudget:
    """What all attempts together may keep."""

    def __init__(self, bytes_max: int = TOTAL_BYTES_MAX) -> None:
        self.bytes_max, self.bytes_used = bytes_max, 0
        self.lock = threading.Lock()
        self.lines_dropped = 0


class LogBuffer:
    """The lines of one attempt that the server has not accepted yet."""

    def __init__(self, budget: LogBudget, notify: Callable[[int], None] | None = None) -> None:
        self._budget = budget
        self._notify = notify
        self._lines: deque[Line] = deque()
        self._bytes = 0
        self._dropped = 0
        self._next_number = 0
        self._taken_bytes = 0
        self._in_flight: list[Line] = []
        self.line_bytes_max, self.bytes_max = LINE_BYTES_MAX, SENT_BYTES_MAX

    def add(self, line: Line) -> None:
        """Adds a line, from any thread."""
        line.message = cut_bytes(line.message, self.line_bytes_max)
        budget = self._budget
        with budget.lock:
            if self._taken_bytes + line.size > self.bytes_max:
                self._count_dropped()  # the server keeps no more of it
                return
            self._lines.append(line)
            self._account(line.size)
            while self._bytes > ATTEMPT_BYTES_MAX or (budget.bytes_used > budget.bytes_max and len(self._lines) > 1):
                self._account(-self._lines.popleft().size)
                self._count_dropped()
            waiting = self._bytes
        if self._notify is not None:
            self._notify(waiting)

    def _count_dropped(self) -> None:
        self._dropped += 1
        self._budget.lines_dropped += 1

    def _account(self, change: int) -> None:
        self._bytes += change
        self._budget.bytes_used += change

    def take(self, *, everything: bool = False) -> dict[str, Any] | None:
        """What to send next: the same again until it is accepted, and with `everything` all the rest too."""
        with self._budget.lock:
            if everything or not self._in_flight:
                self._in_flight += self._next_lines()
            if everything and self._dropped:
                text = f"{self._dropped} lines are missing: there were too many"
                self._in_flight.append(Line("warn", text, time.monotonic()))
                self._dropped = 0
            if not self._in_flight:
                return None
            now = time.monotonic()
            return {"first": self._next_number, "lines": [line.to_wire(now) for line in self._in_flight]}

    def _next_lines(self) -> list[Line]:
        lines: list[Line] = []
        while self._lines and len(lines) < LINES_PER_REQUEST_MAX:
            line = self._lines.popleft()
            self._account(-line.size)
            if self._taken_bytes + line.size > self.bytes_max:
                self._count_dropped()
                continue
            self._taken_bytes += line.size
            lines.append(line)
        return lines

    def accepted(self, taken: dict[str, Any]) -> None:
        """What was taken has arrived."""
        with self._budget.lock:
            arrived = taken["first"] + len(taken["lines"]) - self._next_number
            if arrived > 0:
                del self._in_flight[:arrived]
                self._next_number += arrived

    def discard(self) -> None:
        """Nobody wants them any more."""
        with self._budget.lock:
            self._account(-self._bytes)
            self._lines.clear()
            self._in_flight = []
            self._dropped = 0

    @property
    def is_empty(self) -> bool:
        return not self._lines and not self._in_flight and not self._dropped


def cut_bytes(text: str, bytes_max: int) -> str:
    """The text, shortened if its UTF-8 is longer than that."""
    clean = text.encode(errors="replace")
    if len(clean) <= bytes_max:
        return clean.decode()
    return clean[: bytes_max - 3].decode(errors="ignore") + "…"


current_sink: contextvars.ContextVar[Callable[[Line], None] | None] = contextvars.ContextVar(
    "tickwheel_log_sink", default=None
)


def line_of(record: logging.LogRecord) -> Line:
    """A log record as a line, with its traceback if it has one."""
    try:
        message = record.getMessage()
    except (TypeError, ValueError):  # arguments that do not fit its format
        message = f"{record.msg} {record.args}"
    if record.exc_info and record.exc_info[0] is not None:
        message += "\n" + logging.Formatter().formatException(record.exc_info)
    level = "error" if record.levelno >= 40 else "warn" if record.levelno >= 30 else "info"
    if record.levelno < logging.INFO:
        level = "debug"
    # The record's age, not its time: it is measured on the wall clock, but only over an instant.
    age_s = min(max(0.0, time.time() - record.created), 1.0)
    return Line(level, message, time.monotonic() - age_s)


class ForwardingHandler(logging.Handler):
    """On the root logger: what is logged inside a handler goes to the log of its job too."""

    def __init__(self) -> None:
        super().__init__(FORWARDED_FROM)

    @classmethod
    @contextlib.contextmanager
    def installed(cls) -> Generator[None]:
        """On the root logger, for a while."""
        handler = cls()
        logging.getLogger().addHandler(handler)
        try:
            yield
        finally:
            logging.getLogger().removeHandler(handler)

    def emit(self, record: logging.LogRecord) -> None:
        sink = current_sink.get()
        if sink is None or getattr(record, "tickwheel_forwarded", False):
            return
        if record.name.partition(".")[0] in OWN_LOGGERS:
            return
        sink(line_of(record))


class JobLogger(logging.Logger):
    """`ctx.log`: a logger whose lines go to the log of the job, from whatever thread, and then the usual ways."""

    def __init__(self, job_type: str, sink: Callable[[Line], None]) -> None:
        super().__init__(f"tickwheel.job.{job_type}", FORWARDED_FROM)
        self._sink = sink
        self._usual = logging.getLogger("tickwheel.job")
        self.parent = self._usual

    def handle(self, record: logging.LogRecord) -> None:
        if record.levelno >= FORWARDED_FROM:
            self._sink(line_of(record))
        record.tickwheel_forwarded = True
        if self._usual.isEnabledFor(record.levelno):
            super().handle(record)

    def isEnabledFor(self, level: int) -> bool:
        # Not the cached answer of the base class: its manager does not know this logger.
        return level >= FORWARDED_FROM or self._usual.isEnabledFor(level)
