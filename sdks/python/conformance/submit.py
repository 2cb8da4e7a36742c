"""`worker.py submit ACTION`: submits something the way a user would, and prints one line of JSON."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Generator
from typing import Any

from tickwheel import Client, Handle, JobFailed, JobType, Problem, TickwheelError, WaitTimeout, Workflow, ref

echo = JobType("echo")
reject = JobType("reject")

Parameters = dict[str, Any]


def one(client: Client, parameters: Parameters) -> Any:
    job_type: JobType[Any, Any] = JobType(parameters["type"])
    return {"id": client.submit(job_type, parameters["payload"], queue=parameters["queue"]).id}


def many(client: Client, parameters: Parameters) -> Any:
    bad = set(parameters["bad"])
    queue = parameters["queue"]
    jobs = [echo.new({"n": n}, queue="bad\u0001queue" if n in bad else queue) for n in range(parameters["count"])]
    results = client.submit_many(jobs)
    ids = [result.id for result in results if isinstance(result, Handle)]
    errors = [
        {"index": index, "code": result.code} for index, result in enumerate(results) if isinstance(result, Problem)
    ]
    return {"submitted": len(ids), "distinct": len(set(ids)), "errors": errors}


def unique(client: Client, parameters: Parameters) -> Any:
    def submit() -> str:
        options: Any = {"queue": parameters["queue"], "delay": "1h", "unique": {"within": "5m"}}
        return client.submit(echo, {"same": True}, **options).id

    return {"ids": [submit(), submit()]}


def wait(client: Client, parameters: Parameters) -> Any:
    queue = parameters["queue"]
    result = client.submit(echo, {"hello": "world"}, queue=queue).wait("30s")
    answer: dict[str, Any] = {"result": result, "failed": None, "code": None, "timeout": None}
    try:
        client.submit(reject, {"how": "not_retryable", "code": "nope"}, queue=queue).wait("30s")
    except JobFailed as error:
        answer["failed"], answer["code"] = type(error).__name__, error.code
    try:
        client.submit(echo, {}, queue=queue, delay="1h").wait("200ms")
    except WaitTimeout as error:
        answer["timeout"] = type(error).__name__
    return answer


def schedule(client: Client, parameters: Parameters) -> Any:
    def put() -> str:
        job = echo.new({}, queue=parameters["queue"])
        return client.schedules.put(parameters["name"], cron="0 7 * * mon-fri", timezone="Europe/Berlin", job=job).id

    return {"ids": [put(), put()]}


def workflow(client: Client, parameters: Parameters) -> Any:
    name, queue = parameters["name"], parameters["queue"]
    client.workflows.put(
        Workflow(name)
        .task("first", echo, payload={"rows": ref("input.rows")}, queue=queue)
        .task("second", echo, payload={"got": ref("first.result.rows")}, depends_on=["first"], queue=queue)
    )
    return {"run_id": client.workflows.run(name, {"rows": 42}).id}


ACTIONS: dict[str, Callable[[Client, Parameters], Any]] = {
    "one": one,
    "many": many,
    "unique": unique,
    "wait": wait,
    "schedule": schedule,
    "workflow": workflow,
}


@contextlib.contextmanager
def current_trace(traceparent: str | None) -> Generator[None]:
    """Makes a span of that trace the current one, as a program with traces would have."""
    if not traceparent:
        yield
        return
    from opentelemetry import trace

    _, trace_id, span_id, flags = traceparent.split("-")
    context = trace.SpanContext(
        int(trace_id, 16), int(span_id, 16), is_remote=False, trace_flags=trace.TraceFlags(int(flags, 16))
    )
    with trace.use_span(trace.NonRecordingSpan(context)):
        yield


def submit(action: str) -> int:
    parameters = json.loads(sys.stdin.readline() or "{}")
    try:
        with Client() as client, current_trace(os.environ.get("CONFORMANCE_TRACEPARENT")):
            print(json.dumps(ACTIONS[action](client, parameters)))
    except TickwheelError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return 0
