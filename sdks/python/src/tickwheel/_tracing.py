"""Traces, if OpenTelemetry is installed (`pip install tickwheel[otel]`); otherwise only the `traceparent` is passed on.

Attribute names live here alone: the messaging conventions are still in development.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import re
from collections.abc import Generator, Sequence
from typing import Any

SYSTEM = "messaging.system"
OPERATION = "messaging.operation.type"
DESTINATION = "messaging.destination.name"
MESSAGE_ID = "messaging.message.id"
BATCH_COUNT = "messaging.batch.message_count"
JOB_TYPE = "tickwheel.job.type"
ATTEMPT = "tickwheel.job.attempt"

_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")
# The traceparent of the attempt that runs here: what it submits belongs to the same trace.
inherited: contextvars.ContextVar[str | None] = contextvars.ContextVar("tickwheel_traceparent", default=None)


@functools.lru_cache(maxsize=1)
def _api() -> Any:
    try:
        from opentelemetry import trace
    except ImportError:
        return None
    return trace


def prepare() -> None:
    """Imports what is needed, so that no job waits for it."""
    _api()


def current_traceparent() -> str | None:
    """The trace that a submission made here and now belongs to."""
    trace = _api()
    if trace is not None:
        span = trace.get_current_span().get_span_context()
        if span.is_valid:
            return f"00-{span.trace_id:032x}-{span.span_id:016x}-{int(span.trace_flags):02x}"
    return inherited.get()


def _remote(trace: Any, traceparent: str | None) -> Any:
    match = _TRACEPARENT.fullmatch(traceparent or "")
    if match is None:
        return None
    flags = trace.TraceFlags(int((traceparent or "")[-2:], 16))
    return trace.SpanContext(int(match[1], 16), int(match[2], 16), is_remote=True, trace_flags=flags)


@contextlib.contextmanager
def attempt_span(
    job_type: str, queue: str, jobs: Sequence[tuple[str, int, str | None]], *, batch: bool
) -> Generator[None]:
    """A consumer span around an attempt, `process <type>`. Of a batch it has a link per job instead of a parent."""
    first = jobs[0]
    token = inherited.set(None if batch else first[2])
    try:
        trace = _api()
        if trace is None:
            yield
            return
        parents = [_remote(trace, traceparent) for _, _, traceparent in jobs]
        attributes: dict[str, Any] = {
            SYSTEM: "tickwheel",
            OPERATION: "process",
            DESTINATION: queue,
            JOB_TYPE: job_type,
        }
        parent, links = None, None
        if not batch:
            attributes |= {MESSAGE_ID: first[0], ATTEMPT: first[1]}
            if parents[0] is not None:
                parent = trace.set_span_in_context(trace.NonRecordingSpan(parents[0]))
        else:
            attributes[BATCH_COUNT] = len(jobs)
            links = [trace.Link(context) for context in parents if context is not None]
        tracer = trace.get_tracer("tickwheel")
        kind = trace.SpanKind.CONSUMER
        with tracer.start_as_current_span(
            f"process {job_type}", context=parent, kind=kind, attributes=attributes, links=links
        ):
            yield
    finally:
        inherited.reset(token)
