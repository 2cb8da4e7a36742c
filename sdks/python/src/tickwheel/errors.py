"""Every error that the library raises, and those that a handler may raise.

A handler raises `NotRetryable`, `RetryAfter` or `Snooze` to say what should happen next; any other exception is a
failure that the server retries by the job's own rules. The client raises a subclass of `TickwheelError`: one class per
problem code of the server, found in `PROBLEMS`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from ._durations import Duration, seconds

if TYPE_CHECKING:
    from .models import Job


__all__ = [
    "BackfillRunning",
    "BadField",
    "BodyTooLarge",
    "Cancelled",
    "ConfigurationError",
    "CrossSite",
    "Cycle",
    "DuplicateField",
    "DuplicateTask",
    "Forbidden",
    "HostNotAllowed",
    "IdempotencyConflict",
    "IdempotencyKeyMismatch",
    "IllegalState",
    "Internal",
    "InvalidCursor",
    "InvalidId",
    "InvalidJson",
    "InvalidParameter",
    "InvalidPayload",
    "InvalidResult",
    "JobCancelled",
    "JobFailed",
    "JsonTooDeep",
    "LeaseLost",
    "LeaseOutOfRange",
    "MethodNotAllowed",
    "MissingField",
    "NameTaken",
    "NotFound",
    "NotReady",
    "NotRetryable",
    "OutcomeUnknown",
    "Overloaded",
    "PROBLEMS",
    "PayloadTooLarge",
    "Problem",
    "ProtocolUnsupported",
    "RateLimited",
    "RequestTimeout",
    "RetryAfter",
    "ShuttingDown",
    "Snooze",
    "StaleToken",
    "StoreUnavailable",
    "TickwheelError",
    "TooManyPaused",
    "Unauthorized",
    "UnknownField",
    "UnknownParameter",
    "UnknownParent",
    "UnknownTask",
    "UnknownWorker",
    "Unreachable",
    "UnsupportedMediaType",
    "ValidationFailed",
    "WaitTimedOut",
    "WaitTimeout",
    "WorkerRefused",
    "WrongType",
]


# What a handler raises.


class NotRetryable(Exception):
    """Fails the job for good: another attempt would not help."""

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        self.code = code


class RetryAfter(Exception):
    """Fails the attempt; the next one starts no sooner than after `delay`."""

    def __init__(self, delay: Duration, message: str = "", *, code: str | None = None) -> None:
        super().__init__(message)
        self.delay_s = seconds(delay)
        self.code = code


class Snooze(Exception):
    """Not yet: the job runs again after `delay`. This is no failure and uses no retry."""

    def __init__(self, delay: Duration, message: str = "") -> None:
        super().__init__(message)
        self.delay_s = seconds(delay)


# What a handler sees.


class Cancelled(asyncio.CancelledError):
    """The attempt must stop. Like asyncio's own, it is no `Exception`, so that `except Exception` lets it pass."""

    def __init__(self, reason: str = "requested") -> None:
        super().__init__(f"cancelled: {reason}")
        self.reason = reason


class LeaseLost(Cancelled):
    """The worker cannot prove that the attempt is still its own."""

    def __init__(self, reason: str = "lease_lost") -> None:
        super().__init__(reason)


# What the client and the worker raise.


class TickwheelError(Exception):
    """The base of all errors of the library."""


class ConfigurationError(TickwheelError):
    """Arguments or environment variables are wrong. `mistakes` has all of them."""

    def __init__(self, mistakes: Sequence[str]) -> None:
        super().__init__("; ".join(mistakes))
        self.mistakes = list(mistakes)


class WorkerRefused(TickwheelError):
    """The server refused the worker when it started."""


class Unreachable(TickwheelError):
    """No server answered. Whether the request had an effect is not known."""


class InvalidPayload(TickwheelError, ValueError):
    """The payload is not of the type that the contract names, is not JSON, or is too large. Nothing was sent."""


class InvalidResult(TickwheelError, ValueError):
    """The result of a job is not of the type that the contract names."""


