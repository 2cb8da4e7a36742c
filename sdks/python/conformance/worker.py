"""The conformance worker: the handlers that sdks/conformance describes, written the way a user would write them."""

from __future__ import annotations

import asyncio
import ctypes
import json
import logging
import os
import sys
import time
from dataclasses import dataclass
from typing import Any, Literal, cast

from submit import submit

from tickwheel import Context, JobType, NotRetryable, RetryAfter, Snooze, SyncContext, Worker


class ConformanceError(Exception):
    """What a handler raises when it was asked to fail."""


class ListedError(Exception):
    """One that its handler lists as not retryable."""


# Events.

_EVENTS = os.environ.get("CONFORMANCE_EVENTS")
_events_file = os.open(_EVENTS, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644) if _EVENTS else None


def write_event(event: str, **fields: Any) -> None:
    if _events_file is None:
        return
    clocks = {"pid": os.getpid(), "wall_ms": time.time() * 1000, "mono_ms": time.monotonic() * 1000}
    os.write(_events_file, json.dumps({"event": event, **fields, **clocks}).encode() + b"\n")


def record(ctx: Context[None] | SyncContext[None], event: str, **fields: Any) -> None:
    job = {"type": ctx.job.type, "job_id": ctx.job.id, "attempt": ctx.attempt, "fencing_token": ctx.fencing_token}
    write_event(event, **job, **fields)


def started(ctx: Context[None] | SyncContext[None]) -> None:
    record(ctx, "start", traceparent=ctx.traceparent)


def raising(ctx: Context[None], error: BaseException) -> BaseException:
    record(ctx, "error", error=type(error).__name__)
    return error


# Contracts.


def whole(number: int) -> None:
    if number < 0:
        raise ValueError(f"{number} is negative")


@dataclass
class Sleep:
    for_ms: int

    def __post_init__(self) -> None:
        whole(self.for_ms)


@dataclass
class Block:
    for_ms: int
    how: Literal["native", "busy", "sleep"]


@dataclass
class Fail:
    times: int
    how: str = "error"


@dataclass
class Reject:
    how: Literal["not_retryable", "listed"]
    code: str = "rejected"


@dataclass
class Delay:
    delay_ms: int
    times: int


@dataclass
class Progress:
    steps: int
    every_ms: int


@dataclass
class Log:
    lines: int
    bytes: int
    every_ms: int


@dataclass
class Once:
    key: str
    calls: int = 1
    scope: Literal["job", "tenant"] = "job"
    in_doubt: Literal["again", "fail"] = "again"
    hold_ms: int = 0
    die: bool = False
    fail_times: int = 0


@dataclass
class Exit:
    code: int


@dataclass
class BatchEcho:
    n: int
    how: str = "ok"
    times: int = 1


worker = Worker()


@worker.handler(JobType("echo"))
async def echo(payload: Any, ctx: Context[None]) -> Any:
    started(ctx)
    result = payload
    if isinstance(payload, dict) and list(cast("dict[str, Any]", payload)) == ["make_bytes"]:
        result = "x" * (payload["make_bytes"] - 2)
    record(ctx, "end")
    return result


_capacity = os.environ.get("CONFORMANCE_SLEEP_CAPACITY")
_on_lease_lost = cast("Literal['cancel', 'continue']", os.environ.get("CONFORMANCE_ON_LEASE_LOST") or "cancel")


@worker.handler(JobType("sleep", Sleep), capacity=int(_capacity) if _capacity else None, on_lease_lost=_on_lease_lost)
async def sleep(payload: Sleep, ctx: Context[None]) -> dict[str, int]:
    started(ctx)
    try:
        await asyncio.sleep(payload.for_ms / 1000)
    except asyncio.CancelledError:
        record(ctx, "cancelled", reason=ctx.cancel_reason)
        raise
    record(ctx, "end")
    return {"slept_ms": payload.for_ms}


@worker.handler(JobType("block", Block))
async def block(payload: Block, ctx: Context[None]) -> dict[str, int]:
    started(ctx)
    until = time.monotonic() + payload.for_ms / 1000
    if payload.how == "sleep":
        time.sleep(payload.for_ms / 1000)  # noqa: ASYNC251 - blocks on purpose
    elif payload.how == "native":
        library = ctypes.PyDLL(None)  # keeps the interpreter's lock
        while (left := until - time.monotonic()) > 0:
            library.usleep(min(int(left * 1e6) + 1, 900_000))
    else:
        while time.monotonic() < until:
            pass
    record(ctx, "end")
    return {"blocked_ms": payload.for_ms}


def fail_now(ctx: Context[None], how: str) -> Any:
    if how == "system_exit":
        record(ctx, "error", error="SystemExit")
        sys.exit(3)
    if how == "not_json":
        record(ctx, "end")
        return object()
    raise raising(ctx, ConformanceError(f"asked to fail, attempt {ctx.attempt}"))


@worker.handler(JobType("fail", Fail))
async def fail(payload: Fail, ctx: Context[None]) -> Any:
    started(ctx)
    if ctx.attempt <= payload.times:
        return fail_now(ctx, payload.how)
    record(ctx, "end")
    return {"attempt": ctx.attempt}


