"""The worker: `python worker.py`, or `python -m tickwheel worker worker:worker --processes 4`."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from jobs import IndexDoc, Receipt, SendEmail, index_doc, send_email

from tickwheel import Context, RetryAfter, Worker


class BadAddress(Exception):
    """No retry will make this address a good one."""


class App:
    """What handlers share: connections, caches, configuration. It lives as long as the worker."""

    def __init__(self) -> None:
        self.sent: dict[str, SendEmail] = {}
        self.documents: dict[int, str] = {}

    @staticmethod
    @asynccontextmanager
    async def connect() -> AsyncGenerator[App]:
        yield App()

    async def send(self, email: SendEmail, idempotency_key: str) -> str:
        self.sent[idempotency_key] = email
        return f"<{idempotency_key}@example.com>"


worker = Worker(name="mailer", queues=["mail"], capacity=20, lifespan=App.connect)


@worker.handler(send_email, not_retryable=[BadAddress])
async def deliver(email: SendEmail, ctx: Context[App]) -> Receipt:
    ctx.progress(10, "rendering")
    ctx.log.info("to %s", email.to)
    if "@" not in email.to:
        raise BadAddress(f"{email.to} is not an address")
    if ctx.time_left < 5:
        raise RetryAfter("1m", "too little time left")
    await ctx.heartbeat()
    message_id = await ctx.once("smtp", lambda key: ctx.state.send(email, key))
    return Receipt(message_id)


@worker.batch_handler(index_doc, jobs_max=100, wait_max="50ms")
async def index(docs: list[IndexDoc], ctx: Context[App]) -> list[bool | BaseException]:
    for doc in docs:
        ctx.state.documents[doc.id] = doc.text
    return [True if doc.text else ValueError(f"document {doc.id} is empty") for doc in docs]


@worker.middleware
async def timed(ctx: Context[App], call_next: Any) -> Any:
    started = time.monotonic()
    try:
        return await call_next()
    finally:
        ctx.log.info("%s took %.0f ms", ctx.job.type, (time.monotonic() - started) * 1000)


if __name__ == "__main__":
    worker.run()