class JobFailed(TickwheelError):
    """The job that was waited for has failed for good."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.code = job.error.code if job.error else "failed"
        message = job.error.message if job.error else "the job failed"
        super().__init__(f"job {job.id} ({job.type}) failed: {self.code}: {message}")


class JobCancelled(TickwheelError):
    """The job that was waited for was cancelled."""

    def __init__(self, job: Job) -> None:
        self.job = job
        super().__init__(f"job {job.id} ({job.type}) was cancelled")


class WaitTimeout(TickwheelError, TimeoutError):
    """The job or run did not end in time. It goes on."""


@dataclass(frozen=True)
class BadField:
    """One bad field of a request."""

    pointer: str
    code: str
    detail: str


class Problem(TickwheelError):
    """The server refused a request. Subclasses have one problem code each; a code unknown here is this class."""

    code: str = "unknown"
    status: int
    detail: str
    errors: list[BadField]

    def __init__(
        self,
        *,
        status: int,
        code: str,
        detail: str,
        errors: Sequence[BadField] = (),
        retry_after_s: float | None = None,
    ) -> None:
        self.status, self.code, self.detail = status, code, detail
        self.errors = list(errors)
        self.retry_after_s = retry_after_s
        fields = "".join(f"; {field.pointer}: {field.detail}" for field in self.errors)
        super().__init__(f"{code}: {detail}{fields}")


class InvalidJson(Problem):
    """The body is not one valid JSON document."""

    code = "invalid_json"


class JsonTooDeep(Problem):
    """The JSON is nested deeper than the server allows."""

    code = "json_too_deep"


class DuplicateField(Problem):
    """An object contains the same key twice, at any depth."""

    code = "duplicate_field"


class UnknownField(Problem):
    """The request contains a field that the server does not know."""

    code = "unknown_field"


class MissingField(Problem):
    """A required field is missing."""

    code = "missing_field"


class WrongType(Problem):
    """A field has the wrong type."""

    code = "wrong_type"


class InvalidId(Problem):
    """The id in the path is not a UUID."""

    code = "invalid_id"


class InvalidCursor(Problem):
    """The cursor does not come from this list."""

    code = "invalid_cursor"


class UnknownParameter(Problem):
    """This call has no query parameter of that name."""

    code = "unknown_parameter"


class InvalidParameter(Problem):
    """The value of a query parameter or header is not valid."""

    code = "invalid_parameter"


class IdempotencyKeyMismatch(Problem):
    """The `Idempotency-Key` header and the `idempotency_key` field differ."""

    code = "idempotency_key_mismatch"


class HostNotAllowed(Problem):
    """The `Host` header is neither the address the server listens on nor in `server.allowed_hosts`."""

    code = "host_not_allowed"


class CrossSite(Problem):
    """A browser reports that a page of another site sent this request (`Origin`, `Sec-Fetch-Site`)."""

    code = "cross_site"


class NotFound(Problem):
    """It does not exist, or belongs to somebody else."""

    code = "not_found"


class MethodNotAllowed(Problem):
    """The path does not support this method."""

    code = "method_not_allowed"


class WaitTimedOut(Problem):
    """The job or run did not end within the `wait` time."""

    code = "wait_timeout"


class RequestTimeout(Problem):
    """The request did not arrive in time."""

    code = "request_timeout"


class IdempotencyConflict(Problem):
    """The idempotency key was used before, with a different request."""

    code = "idempotency_conflict"


class IllegalState(Problem):
    """The state of the job, run or task does not allow this request."""

    code = "illegal_state"


class NameTaken(Problem):
    """Something else has this name already."""

    code = "name_taken"


class BackfillRunning(Problem):
    """The schedule has a backfill that is running, and can have only one at a time."""

    code = "backfill_running"


class TooManyPaused(Problem):
    """No more runs can be paused."""

    code = "too_many_paused"


class StaleToken(Problem):
    """The token belongs to an attempt that is no longer the current one."""

    code = "stale_token"


class BodyTooLarge(Problem):
    """The body is larger than the limit."""

    code = "body_too_large"


class PayloadTooLarge(Problem):
    """The payload or the result is larger than the limit."""

    code = "payload_too_large"


class UnsupportedMediaType(Problem):
    """The `Content-Type` is not what the call expects: `application/json`, or `text/calendar` for an import."""

    code = "unsupported_media_type"


class ValidationFailed(Problem):
    """The request is well-formed but not valid."""

    code = "validation_failed"


class UnknownParent(Problem):
    """The job depends on a job that does not exist or belongs to somebody else."""

    code = "unknown_parent"


class Cycle(Problem):
    """Tasks of the workflow depend on each other in a circle."""

    code = "cycle"


class UnknownTask(Problem):
    """A task depends on a task that does not exist."""

    code = "unknown_task"


class DuplicateTask(Problem):
    """Two tasks in the same scope have the same name."""

    code = "duplicate_task"


class Internal(Problem):
    """The server has a fault."""

    code = "internal"


class StoreUnavailable(Problem):
    """The store is not reachable."""

    code = "store_unavailable"


class OutcomeUnknown(Problem):
    """The store did not confirm the change, so it may have been made or not."""

    code = "outcome_unknown"


class Overloaded(Problem):
    """Too many requests are waiting."""

    code = "overloaded"


class ShuttingDown(Problem):
    """The server is shutting down."""

    code = "shutting_down"


class NotReady(Problem):
    """The server is starting or cannot reach its store."""

    code = "not_ready"


class UnknownWorker(NotFound):
    """The worker session does not exist or has ended."""

    code = "unknown_worker"


class ProtocolUnsupported(Problem):
    """The server does not speak the protocol of this library."""

    code = "protocol_unsupported"


class LeaseOutOfRange(Problem):
    """The lease asked for is too short or too long."""

    code = "lease_out_of_range"


class Unauthorized(Problem):
    """The request has no key, or a key that is not valid."""

    code = "unauthorized"


class Forbidden(Problem):
    """The key does not have the right to do this."""

    code = "forbidden"


class RateLimited(Problem):
    """A quota or rate limit is used up."""

    code = "rate_limited"


PROBLEMS: dict[str, type[Problem]] = {
    problem.code: problem
    for problem in (
        InvalidJson,
        JsonTooDeep,
        DuplicateField,
        UnknownField,
        MissingField,
        WrongType,
        InvalidId,
        InvalidCursor,
        UnknownParameter,
        InvalidParameter,
        IdempotencyKeyMismatch,
        HostNotAllowed,
        CrossSite,
        NotFound,
        MethodNotAllowed,
        WaitTimedOut,
        RequestTimeout,
        IdempotencyConflict,
        IllegalState,
        NameTaken,
        BackfillRunning,
        TooManyPaused,
        StaleToken,
        BodyTooLarge,
        PayloadTooLarge,
        UnsupportedMediaType,
        ValidationFailed,
        UnknownParent,
        Cycle,
        UnknownTask,
        DuplicateTask,
        Internal,
        StoreUnavailable,
        OutcomeUnknown,
        Overloaded,
        ShuttingDown,
        NotReady,
        UnknownWorker,
        ProtocolUnsupported,
        LeaseOutOfRange,
        Unauthorized,
        Forbidden,
        RateLimited,
    )
}
"""The class of each problem code."""


def problem_from(status: int, body: Any, retry_after_s: float | None = None) -> Problem:
    """The error for an answer that is a refusal, also if its body is not a problem document."""
    document: Mapping[str, Any] = cast("Any", body) if isinstance(body, Mapping) else {}
    code = str(document.get("code") or _CODE_OF_STATUS.get(status, "unknown"))
    detail = str(document.get("detail") or document.get("title") or f"the server answered {status}")
    entries: list[Any] = document.get("errors") or []
    errors = [
        BadField(str(entry.get("pointer", "")), str(entry.get("code", "")), str(entry.get("detail", "")))
        for entry in entries
    ]
    problem = PROBLEMS.get(code, Problem)
    return problem(status=status, code=code, detail=detail, errors=errors, retry_after_s=retry_after_s)


_CODE_OF_STATUS = {401: "unauthorized", 403: "forbidden", 404: "not_found", 429: "rate_limited", 500: "internal"}


def code_of(error: BaseException) -> str:
    """The failure code of an exception: the one it carries, else its class in snake_case."""
    given = getattr(error, "code", None)
    if isinstance(given, str) and re.fullmatch(r"[a-z][a-z0-9_]{0,63}", given):
        return given
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", type(error).__name__)
    return re.sub(r"[^a-z0-9_]", "", words.lower()).strip("_")[:64] or "error"