@worker.handler(JobType("reject", Reject), not_retryable=[ListedError])
async def reject(payload: Reject, ctx: Context[None]) -> None:
    started(ctx)
    if payload.how == "listed":
        raise raising(ctx, ListedError("listed as not retryable"))
    raise raising(ctx, NotRetryable("asked to reject", code=payload.code))


@worker.handler(JobType("retry_after", Delay))
async def retry_after(payload: Delay, ctx: Context[None]) -> dict[str, int]:
    started(ctx)
    if ctx.attempt <= payload.times:
        raise raising(ctx, RetryAfter(payload.delay_ms / 1000, "later"))
    record(ctx, "end")
    return {"attempt": ctx.attempt}


@worker.handler(JobType("snooze", Delay))
async def snooze(payload: Delay, ctx: Context[None]) -> dict[str, int]:
    started(ctx)
    if ctx.attempt <= payload.times:
        raise raising(ctx, Snooze(payload.delay_ms / 1000))
    record(ctx, "end")
    return {"attempt": ctx.attempt}


@worker.handler(JobType("progress", Progress))
async def progress(payload: Progress, ctx: Context[None]) -> dict[str, int]:
    started(ctx)
    for step in range(1, payload.steps + 1):
        ctx.progress(100 * step / payload.steps, f"step {step}")
        await asyncio.sleep(payload.every_ms / 1000)
    record(ctx, "end")
    return {"steps": payload.steps}


@worker.handler(JobType("log", Log))
async def log(payload: Log, ctx: Context[None]) -> dict[str, int]:
    started(ctx)
    for number in range(1, payload.lines + 1):
        ctx.log.info("%s", f"line {number} ".ljust(payload.bytes, "x"))
        if payload.every_ms:
            await asyncio.sleep(payload.every_ms / 1000)
    record(ctx, "end")
    return {"lines": payload.lines}


@worker.handler(JobType("once", Once))
async def once(payload: Once, ctx: Context[None]) -> Any:
    started(ctx)

    async def effect(key: str) -> dict[str, str]:
        record(ctx, "effect", idempotency_key=key)
        if payload.die and ctx.attempt == 1:
            os._exit(9)
        await asyncio.sleep(payload.hold_ms / 1000)
        return {"effect": key}

    results = [
        await ctx.once(payload.key, effect, scope=payload.scope, in_doubt=payload.in_doubt)
        for _ in range(payload.calls)
    ]
    if ctx.attempt <= payload.fail_times:
        return fail_now(ctx, "error")
    record(ctx, "end")
    return results


@worker.handler(JobType("exit", Exit))
async def exit_now(payload: Exit, ctx: Context[None]) -> None:
    started(ctx)
    os._exit(payload.code)


@worker.handler(JobType("stubborn", Sleep))
def stubborn(payload: Sleep, ctx: SyncContext[None]) -> dict[str, int]:
    started(ctx)
    time.sleep(payload.for_ms / 1000)
    record(ctx, "end")
    return {"slept_ms": payload.for_ms}


_seen: dict[int, int] = {}


@worker.batch_handler(JobType("batch_echo", BatchEcho), jobs_max=100, wait_max="50ms")
async def batch_echo(payloads: list[BatchEcho]) -> list[int | BaseException]:
    write_event("batch", type="batch_echo", ns=[payload.n for payload in payloads])
    entries: list[int | BaseException] = []
    acts: set[str] = set()
    for payload in payloads:
        _seen[payload.n] = _seen.get(payload.n, 0) + 1
        how = payload.how if _seen[payload.n] <= payload.times else "ok"
        acts.add(how)
        entries.append(ConformanceError(f"asked to fail, n {payload.n}") if how == "fail" else payload.n)
    if "raise" in acts:
        raise ConformanceError("asked to raise")
    return entries[:-1] if "short" in acts else entries


def record_spans() -> None:
    from opentelemetry import trace
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

    class Recorder(SpanExporter):
        def export(self, spans: Any) -> SpanExportResult:
            for span in spans:
                self.record(span)
            return SpanExportResult.SUCCESS

        def record(self, span: ReadableSpan) -> None:
            context = span.get_span_context()
            assert context is not None
            links = [
                {"trace_id": f"{link.context.trace_id:032x}", "span_id": f"{link.context.span_id:016x}"}
                for link in span.links
            ]
            parent = f"{span.parent.span_id:016x}" if span.parent else None
            ids = {"trace_id": f"{context.trace_id:032x}", "span_id": f"{context.span_id:016x}"}
            write_event("span", name=span.name, **ids, parent_span_id=parent, links=links)

    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(Recorder()))
    trace.set_tracer_provider(provider)


if __name__ == "__main__":
    if sys.argv[1:2] == ["submit"]:
        sys.exit(submit(sys.argv[2]))
    level = logging.DEBUG if os.environ.get("CONFORMANCE_LOG") == "debug" else logging.INFO
    logging.basicConfig(level=level, format="%(levelname)s %(name)s %(message)s")
    if os.environ.get("CONFORMANCE_OTEL") == "1":
        record_spans()
    worker.run()
