"""Reports: how attempts ended, waiting for the server to accept them. None is ever dropped."""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from ._attempt import Attempt
from ._durations import to_wire
from ._outcome import Failure, Outcome

BATCH_LEN_MAX = 1_000
BATCH_BYTES_MAX = 8 * 1024 * 1024
WAITING_LEN_MAX = 10_000
WAITING_BYTES_MAX = 64 * 1024 * 1024
REPORT_OVERHEAD_BYTES = 400


@dataclass
class Waiting:
    """A report that the server has not accepted yet."""

    attempt: Attempt
    outcome: Outcome
    replaced: bool = False
    """Its first form was refused; this one says so."""

    @property
    def size(self) -> int:
        error = self.outcome.error
        text = len(error.message) + len(error.stack or "") if error else 0
        return REPORT_OVERHEAD_BYTES + len(self.outcome.result or b"") + text


@dataclass(frozen=True)
class Batch:
    """A request with reports."""

    items: list[Waiting]
    logs: list[dict[str, Any] | None]
    body: bytes


class Reports:
    """The reports that wait, oldest first."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, Waiting] = OrderedDict()
        self._bytes = 0
        self._one_by_one = False

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def is_full(self) -> bool:
        """Whether so many wait that no further job may be taken."""
        return len(self._waiting) >= WAITING_LEN_MAX or self._bytes >= WAITING_BYTES_MAX

    def add(self, attempt: Attempt, outcome: Outcome) -> None:
        waiting = Waiting(attempt, outcome)
        self._waiting[attempt.token] = waiting
        self._bytes += waiting.size

    def next_batch(self, with_logs: bool) -> Batch:
        """What to send next. The same reports come again until they are done."""
        items: list[Waiting] = []
        logs: list[dict[str, Any] | None] = []
        parts: list[bytes] = []
        size = 0
        for waiting in self._waiting.values():
            taken = waiting.attempt.logs.take(everything=True) if with_logs else None
            part = encode_report(waiting, taken)
            if items and (size + len(part) > BATCH_BYTES_MAX or len(items) >= BATCH_LEN_MAX or self._one_by_one):
                break
            items.append(waiting)
            logs.append(taken)
            parts.append(part)
            size += len(part)
        return Batch(items, logs, b'{"reports":[' + b",".join(parts) + b"]}")

    def done(self, waiting: Waiting) -> None:
        """The server has answered for it."""
        if self._waiting.pop(waiting.attempt.token, None) is not None:
            self._bytes -= waiting.size
        if not self._waiting:
            self._one_by_one = False

    def refused(self, batch: Batch, why: str) -> Waiting | None:
        """A whole request was refused for what is in it. One by one finds the culprit, which is then given up.

        A result that the server does not take becomes a failure that says so. The report that was given up, if any.
        """
        if len(batch.items) > 1:
            self._one_by_one = True
            return None
        (waiting,) = batch.items
        if waiting.replaced:
            self.done(waiting)
            return waiting
        self.replace(waiting, why)
        return None

    def replace(self, waiting: Waiting, why: str) -> None:
        """The server does not take this result: the attempt fails for good instead, and its log stays behind."""
        self._bytes -= waiting.size
        text = f"the server refused the report: {why}"[:2000]
        waiting.outcome = Outcome("failed", error=Failure("result_invalid", text), retryable=False)
        waiting.replaced = True
        waiting.attempt.logs.discard()
        self._bytes += waiting.size


def encode_report(waiting: Waiting, logs: dict[str, Any] | None) -> bytes:
    """A report as JSON. The result is JSON already."""
    outcome = waiting.outcome
    fields: dict[str, Any] = {"token": waiting.attempt.token, "outcome": outcome.status}
    if outcome.error is not None:
        error = {"code": outcome.error.code, "message": outcome.error.message}
        if outcome.error.type:
            error["type"] = outcome.error.type
        if outcome.error.stack:
            error["stack"] = outcome.error.stack
        fields["error"] = error
    if outcome.status == "failed" and not outcome.retryable:
        fields["retryable"] = False
    if outcome.delay_s is not None:
        fields["delay"] = to_wire(outcome.delay_s)
    fields["ran"] = to_wire(waiting.attempt.ran_s)
    if logs is not None:
        fields["logs"] = logs
    body = json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
    if outcome.result is None:
        return body
    return body[:-1] + b',"result":' + outcome.result + b"}"
