"""The worker program of README.md on the standard library alone. It shows that the protocol is enough."""

import asyncio
import ctypes
import json
import logging
import os
import sys
import threading
import time
import uuid

from reference.wire import Problem, Wire
from reference.worker import Failure, Settings, Worker

logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s %(message)s",
                    level=os.environ.get("CONFORMANCE_LOG", "info").upper())

EVENTS = os.environ.get("CONFORMANCE_EVENTS")
events_file = os.open(EVENTS, os.O_WRONLY | os.O_APPEND | os.O_CREAT) if EVENTS else None


class ConformanceError(Exception):
    """What `fail` raises."""


class ListedError(Exception):
    """What `reject` raises: registered as not retryable."""


def record(event, ctx=None, **fields):
    if events_file is None:
        return
    entry = {"event": event, "pid": os.getpid(), "wall_ms": time.time() * 1000, "mono_ms": time.monotonic() * 1000}
    if ctx:
        entry |= {"type": ctx.job["type"], "job_id": ctx.job["id"], "attempt": ctx.number,
                  "fencing_token": ctx.fencing_token}
    os.write(events_file, (json.dumps(entry | fields) + "\n").encode())


def recorded(handler):
    async def run(payload, ctx):
        record("start", ctx, traceparent=ctx.traceparent)
        try:
            result = await handler(payload, ctx)
        except asyncio.CancelledError:
            record("cancelled", ctx, reason=ctx.reason)
            raise
        except BaseException as error:
            record("error", ctx, error=type(error).__name__)
            raise
        record("end", ctx)
        record_span(ctx)
        return result

    return run


def record_span(ctx):
    """What an OpenTelemetry SDK would export."""
    if os.environ.get("CONFORMANCE_OTEL") and ctx.traceparent:
        _, trace_id, parent_id, _ = ctx.traceparent.split("-")
        record("span", name=f"process {ctx.job['type']}", trace_id=trace_id, span_id=os.urandom(8).hex(),
               parent_span_id=parent_id, links=[])


async def echo(payload, ctx):
    if isinstance(payload, dict) and list(payload) == ["make_bytes"]:
        return "x" * (payload["make_bytes"] - 2)
    return payload


async def sleep(payload, ctx):
    await asyncio.sleep(payload["for_ms"] / 1000)
    return {"slept_ms": payload["for_ms"]}


async def block(payload, ctx):
    await asyncio.sleep(0.1)
    end = time.monotonic() + payload["for_ms"] / 1000
    if payload["how"] == "native":
        ctypes.PyDLL(None).usleep(payload["for_ms"] * 1000)  # keeps the interpreter's lock
    elif payload["how"] == "sleep":
        time.sleep(payload["for_ms"] / 1000)
    while time.monotonic() < end:
        pass
    return {"blocked_ms": payload["for_ms"]}


async def fail(payload, ctx):
    how = payload.get("how", "error")
    if ctx.number > payload["times"]:
        return {"attempt": ctx.number}
    if how == "not_json":
        return object()
    if how == "system_exit":
        sys.exit(3)
    raise ConformanceError(f"asked to fail, attempt {ctx.number}")


async def reject(payload, ctx):
    if payload["how"] == "listed":
        raise ListedError("rejected")
    raise Failure("rejected", code=payload.get("code", "rejected"), retryable=False)


async def retry_after(payload, ctx):
    if ctx.number <= payload["times"]:
        raise Failure("later", delay=f"{payload['delay_ms']}ms")
    return {"attempt": ctx.number}


async def snooze(payload, ctx):
    if ctx.number <= payload["times"]:
        raise Failure("not yet", delay=f"{payload['delay_ms']}ms", snooze=True)
    return {"attempt": ctx.number}


async def progress(payload, ctx):
    for step in range(1, payload["steps"] + 1):
        ctx.progress(100 * step / payload["steps"], f"step {step}")
        await asyncio.sleep(payload["every_ms"] / 1000)
    return {"steps": payload["steps"]}


async def log(payload, ctx):
    for number in range(1, payload["lines"] + 1):
        ctx.log(f"line {number} ".ljust(payload["bytes"], "x"))
        if payload["every_ms"]:
            await asyncio.sleep(payload["every_ms"] / 1000)
    return {"lines": payload["lines"]}


async def once(payload, ctx):
    async def effect(idempotency_key):
        record("effect", ctx, idempotency_key=idempotency_key)
        if payload.get("die") and ctx.number == 1:
            os._exit(9)
        await asyncio.sleep(payload.get("hold_ms", 0) / 1000)
        return {"effect": idempotency_key}

    answers = []
    for _ in range(payload.get("calls", 1)):
        answers.append(await ctx.once(payload["key"], effect, payload.get("scope", "job"), payload.get("in_doubt", "again")))
    if ctx.number <= payload.get("fail_times", 0):
        raise ConformanceError(f"asked to fail, attempt {ctx.number}")
    return answers


async def exit_(payload, ctx):
    os._exit(payload["code"])


async def stubborn(payload, ctx):
    done, loop = asyncio.Event(), asyncio.get_running_loop()

    def wait():
        time.sleep(payload["for_ms"] / 1000)
        loop.call_soon_threadsafe(done.set)

    threading.Thread(target=wait, daemon=True).start()
    while not done.is_set():
        try:
            await done.wait()
        except asyncio.CancelledError:
            continue
    return {"slept_ms": payload["for_ms"]}


