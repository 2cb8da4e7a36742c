"""The client against the real server, when `TICKWHEEL_BIN` names it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from conftest import Running

from tickwheel import AsyncClient, Context, JobFailed, JobType, NotRetryable, Worker, Workflow, ref
from tickwheel.testing import Server

ECHO: JobType[Any, Any] = JobType("echo")
LOUD: JobType[Any, Any] = JobType("loud")
BAD: JobType[Any, Any] = JobType("bad")


def worker_of(server: Server) -> Worker[None]:
    worker = Worker(server=server.url, lease="5s")

    @worker.handler(ECHO)
    async def echo(payload: Any) -> Any:
        return payload

    @worker.handler(LOUD)
    async def loud(payload: Any, ctx: Context[None]) -> None:
        for word in payload:
            ctx.log.info("%s", word)

    @worker.handler(BAD)
    async def bad(payload: Any) -> None:
        raise NotRetryable("no", code="no_way")

    return worker


def test_jobs(tickwheel_server: Server) -> None:
    with tickwheel_server.client() as client:
        later = client.submit(ECHO, 1, delay="1h")
        assert client.why(later.id).code == "not_yet_due"
        assert [job.id for job in client.list(status="scheduled").items] == [later.id]
        assert client.pause(later.id).status == "paused"
        assert client.resume(later.id).status == "scheduled"
        with Running(worker_of(tickwheel_server)):
            assert client.run_now(later.id).id == later.id
            assert later.wait("20s") == 1
            with pytest.raises(JobFailed, match="no_way"):
                client.submit(BAD, None).wait("20s")
            said = client.submit(LOUD, ["a", "b"])
            said.wait("20s")
            assert [(line.number, line.message) for line in client.logs(said.id)] == [(0, "a"), (1, "b")]
            assert [attempt.outcome for attempt in client.attempts(said.id)] == ["completed"]
        cancelled = client.submit(ECHO, 2, delay="1h")
        assert cancelled.cancel().status == "cancelled"


def test_schedules(tickwheel_server: Server) -> None:
    def put(cron: str) -> Any:
        return client.schedules.put("digest", cron=cron, timezone="Europe/Berlin", job=ECHO.new("tick"))

    with tickwheel_server.client() as client:
        assert put("0 7 * * mon-fri").id == put("0 8 * * mon-fri").id
        assert client.schedules.get("digest").cron == "0 8 * * mon-fri"
        assert len(client.schedules.list().items) == 1
        assert len(client.schedules.next("digest", 3)) == 3
        assert client.schedules.pause("digest").paused
        assert not client.schedules.resume("digest").paused
        job = client.schedules.trigger("digest")
        with Running(worker_of(tickwheel_server)):
            assert client.handle(ECHO, job.id).wait("20s") == "tick"
        assert client.schedules.delete("digest")
        assert not client.schedules.delete("digest")


def test_workflows(tickwheel_server: Server) -> None:
    workflow = (
        Workflow("etl")
        .task("extract", ECHO, payload={"rows": ref("input.rows")})
        .task("load", ECHO, payload={"got": ref("extract.result.rows")}, depends_on=["extract"])
    )
    with tickwheel_server.client() as client, Running(worker_of(tickwheel_server)):
        assert client.workflows.put(workflow).name == client.workflows.get("etl").name
        run = client.workflows.wait(client.workflows.run("etl", {"rows": 42}).id, "20s")
        assert run.status == "completed"
        (load,) = [task for task in run.tasks if task.name == "load"]
        assert load.job_id is not None
        assert client.get(load.job_id).result == {"got": 42}
        assert client.workflows.delete("etl")


def test_the_same_awaited(tickwheel_server: Server) -> None:
    async def use(client: AsyncClient) -> None:
        async with client:
            handles = await client.submit_many([ECHO.new(n) for n in range(3)])
            for n, handle in enumerate(handles):
                assert not isinstance(handle, Exception)
                assert await handle.wait("20s") == n
            await client.schedules.put("often", every="1h", job=ECHO.new("tock"))
            job = await client.schedules.trigger("often")
            assert await (await client.handle(ECHO, job.id)).wait("20s") == "tock"

    with Running(worker_of(tickwheel_server)):
        asyncio.run(use(tickwheel_server.async_client()))
