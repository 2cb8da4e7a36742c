"""How an attempt ended, and the rules that turn a result or an exception into that."""

from __future__ import annotations

import asyncio
import traceback
from dataclasses import dataclass
from typing import Any, Literal

from ._codec import Mismatch
from .errors import InvalidPayload, InvalidResult, NotRetryable, RetryAfter, Snooze, code_of
from .jobtype import JobType

STACK_BYTES_MAX = 16 * 1024
MESSAGE_CHARS_MAX = 8 * 1024
RESULT_BYTES_MAX = 256 * 1024

Status = Literal["completed", "failed", "snoozed", "cancelled", "released"]
Reason = Literal["requested", "deadline", "shutdown", "lease_lost"]


@dataclass(frozen=True)
class Failure:
    """Why an attempt failed: a code for machines, a message for people, and where it happened."""

    code: str
    message: str
    type: str | None = None
    stack: str | None = None


@dataclass(frozen=True)
class Outcome:
    """How an attempt ended. `result` is the JSON of the result."""

    status: Status
    result: bytes | None = None
    error: Failure | None = None
    retryable: bool = True
    delay_s: float | None = None


def completed(job_type: JobType[Any, Any], value: Any, bytes_max: int = RESULT_BYTES_MAX) -> Outcome:
    """The outcome of a handler that returned."""
    try:
        result = job_type.write_result(value)
    except (InvalidResult, Mismatch) as error:
        return Outcome("failed", error=Failure("result_invalid", f"the result is not valid: {error}"), retryable=False)
    if len(result) > bytes_max:
        text = f"the result has {len(result)} bytes, at most {bytes_max} are allowed"
        return Outcome("failed", error=Failure("result_too_large", text), retryable=False)
    return Outcome("completed", result=result)


def invalid_payload(error: InvalidPayload) -> Outcome:
    """The outcome of a job whose payload its handler could not take."""
    return Outcome("failed", error=Failure("invalid_payload", str(error)), retryable=False)


def stopped(reason: Reason) -> Outcome:
    """The outcome of a handler that ended because it was cancelled."""
    if reason == "requested":
        return Outcome("cancelled")
    if reason == "deadline":
        return Outcome("failed", error=Failure("timed_out", "the attempt did not end before its deadline"))
    return Outcome("released")


def failed(
    error: BaseException, cancel_reason: Reason | None = None, not_retryable: tuple[type[BaseException], ...] = ()
) -> Outcome:
    """The outcome of a handler that raised."""
    if isinstance(error, NotRetryable):
        return Outcome("failed", error=failure(error), retryable=False)
    if isinstance(error, RetryAfter):
        return Outcome("failed", error=failure(error), delay_s=error.delay_s)
    if isinstance(error, Snooze):
        return Outcome("snoozed", delay_s=error.delay_s)
    if cancel_reason is not None:
        # Whatever a cancelled handler raises on its way out, it stopped because it was told to.
        return stopped(cancel_reason)
    return Outcome("failed", error=failure(error), retryable=not isinstance(error, not_retryable))


def failure(error: BaseException) -> Failure:
    """What goes to the server of an exception."""
    stack = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    encoded = stack.encode(errors="replace")
    if len(encoded) > STACK_BYTES_MAX:  # its end says what happened
        stack = "…" + encoded[-STACK_BYTES_MAX + 3 :].decode(errors="ignore")
    message = str(error) or type(error).__name__
    if isinstance(error, asyncio.CancelledError) and not str(error):
        message = "the handler was cancelled, but not by the worker"
    return Failure(code_of(error), _cut(message), type(error).__name__[:200], _clean(stack))


def _cut(text: str) -> str:
    return _clean(text if len(text) <= MESSAGE_CHARS_MAX else text[:MESSAGE_CHARS_MAX] + "…")


def _clean(text: str) -> str:
    return text.encode(errors="replace").decode()