seen = {}


async def batch_echo(payloads):
    record("batch", ns=[payload["n"] for payload in payloads])
    acting = []
    for payload in payloads:
        seen[payload["n"]] = seen.get(payload["n"], 0) + 1
        acting.append(payload.get("how", "ok") if seen[payload["n"]] <= payload.get("times", 1) else "ok")
    if "raise" in acting:
        raise ConformanceError("asked to fail")
    answers = [ConformanceError("asked to fail") if how == "fail" else payload["n"]
               for payload, how in zip(payloads, acting)]
    return answers[:-1] if "short" in acting else answers


def whole_numbers(*names):
    """What is wrong with a payload in which these fields must be whole numbers."""

    def check(payload):
        if not isinstance(payload, dict):
            return "the payload is not an object"
        for name in names:
            value = payload.get(name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                return f"{name}: {value!r} is not a whole number"
        return None

    return check


# Submitting.


class Client:
    def __init__(self):
        settings = Settings()
        self.wire = Wire(settings.servers, settings.read_key)
        self.wire.traceparent = os.environ.get("CONFORMANCE_TRACEPARENT")

    def call(self, method, path, body=None):
        for _ in range(20):
            try:
                return self.wire.call(method, path, body, timeout=60)
            except Problem:
                raise
            except Exception:
                time.sleep(0.1)
        raise RuntimeError("the server is away")

    def submit(self, kind, payload, **options):
        body = {"type": kind, "payload": payload, "idempotency_key": str(uuid.uuid4())} | options
        return self.call("POST", "/api/v1/jobs", body)["id"]

    def one(self, type, payload, queue):
        return {"id": self.submit(type, payload, queue=queue)}

    def many(self, count, bad, queue):
        results = []
        for start in range(0, count, 10_000):
            jobs = [{"type": "echo", "payload": {"n": n}, "queue": "bad\u0001queue" if n in bad else queue,
                     "idempotency_key": str(uuid.uuid4())} for n in range(start, min(count, start + 10_000))]
            results += self.call("POST", "/api/v1/jobs/batch", {"jobs": jobs})["results"]
        errors = [{"index": n, "code": result["error"]["code"]} for n, result in enumerate(results) if "error" in result]
        ids = [result["job"]["id"] for result in results if "job" in result]
        return {"submitted": len(ids), "distinct": len(set(ids)), "errors": errors}

    def unique(self, queue):
        rule = {"by": ["type", "payload"], "within": "5m"}
        return {"ids": [self.submit("echo", {"same": True}, queue=queue, delay="1h", unique=rule) for _ in range(2)]}

    def wait(self, queue):
        done = self.call("GET", f"/api/v1/jobs/{self.submit('echo', {'hello': 'world'}, queue=queue)}?wait=30s")
        bad = self.submit("reject", {"how": "not_retryable", "code": "nope"}, queue=queue)
        failed = self.call("GET", f"/api/v1/jobs/{bad}?wait=30s")
        late = self.submit("echo", {}, queue=queue, delay="1h")
        try:
            timeout = self.call("GET", f"/api/v1/jobs/{late}?wait=200ms")["status"]
        except Problem as problem:
            timeout = "WaitTimeout" if problem.status == 408 else str(problem)
        return {"result": done["result"], "failed": "JobFailed" if failed["status"] == "failed" else failed["status"],
                "code": failed["error"]["code"], "timeout": timeout}

    def schedule(self, name, queue):
        body = {"name": name, "cron": "0 7 * * mon-fri", "timezone": "Europe/Berlin", "job": {"type": "echo", "queue": queue}}
        return {"ids": [self.call("PUT", f"/api/v1/schedules/{name}", body)["id"] for _ in range(2)]}

    def workflow(self, name, queue):
        first = {"type": "echo", "queue": queue, "payload": {"rows": {"$from": "input.rows"}}}
        second = {"type": "echo", "queue": queue, "payload": {"got": {"$from": "first.result.rows"}}}
        self.call("POST", "/api/v1/workflows", {"name": name, "tasks": [
            {"name": "first", "job": first}, {"name": "second", "job": second, "depends_on": ["first"]}]})
        return {"run_id": self.call("POST", f"/api/v1/workflows/{name}/runs", {"input": {"rows": 42}})["id"]}


def submit(action):
    print(json.dumps(getattr(Client(), action)(**json.load(sys.stdin))))


def work():
    handlers = {"echo": echo, "sleep": sleep, "block": block, "fail": fail, "reject": reject, "retry_after": retry_after,
                "snooze": snooze, "progress": progress, "log": log, "once": once, "exit": exit_, "stubborn": stubborn}
    slots = os.environ.get("CONFORMANCE_SLEEP_CAPACITY")
    Worker(
        {name: recorded(handler) for name, handler in handlers.items()},
        batch_handlers={"batch_echo": (batch_echo, 100, 0.05)},
        checks={"sleep": whole_numbers("for_ms"), "stubborn": whole_numbers("for_ms"), "fail": whole_numbers("times")},
        slots={"sleep": int(slots)} if slots else {},
        on_lease_lost={"sleep": os.environ.get("CONFORMANCE_ON_LEASE_LOST", "cancel")},
        not_retryable=(ListedError,),
    ).run()


if __name__ == "__main__":
    if sys.argv[1:2] == ["submit"]:
        submit(sys.argv[2])
    else:
        work()
