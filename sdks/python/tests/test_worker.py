"""A worker against a server in this process: jobs, cancels, leases, lost answers, drains."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from conftest import Running
from fake_server import FakeServer, Refusal

from tickwheel import Cancelled, Context, JobType, LeaseLost, SyncContext, Worker, WorkerRefused

ECHO = JobType("echo")
SLEEP = JobType("sleep", float)
BLOCK = JobType("block", float)


@dataclass
class Email:
    to: str


def echo_worker(fake: FakeServer, **options: Any) -> Worker[None]:
    worker = Worker(server=fake.url, name="test", **options)
    worker.cancelled = []  # type: ignore[attr-defined]
    worker.started = []  # type: ignore[attr-defined]

    @worker.handler(ECHO)
    async def echo(payload: Any) -> Any:
        return payload

    @worker.handler(SLEEP)
    async def sleep(payload: float, ctx: Context[None]) -> str:
        worker.started.append(ctx.job.id)  # type: ignore[attr-defined]
        try:
            await asyncio.sleep(payload)
        except asyncio.CancelledError:
            worker.cancelled.append(ctx.cancel_reason)  # type: ignore[attr-defined]
            raise
        return "slept"

    @worker.handler(BLOCK, cancel_grace="300ms")
    def block(payload: float, ctx: SyncContext[None]) -> str:
        worker.started.append(ctx.job.id)  # type: ignore[attr-defined]
        if payload < 0:
            time.sleep(-payload)
            return "ignored everything"
        ctx.sleep(payload)
        return "slept"

    return worker


def test_jobs_are_run_and_reported(fake: FakeServer) -> None:
    with Running(echo_worker(fake)):
        jobs = {fake.submit("echo", {"n": n}): n for n in range(50)}
        for job, n in jobs.items():
            report = fake.report_of(job)
            assert (report["outcome"], report["result"]) == ("completed", {"n": n})
    registration = fake.calls("register")[0]
    assert registration["library"].startswith("python/")
    assert (registration["protocol"], registration["types"]) == (1, ["block", "echo", "sleep"])
    assert [reason for _, reason in fake.left] == ["drained"]


def test_state_comes_from_the_lifespan_which_ends_with_the_worker(fake: FakeServer) -> None:
    ended = threading.Event()

    @asynccontextmanager
    async def lifespan() -> Any:
        yield {"greeting": "hello"}
        ended.set()

    worker = Worker(server=fake.url, lifespan=lifespan)

    @worker.handler(JobType("greet", Email, str))
    async def greet(email: Email, ctx: Context[Any]) -> str:
        return f"{ctx.state['greeting']} {email.to}"

    @worker.handler(JobType("greet_sync", Email, str))
    def greet_sync(email: Email, ctx: SyncContext[Any]) -> str:
        return (
            f"{ctx.state['greeting']} {email.to}, {ctx.attempt} {ctx.fencing_token} {ctx.idempotency_key == ctx.job.id}"
        )

    with Running(worker):
        assert fake.report_of(fake.submit("greet", {"to": "you"}))["result"] == "hello you"
        assert fake.report_of(fake.submit("greet_sync", {"to": "you"}))["result"] == "hello you, 1 1 True"
        refused = fake.report_of(fake.submit("greet", {"to": 5}))
        assert (refused["error"]["code"], refused["retryable"]) == ("invalid_payload", False)
        assert "/to" in refused["error"]["message"]
        assert not ended.is_set()
    assert ended.is_set()


def test_middlewares_surround_every_attempt_and_cannot_spoil_a_result(fake: FakeServer) -> None:
    order: list[str] = []
    worker = Worker(server=fake.url)

    @worker.middleware
    async def outer(ctx: Context[None], call_next: Any) -> Any:
        order.append(f"outer {ctx.job.type}")
        value = await call_next()
        order.append("outer ends")
        raise RuntimeError(f"after {value}")

    @worker.middleware
    async def inner(ctx: Context[None], call_next: Any) -> Any:
        order.append("inner")
        return await call_next() + 1

    @worker.handler(JobType("a"))
    async def a(payload: int) -> int:
        return payload

    @worker.handler(JobType("b"))
    def b(payload: int) -> int:
        return payload

    with Running(worker):
        assert fake.report_of(fake.submit("a", 1))["result"] == 1
        assert fake.report_of(fake.submit("b", 2))["outcome"] == "completed"
    assert order == ["outer a", "inner", "outer ends", "outer b", "inner", "outer ends"]


@pytest.mark.parametrize("kind", ["sleep", "block"])
def test_a_cancel_reaches_a_handler_at_once(fake: FakeServer, kind: str) -> None:
    with Running(echo_worker(fake, capacity=1)):
        job = fake.submit(kind, 60.0)
        fake.token_of(job)
        asked = time.monotonic()
        fake.cancel(job)
        assert fake.report_of(job)["outcome"] == "cancelled"
        assert time.monotonic() - asked < 1.0


def test_a_deadline_cancels_and_is_reported_as_timed_out(fake: FakeServer) -> None:
    worker = echo_worker(fake)
    with Running(worker):
        started = time.monotonic()
        report = fake.report_of(fake.submit("sleep", 60.0, timeout="300ms"))
        assert (report["outcome"], report["error"]["code"]) == ("failed", "timed_out")
        assert "retryable" not in report
        assert 0.25 < time.monotonic() - started < 1.5
    assert worker.cancelled == ["deadline"]  # type: ignore[attr-defined]


def test_a_handler_that_does_not_end_keeps_its_slot_and_shows(fake: FakeServer, caplog: Any) -> None:
    worker = echo_worker(fake, capacity=2)
    with Running(worker), caplog.at_level(logging.WARNING):
        job = fake.submit("block", -3.0)
        fake.wait(lambda: job in worker.started)  # type: ignore[attr-defined]
        fake.cancel(job)
        fake.wait(lambda: any(beat.get("stuck") == 1 for beat in fake.calls("heartbeat")), 3.0)
        assert fake.report_of(fake.submit("echo", 1))["outcome"] == "completed"
        stats = worker.stats()
        assert stats is not None
        assert (stats.stuck, stats.running) == (1, 1)
        assert not [report for report in fake.reports if report["job_id"] == job]
        assert [record for record in caplog.records if "slot stuck" in record.message]
        assert fake.report_of(job)["result"] == "ignored everything", "what it returns in the end is offered"


def test_cancelled_by_somebody_else_is_a_failure(fake: FakeServer) -> None:
    worker = Worker(server=fake.url)

    @worker.handler(ECHO)
    async def cancels_itself(payload: Any) -> None:
        raise asyncio.CancelledError

    with Running(worker):
        report = fake.report_of(fake.submit("echo"))
        assert (report["outcome"], report["error"]["code"]) == ("failed", "cancelled_error")


def test_never_more_than_the_capacity_nor_than_the_slots_of_a_type(fake: FakeServer) -> None:
    worker = Worker(server=fake.url, capacity=5)
    lock = threading.Lock()
    now = {"a": 0, "b": 0}
    most = {"a": 0, "b": 0, "all": 0}

    def register(name: str, capacity: int | None) -> None:
        @worker.handler(JobType(name), capacity=capacity)
        async def handler(payload: Any) -> None:
            with lock:
                now[name] += 1
                most[name] = max(most[name], now[name])
                most["all"] = max(most["all"], sum(now.values()))
            await asyncio.sleep(0.05)
            with lock:
                now[name] -= 1

    register("a", 2)
    register("b", None)
    with Running(worker):
        for name in "ab" * 15:
            fake.submit(name)
        fake.wait(lambda: len(fake.reports) == 30, 10.0)
    assert most == {"a": 2, "b": most["b"], "all": 5}
    assert most["b"] <= 5
    assert all(poll["max"] <= 5 and poll["slots"]["a"] <= 2 for poll in fake.calls("poll"))


@pytest.mark.parametrize("kind", ["register", "poll", "heartbeat", "report", "logs", "once_begin", "once_done"])
def test_a_lost_answer_loses_nothing_and_doubles_nothing(fake: FakeServer, kind: str) -> None:
    calls: list[str] = []
    effects: list[str] = []
    worker = Worker(server=fake.url)

    @worker.handler(ECHO)
    async def handler(payload: Any, ctx: Context[None]) -> Any:
        calls.append(ctx.job.id)
        for number in range(3):
            ctx.log.info("line %d", number)
            await asyncio.sleep(1.0 if kind == "logs" else 0.25)

        def effect(key: str) -> str:
            effects.append(key)
            return "done"

        return await ctx.once("k", effect)

    fake.swallow[kind] = 2
    with Running(worker):
        job = fake.submit("echo", 1)
        report = fake.report_of(job, 8.0)
        assert (report["outcome"], report["result"]) == ("completed", "done")
        fake.wait(lambda: fake.swallow[kind] == 0)
    assert calls == [job]
    assert effects == [f"{job}:k"]
    assert len({body["instance"] for body in fake.calls("register")}) == 1
    assert [line["message"] for line in fake.logs[job]] == ["line 0", "line 1", "line 2"]
    assert len(fake.reports) == 1


def test_a_heartbeat_that_is_never_answered_costs_nothing(fake: FakeServer) -> None:
    fake.interval = "1670ms"
    worker = echo_worker(fake)
    with Running(worker):
        job = fake.submit("sleep", 7.0)
        fake.wait(lambda: any(beat.get("held") == 1 for beat in fake.calls("heartbeat")))
        fake.hang["heartbeat"] = 1
        assert fake.report_of(job)["result"] == "slept"
        assert fake.hang["heartbeat"] == 0
    assert worker.cancelled == []  # type: ignore[attr-defined]


def test_an_attempt_that_was_taken_away_is_stopped_and_not_reported(fake: FakeServer) -> None:
    worker = echo_worker(fake)
    with Running(worker):
        job = fake.submit("sleep", 60.0)
        fake.wait(lambda: worker.started)  # type: ignore[attr-defined]
        fake.take_away(job)
        fake.wait(lambda: worker.cancelled, 3.0)  # type: ignore[attr-defined]
        assert worker.cancelled == ["lease_lost"]  # type: ignore[attr-defined]
        assert fake.report_of(fake.submit("echo", 1))["outcome"] == "completed"
    assert not [report for report in fake.calls("report") for entry in report["reports"] if "slept" in str(entry)]
    assert len(fake.calls("register")) == 1


def test_an_unknown_session_is_registered_anew(fake: FakeServer) -> None:
    worker = echo_worker(fake)
    with Running(worker):
        job = fake.submit("sleep", 60.0)
        fake.wait(lambda: worker.started)  # type: ignore[attr-defined]
        forgot = time.monotonic()
        fake.forget_sessions()
        assert fake.report_of(fake.submit("echo", 1))["outcome"] == "completed"
        assert time.monotonic() - forgot < 2.5
    assert worker.cancelled == ["lease_lost"]  # type: ignore[attr-defined]
    assert len({body["instance"] for body in fake.calls("register")}) == 2
    assert not [report for report in fake.reports if report["job_id"] == job]


def test_a_lease_that_cannot_be_proven_ends_the_work(fake: FakeServer, caplog: Any) -> None:
    worker = Worker(server=fake.url)
    cancelled: list[str | None] = []
    went_on: list[str] = []

    @worker.handler(JobType("stops"))
    async def stops(payload: Any, ctx: Context[None]) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            cancelled.append(ctx.cancel_reason)

    @worker.handler(JobType("goes_on"), on_lease_lost="continue")
    async def goes_on(payload: Any, ctx: Context[None]) -> str:
        await asyncio.sleep(3.0)
        went_on.append(str(ctx.cancel_reason))
        return "done"

    fake.lease, fake.interval = "2s", "500ms"
    with Running(worker), caplog.at_level(logging.INFO):
        stops_job, goes_on_job = fake.submit("stops"), fake.submit("goes_on")
        fake.token_of(goes_on_job), fake.token_of(stops_job)
        time.sleep(0.7)  # a heartbeat or two
        fake.deaf = True
        cut = time.monotonic()
        while not cancelled:
            assert time.monotonic() - cut < 2.0, "the lease is over and the handler still runs"
            time.sleep(0.02)
        stats = worker.stats()
        assert stats is not None
        while not went_on:
            time.sleep(0.02)
        stats = worker.stats()
        assert stats is not None
        assert not stats.healthy
        fake.deaf = False
        assert fake.report_of(goes_on_job)["result"] == "done", "what ended anyway is offered"
        assert fake.report_of(stops_job)["outcome"] == "released"
        fake.wait(lambda: getattr(worker.stats(), "healthy", False))
    assert cancelled == ["lease_lost"]
    assert went_on == ["None"]
    text = caplog.text
    assert "lease lost" in text
    assert text.count("server away") == 1
    assert "reconnected" in text


def test_drain_lets_handlers_end_and_takes_nothing_new(fake: FakeServer) -> None:
    worker = echo_worker(fake, capacity=3)
    with Running(worker) as running:
        jobs = [fake.submit("sleep", 0.6) for _ in range(3)]
        waiting = [fake.submit("sleep", 0.6) for _ in range(5)]
        fake.wait(lambda: len(worker.started) == 3)  # type: ignore[attr-defined]
        worker.stop()
        running.thread.join(5.0)
        assert running.all_ended is True
    assert sorted(r["job_id"] for r in fake.reports if r["outcome"] == "completed") == sorted(jobs)
    assert sorted(job["id"] for job in fake.queue) == sorted(waiting)
    assert any(beat["state"] == "draining" for beat in fake.calls("heartbeat"))
    assert [reason for _, reason in fake.left] == ["drained"]


def test_drain_cancels_what_does_not_end_and_gives_it_back(fake: FakeServer) -> None:
    worker = echo_worker(fake, drain_timeout="200ms")
    with Running(worker) as running:
        job = fake.submit("sleep", 60.0)
        fake.wait(lambda: worker.started)  # type: ignore[attr-defined]
        begun = time.monotonic()
        worker.stop()
        running.thread.join(5.0)
        assert time.monotonic() - begun < 3.0
    assert worker.cancelled == ["shutdown"]  # type: ignore[attr-defined]
    assert fake.report_of(job)["outcome"] == "released"


def test_the_server_can_drain_a_worker_and_change_its_mind(fake: FakeServer) -> None:
    with Running(echo_worker(fake)):
        fake.report_of(fake.submit("echo", 1))
        fake.drain = True
        fake.wait(lambda: fake.calls("poll")[-1]["max"] == 0)
        job = fake.submit("echo", 2)
        time.sleep(0.3)  # long enough to be taken, if it were
        assert fake.queue
        fake.drain = False
        assert fake.report_of(job)["result"] == 2
    assert len(fake.calls("register")) == 1


@pytest.mark.parametrize(
    ("kind", "refusal"),
    [("server", Refusal(401, "unauthorized")), ("register", Refusal(422, "lease_out_of_range", "5 s to 10 min"))],
)
def test_a_refusal_at_the_start_ends_the_worker(fake: FakeServer, kind: str, refusal: Refusal) -> None:
    fake.refuse[kind] = refusal
    with Running(echo_worker(fake)) as running:
        running.thread.join(2.0)
    assert isinstance(running.error, WorkerRefused)
    assert str(refusal.status) in str(running.error)
    assert refusal.detail in str(running.error)


def test_an_unknown_protocol_ends_the_worker(fake: FakeServer) -> None:
    fake.protocol = {"min": 98, "max": 99}
    with Running(echo_worker(fake)) as running:
        running.thread.join(2.0)
    assert isinstance(running.error, WorkerRefused)
    assert "protocol" in str(running.error)


def test_a_worker_waits_for_a_server_and_can_be_stopped_meanwhile() -> None:
    worker = Worker(server="http://127.0.0.1:9")
    worker.handler(ECHO)(lambda payload: None)
    with Running(worker) as running:
        time.sleep(0.3)
        assert running.thread.is_alive()
        worker.stop()
        running.thread.join(2.0)
        assert not running.thread.is_alive()
    assert running.error is None


def test_a_worker_that_is_stopped_while_it_registers_leaves(fake: FakeServer) -> None:
    fake.slow["register"] = 0.4
    worker = echo_worker(fake)
    with Running(worker) as running:
        fake.wait(lambda: fake.sessions)
        worker.stop()
        running.thread.join(3.0)
    assert not fake.sessions
    assert [reason for _, reason in fake.left] == ["drained"]


def test_a_key_that_was_rotated_is_read_again(fake: FakeServer, tmp_path: Any, monkeypatch: Any) -> None:
    path = tmp_path / "key"
    path.write_text("old")
    monkeypatch.setenv("TICKWHEEL_API_KEY_FILE", str(path))
    fake.key = "old"
    with Running(echo_worker(fake)):
        job = fake.submit("sleep", 1.5)
        fake.token_of(job)
        path.write_text("new")
        fake.key = "new"
        beats = len(fake.calls("heartbeat"))
        fake.wait(lambda: len(fake.calls("heartbeat")) > beats + 1)
        assert fake.report_of(job)["result"] == "slept"
    assert len(fake.calls("register")) == 1


def test_progress_is_sent_within_a_second_and_the_latest_wins(fake: FakeServer) -> None:
    worker = Worker(server=fake.url)

    @worker.handler(ECHO)
    async def handler(payload: Any, ctx: Context[None]) -> None:
        for step in range(1000):
            ctx.progress(step / 10, f"step {step}\n")
        await asyncio.sleep(1.5)

    fake.interval = "10s"
    fake.lease = "30s"
    with Running(worker):
        job = fake.submit("echo")
        token = fake.token_of(job)
        sent = fake.wait(lambda: fake.attempts[token].get("progress"), 1.3)
        assert sent[-1] == {"token": token, "progress": 99.9, "message": "step 999"}
        assert len(sent) <= 2
        fake.report_of(job)


def test_everything_logged_in_a_handler_reaches_the_log_of_its_job(fake: FakeServer) -> None:
    worker = Worker(server=fake.url)
    theirs = logging.getLogger("shop.mail")
    theirs.setLevel(logging.DEBUG)

    @worker.handler(JobType("async"))
    async def on_loop(payload: Any, ctx: Context[None]) -> None:
        ctx.log.info("to %s", payload)
        theirs.debug("not this")
        theirs.warning("odd")
        await asyncio.gather(*(one(n) for n in range(2)))
        logging.getLogger("tickwheel.worker").warning("the library's own")
        logging.getLogger("httpx2").warning("the HTTP client's")
        try:
            raise ValueError("broken")
        except ValueError:
            theirs.exception("failed")

    async def one(n: int) -> None:
        theirs.info("task %d", n)

    @worker.handler(JobType("thread"))
    def on_thread(payload: Any, ctx: SyncContext[None]) -> None:
        theirs.info("from a thread")
        elsewhere = threading.Thread(target=lambda: ctx.log.error("from another thread"))
        elsewhere.start()
        elsewhere.join()

    with Running(worker):
        first, second = fake.submit("async", "me"), fake.submit("thread")
        fake.report_of(first)
        fake.report_of(second)
    lines = [(line["level"], line["message"].splitlines()[0]) for line in fake.logs[first]]
    expected = [("info", "to me"), ("warn", "odd"), ("info", "task 0"), ("info", "task 1"), ("error", "failed")]
    assert lines == expected
    assert "ValueError: broken" in fake.logs[first][-1]["message"]
    assert [line["message"] for line in fake.logs[second]] == ["from a thread", "from another thread"]


def test_many_lines_are_sent_while_the_handler_runs(fake: FakeServer) -> None:
    worker = Worker(server=fake.url)

    @worker.handler(ECHO)
    async def handler(payload: Any, ctx: Context[None]) -> None:
        ctx.log.info("early")
        await asyncio.sleep(1.5)

    with Running(worker):
        job = fake.submit("echo")
        fake.token_of(job)
        fake.wait(lambda: fake.logs.get(job), 1.2)
        assert not fake.reports
        fake.report_of(job)


def test_heartbeat_by_hand_raises_if_the_attempt_is_somebody_elses(fake: FakeServer) -> None:
    worker = Worker(server=fake.url)
    raised: list[BaseException] = []

    @worker.handler(JobType("a"))
    async def on_loop(payload: Any, ctx: Context[None]) -> None:
        await ctx.heartbeat()
        fake.take_away(ctx.job.id)
        try:
            await ctx.heartbeat()
        except Cancelled as error:
            raised.append(error)
            raise

    @worker.handler(JobType("b"))
    def on_thread(payload: Any, ctx: SyncContext[None]) -> None:
        ctx.heartbeat()
        fake.take_away(ctx.job.id)
        try:
            ctx.heartbeat()
        except Cancelled as error:
            raised.append(error)
            raise

    with Running(worker):
        fake.submit("a")
        fake.submit("b")
        fake.wait(lambda: len(raised) == 2)
        assert all(isinstance(error, LeaseLost) for error in raised)
    assert not fake.reports


def test_once_in_doubt(fake: FakeServer) -> None:
    worker = Worker(server=fake.url)
    effects: list[str] = []

    def effect(key: str) -> str:
        effects.append(key)
        return "new"

    @worker.handler(JobType("again"))
    async def again(payload: Any, ctx: Context[None]) -> Any:
        return await ctx.once("k", effect)

    @worker.handler(JobType("fail"))
    def fail(payload: Any, ctx: SyncContext[None]) -> Any:
        return ctx.once("k", effect, in_doubt="fail")

    def in_doubt(job_type: str) -> str:
        """A job of which an attempt died between effect and record."""
        job = fake.submit(job_type) if False else None
        assert job is None
        with fake.changed:
            job_id = fake.submit(job_type)
            fake.attempts["dead"] = {"job": {"id": job_id}, "open": False, "session": None, "number": 1}
            fake.once[f"{job_id}:k"] = {"token": "dead", "state": "first"}
        return job_id

    with Running(worker):
        first = in_doubt("again")
        fake.wait(lambda: any(r["job_id"] == first for r in fake.reports))
        assert effects == [f"{first}:k"]
        second = in_doubt("fail")
        report = fake.report_of(second)
        assert (report["error"]["code"], report["retryable"]) == ("once_in_doubt", False)
        assert len(effects) == 1


def test_once_that_raises_lets_the_next_one_try(fake: FakeServer) -> None:
    worker = Worker(server=fake.url)

    @worker.handler(ECHO)
    async def handler(payload: Any, ctx: Context[None]) -> Any:
        def broken(key: str) -> str:
            raise OSError("no connection")

        with pytest.raises(OSError, match="no connection"):
            await ctx.once("k", broken)
        return await ctx.once("k", lambda key: ["worked", key])

    with Running(worker):
        job = fake.submit("echo")
        assert fake.report_of(job)["result"] == ["worked", f"{job}:k"]


def test_a_server_without_features_gets_none_of_them(fake: FakeServer) -> None:
    fake.features = []
    worker = Worker(server=fake.url)

    @worker.handler(ECHO)
    async def handler(payload: Any, ctx: Context[None]) -> Any:
        ctx.log.info("into the void")
        return await ctx.once("k", lambda key: key)

    with Running(worker):
        job = fake.submit("echo")
        assert fake.report_of(job)["result"] == f"{job}:k"
        fake.wait(lambda: fake.calls("heartbeat"))
    assert not fake.calls("once_begin")
    assert not fake.calls("logs")
    assert "logs" not in fake.reports[0]
    assert all("held" not in beat and "tokens" not in beat for beat in fake.calls("heartbeat"))


def test_batches(fake: FakeServer) -> None:
    worker = Worker(server=fake.url, capacity=100)
    calls: list[list[int]] = []

    @worker.batch_handler(JobType("index", int), jobs_max=10, wait_max="100ms")
    async def index(numbers: list[int], ctx: Context[None]) -> list[int | BaseException]:
        calls.append(numbers)
        assert len(ctx.jobs) == len(numbers)
        if -1 in numbers:
            raise ValueError("all of them")
        if -2 in numbers:
            return []
        return [KeyError("seven") if n == 7 else n for n in numbers]

    with Running(worker):
        jobs = {fake.submit("index", n): n for n in range(25)}
        fake.submit("index", "not a number")
        for job, n in jobs.items():
            report = fake.report_of(job)
            assert report["outcome"] == ("failed" if n == 7 else "completed")
            assert report.get("result") == (None if n == 7 else n)
        assert sorted(n for call in calls for n in call) == list(range(25))
        assert all(len(call) <= 10 for call in calls)
        assert len(calls) <= 5
        fake.wait(lambda: len(fake.reports) == 26)
        both = [fake.submit("index", -1), fake.submit("index", 1)]
        codes = {fake.report_of(job)["error"]["code"] for job in both}
        assert codes == {"value_error"}
        assert fake.report_of(fake.submit("index", -2))["error"]["code"] == "batch_result_mismatch"


def test_a_blocked_main_loop_gives_back_what_it_has_not_begun(fake: FakeServer, caplog: Any) -> None:
    worker = echo_worker(fake)

    @worker.handler(JobType("blocks"))
    async def blocks(payload: Any) -> None:
        time.sleep(2.5)  # noqa: ASYNC251 - blocks on purpose

    with Running(worker), caplog.at_level(logging.WARNING):
        blocked = fake.submit("blocks")
        fake.token_of(blocked)
        job = fake.submit("echo", 1)
        assert fake.report_of(job)["outcome"] == "released"
        assert not [report for report in fake.reports if report["job_id"] == blocked]
        assert fake.report_of(blocked)["outcome"] == "completed"
        assert fake.report_of(fake.submit("echo", 2))["outcome"] == "completed"
    (record,) = [record for record in caplog.records if "main loop blocked" in record.message]
    assert "blocks" in record.message
    assert "time.sleep" in record.message


def test_health(fake: FakeServer) -> None:
    import httpx2

    worker = echo_worker(fake, health_port=0)
    with Running(worker):
        fake.wait(lambda: fake.calls("heartbeat"))
        url = f"http://127.0.0.1:{worker.health_port}"
        assert httpx2.get(f"{url}/healthz", trust_env=False).status_code == 200
        assert httpx2.get(f"{url}/readyz", trust_env=False).json()["capacity"] == 10
        assert httpx2.get(f"{url}/other", trust_env=False).status_code == 404
        fake.drain = True
        fake.wait(lambda: getattr(worker.stats(), "draining", False))
        assert httpx2.get(f"{url}/readyz", trust_env=False).status_code == 503
        assert httpx2.get(f"{url}/healthz", trust_env=False).status_code == 200


def test_a_thousand_jobs_need_few_requests(fake: FakeServer) -> None:
    with Running(echo_worker(fake, capacity=100)):
        fake.wait(lambda: fake.calls("poll"))
        before = len(fake.requests)
        for n in range(1000):
            fake.submit("echo", n)
        fake.wait(lambda: len(fake.reports) == 1000, 20.0)
        assert len(fake.requests) - before < 300


def test_an_idle_worker_polls_rarely(fake: FakeServer) -> None:
    with Running(echo_worker(fake)):
        fake.wait(lambda: fake.calls("poll"))
        time.sleep(1.0)
        assert len(fake.calls("poll")) == 1
