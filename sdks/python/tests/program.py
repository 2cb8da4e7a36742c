"""A worker program for tests that need a process of its own."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from tickwheel import Context, JobType, SyncContext, Worker


@asynccontextmanager
async def lifespan() -> AsyncGenerator[dict[str, int]]:
    yield {"pid": os.getpid()}


worker = Worker(lifespan=lifespan, capacity=60)


@worker.handler(JobType("echo"))
async def echo(payload: Any) -> Any:
    return payload


@worker.handler(JobType("sleep"))
async def sleep(payload: float) -> str:
    await asyncio.sleep(payload)
    return "slept"


@worker.handler(JobType("ignore"))
async def ignore(payload: float) -> str:
    until = time.monotonic() + payload
    while (left := until - time.monotonic()) > 0:
        try:
            await asyncio.sleep(left)
        except asyncio.CancelledError:
            print("not listening", file=sys.stderr)
    return "ignored"


@worker.handler(JobType("hold_the_lock"))
async def hold_the_lock(payload: float) -> str:
    ctypes.PyDLL(None).usleep(int(payload * 1e6))
    return "held"


@worker.handler(JobType("exit_in_a_task"))
async def exit_in_a_task(payload: Any) -> str:
    async def leave() -> None:
        sys.exit(3)

    task = asyncio.create_task(leave())
    await asyncio.sleep(0.05)
    return f"lives on, {task.done()}"


@worker.handler(JobType("isolated"), isolate=True, capacity=2, cancel_grace="500ms")
def isolated(payload: dict[str, Any], ctx: SyncContext[dict[str, int]]) -> Any:
    print("this must not disturb anything")
    how = payload["how"]
    if how == "where":
        ctx.progress(50, "half")
        ctx.log.info("from the child")
        ctx.heartbeat()
        return {"pid": os.getpid(), "lifespan": ctx.state["pid"], "once": ctx.once("k", lambda key: key)}
    if how == "die":
        os._exit(7)
    if how == "clean":
        try:
            time.sleep(60)
        finally:
            ctx.log.info("cleaned up: %s", ctx.cancel_reason)
    if how == "stubborn":
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        time.sleep(60)
    if how == "raise":
        raise ValueError("from the child")
    return None


@worker.handler(JobType("fork"))
async def fork(payload: Any) -> int:
    child = os.fork()
    if child == 0:
        time.sleep(30)  # noqa: ASYNC251 - holds every pipe of its parent open
        os._exit(0)
    return child


@worker.handler(JobType("where"))
async def where(payload: Any, ctx: Context[dict[str, int]]) -> int:
    return ctx.state["pid"]


worker.run()
