"""The requests of the client, without the sending: what `Client` and `AsyncClient` share.

Each function makes a `Call`: a request and what becomes of its answer.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import quote, urlencode

from ._codec import codec_for, encode
from ._durations import Duration, seconds, to_wire
from ._http import API, NoAnswer, Request
from ._tracing import current_traceparent
from .errors import JobCancelled, JobFailed, OutcomeUnknown, Problem, problem_from
from .jobtype import JobType, NewJob, options_to_wire
from .models import Attempt, Job, LogLine, NextFire, Schedule, Why, Workflow, WorkflowRun

R = TypeVar("R")
T = TypeVar("T")

BATCH_JOBS_MAX = 10_000
BATCH_BYTES_MAX = 15 * 1024 * 1024
WAIT_S_MAX = 30.0
TRIES_MAX = 6


@dataclass(frozen=True)
class Call(Generic[T]):
    """A request and what becomes of its answer."""

    request: Request
    read: Callable[[Any], T]


@dataclass(frozen=True)
class Page(Generic[T]):
    """A part of a list. `next_cursor` leads to the next part; None: this is the last one."""

    items: list[T]
    next_cursor: str | None


def reader(model: type[T]) -> Callable[[Any], T]:
    codec = codec_for(model, lenient=True)
    return codec.read


read_job = reader(Job)
read_schedule = reader(Schedule)
read_workflow = reader(Workflow)
read_run = reader(WorkflowRun)
_read_why, _read_attempt, _read_line, _read_fire = reader(Why), reader(Attempt), reader(LogLine), reader(NextFire)


def _nothing(_: Any) -> None:
    return None


def _page(read: Callable[[Any], T]) -> Callable[[Any], Page[T]]:
    return lambda body: Page([read(item) for item in body["items"]], body.get("next_cursor"))


def _items(read: Callable[[Any], T]) -> Callable[[Any], list[T]]:
    return lambda body: [read(item) for item in body["items"]]


def _path(*parts: str) -> str:
    return "/".join([API, *(quote(part, safe="") for part in parts)])


def _query(path: str, parameters: Mapping[str, Any]) -> str:
    given = {name: value for name, value in parameters.items() if value is not None}
    return f"{path}?{urlencode(given)}" if given else path


def _trace_headers() -> dict[str, str]:
    traceparent = current_traceparent()
    return {"traceparent": traceparent} if traceparent else {}


# Jobs.


def with_key(job: NewJob[Any, Any]) -> dict[str, Any]:
    """The body of a submission. It has a key of its own unless the caller gave one, so that it can be repeated."""
    return {"idempotency_key": str(uuid.uuid4()), **job.to_wire()}


def submit(job: NewJob[Any, Any]) -> Call[Job]:
    body = encode(with_key(job))
    return Call(Request("POST", _path("jobs"), body, _trace_headers()), read_job)


def submit_batches(jobs: Sequence[NewJob[Any, Any]]) -> Iterator[Call[list[Job | Problem]]]:
    """The requests for many jobs: each within the bounds of the server, all of them in order."""
    batch: list[bytes] = []
    size = 0
    for job in jobs:
        item = encode(with_key(job))
        if batch and (len(batch) >= BATCH_JOBS_MAX or size + len(item) > BATCH_BYTES_MAX):
            yield _submit_batch(batch)
            batch, size = [], 0
        batch.append(item)
        size += len(item) + 1
    if batch:
        yield _submit_batch(batch)


def _submit_batch(items: list[bytes]) -> Call[list[Job | Problem]]:
    body = b'{"jobs":[' + b",".join(items) + b"]}"
    return Call(Request("POST", _path("jobs", "batch"), body, _trace_headers(), timeout_s=60.0), _read_batch)


def _read_batch(body: Any) -> list[Job | Problem]:
    return [
        read_job(item["job"]) if "job" in item else problem_from(int(item["error"].get("status", 0)), item["error"])
        for item in body["results"]
    ]


def get_job(job_id: str, wait_s: float | None = None) -> Call[Job]:
    wait = None if wait_s is None else to_wire(wait_s)
    path = _query(_path("jobs", job_id), {"wait": wait})
    return Call(Request("GET", path, timeout_s=30.0 + (wait_s or 0.0)), read_job)


def list_jobs(filters: Mapping[str, Any]) -> Call[Page[Job]]:
    names = {name.rstrip("_"): value for name, value in filters.items()}
    return Call(Request("GET", _query(_path("jobs"), names)), _page(read_job))


def act_on_job(job_id: str, action: str) -> Call[Job]:
    # To cancel twice is to cancel; a second retry would be refused although the first one had worked.
    request = Request("POST", _path("jobs", job_id, action), b"{}", repeatable=action != "retry")
    return Call(request, read_job)


def why(job_id: str) -> Call[Why]:
    return Call(Request("GET", _path("jobs", job_id, "why")), _read_why)


def attempts(job_id: str) -> Call[list[Attempt]]:
    return Call(Request("GET", _path("jobs", job_id, "attempts")), _items(_read_attempt))


def logs(job_id: str, attempt: int) -> Call[list[LogLine]]:
    path = _query(_path("jobs", job_id, "attempts", str(attempt), "logs"), {"limit": 1000})
    return Call(Request("GET", path), _items(_read_line))


# Schedules.


def put_schedule(name: str, job: NewJob[Any, Any], options: Mapping[str, Any]) -> Call[Schedule]:
    wire = {field: value for field, value in options.items() if value is not None}
    for field in ("every", "jitter"):
        if field in wire:
            wire[field] = to_wire(wire[field])
    if "missed" in wire and "window" in wire["missed"]:
        wire["missed"] = {**wire["missed"], "window": to_wire(wire["missed"]["window"])}
    body = encode({"name": name, "job": job.to_wire(), **options_to_wire(wire)})
    return Call(Request("PUT", _path("schedules", name), body), read_schedule)


def get_schedule(name: str) -> Call[Schedule]:
    return Call(Request("GET", _path("schedules", name)), read_schedule)


def list_schedules(filters: Mapping[str, Any]) -> Call[Page[Schedule]]:
    return Call(Request("GET", _query(_path("schedules"), filters)), _page(read_schedule))


def delete_schedule(name: str) -> Call[None]:
    return Call(Request("DELETE", _path("schedules", name)), _nothing)


def act_on_schedule(name: str, action: str) -> Call[Schedule]:
    return Call(Request("POST", _path("schedules", name, action), b"{}"), read_schedule)


def trigger_schedule(name: str) -> Call[Job]:
    body = encode({"idempotency_key": str(uuid.uuid4())})
    return Call(Request("POST", _path("schedules", name, "trigger"), body), read_job)


def next_fires(name: str, count: int) -> Call[list[NextFire]]:
    return Call(Request("GET", _query(_path("schedules", name, "next"), {"count": count})), _items(_read_fire))


# Workflows.


def put_workflow(definition: Mapping[str, Any]) -> Call[Workflow]:
    return Call(Request("POST", _path("workflows"), encode(definition), timeout_s=60.0), read_workflow)


def get_workflow(name: str) -> Call[Workflow]:
    return Call(Request("GET", _path("workflows", name)), read_workflow)


def delete_workflow(name: str) -> Call[None]:
    return Call(Request("DELETE", _path("workflows", name)), _nothing)


def run_workflow(name: str, run_input: Any, idempotency_key: str | None) -> Call[WorkflowRun]:
    wire: dict[str, Any] = {"idempotency_key": idempotency_key or str(uuid.uuid4())}
    if run_input is not None:
        wire["input"] = run_input
    return Call(Request("POST", _path("workflows", name, "runs"), encode(wire), _trace_headers()), read_run)


def get_run(run_id: str, wait_s: float | None = None) -> Call[WorkflowRun]:
    wait = None if wait_s is None else to_wire(wait_s)
    path = _query(_path("workflow-runs", run_id), {"wait": wait})
    return Call(Request("GET", path, timeout_s=30.0 + (wait_s or 0.0)), read_run)


def act_on_run(run_id: str, action: str) -> Call[WorkflowRun]:
    request = Request("POST", _path("workflow-runs", run_id, action), b"{}", repeatable=action != "retry")
    return Call(request, read_run)


# Ends.

ENDED = frozenset({"completed", "failed", "cancelled", "skipped"})


def result_of(job_type: JobType[Any, R], job: Job) -> R:
    """The result of a job that has ended. Raises `JobFailed` or `JobCancelled`."""
    if job.status == "failed":
        raise JobFailed(job)
    if job.status in ("cancelled", "skipped"):
        raise JobCancelled(job)
    return job_type.read_result(job.result)


# Repeating.


def pause_before_repeat(request: Request, error: Exception, tries: int) -> float | None:
    """How long to wait before sending a request again; None: the error is final."""
    if tries >= TRIES_MAX:
        return None
    backoff = random.uniform(0, min(0.1 * 2**tries, 5.0))  # noqa: S311 - spreads load, guards nothing
    if isinstance(error, NoAnswer):
        if not request.repeatable and error.sent:
            return None
        return 0.0 if error.reused_connection and tries == 1 else backoff
    if isinstance(error, OutcomeUnknown) and not request.repeatable:
        return None
    if isinstance(error, Problem) and error.status in (429, 503):
        return max(error.retry_after_s or 0.0, backoff) if (error.retry_after_s or 0.0) <= 30.0 else None
    return None


def duration_or_forever(duration: Duration | None) -> float:
    return float("inf") if duration is None else seconds(duration)
