"""Cases 26 to 28: what a library submits, what it carries along, and what it holds at most."""

import time

import pytest

from cases.common import NEVER
from harness.waiting import eventually

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
TRACEPARENT = f"00-{TRACE}-00f067aa0ba902b7-01"


@pytest.mark.heavy
@pytest.mark.seconds(20)
def test_case_26_submit_many(world):
    answer = world.submit_by_program("many", {"count": 25_000, "bad": [7, 24_000], "queue": "many"})
    assert answer["submitted"] == answer["distinct"] == 24_998
    assert [error["index"] for error in answer["errors"]] == [7, 24_000]
    assert all(error["code"] for error in answer["errors"])
    assert len({job["id"] for job in world.api.list_all("/api/v1/jobs", queue="many")}) == 24_998


def test_case_26_unique(world):
    first, second = world.submit_by_program("unique", {"queue": "mine"})["ids"]
    assert first == second
    assert len(world.api.list_all("/api/v1/jobs", queue="mine")) == 1


def test_case_26_wait(world):
    world.worker(queues="mine")
    answer = world.submit_by_program("wait", {"queue": "mine"})
    assert answer == {"result": {"hello": "world"}, "failed": "JobFailed", "code": "nope", "timeout": "WaitTimeout"}


def test_case_26_a_schedule_is_put_twice(world):
    first, second = world.submit_by_program("schedule", {"name": "digest", "queue": "mine"})["ids"]
    assert first == second
    schedules = world.api.list_all("/api/v1/schedules")
    assert [(entry["name"], entry["cron"]) for entry in schedules] == [("digest", "0 7 * * mon-fri")]


def test_case_26_a_workflow_passes_results_on(world):
    world.worker(queues="mine")
    run = world.submit_by_program("workflow", {"name": "etl", "queue": "mine"})["run_id"]
    eventually("the run to end",
               lambda: world.api.get(f"/api/v1/workflow-runs/{run}")["status"] in ("completed", "failed"))
    tasks = {task["name"]: task for task in world.api.get(f"/api/v1/workflow-runs/{run}")["tasks"]}
    assert world.api.job(tasks["second"]["job_id"])["result"] == {"got": 42}


@pytest.mark.seconds(8)
def test_case_27_the_trace_of_the_submitter(world):
    worker = world.worker(queues="mine", conformance={"otel": "1"})
    parameters = {"type": "echo", "payload": 1, "queue": "mine"}
    job = world.submit_by_program("one", parameters, conformance={"traceparent": TRACEPARENT, "otel": "1"})["id"]
    given = worker.await_event("start", job)["traceparent"]
    assert given and given.split("-")[1] == TRACE, given
    span = worker.await_event("span", name="process echo", within=10.0)
    assert (span["trace_id"], span["parent_span_id"]) == (TRACE, given.split("-")[2])


@pytest.mark.seconds(10)
def test_case_27_a_rotated_key(world, tmp_path):
    file = tmp_path / "key"
    file.write_text("tw_old\n")
    worker = world.prepare_worker(api_key_file=file)
    worker.proxy.keys = {"tw_old"}
    world.await_polling(worker.start())
    job = world.submit("sleep", {"for_ms": 7_000}, retry=NEVER)
    worker.await_event("start", job)
    worker.proxy.keys = {"tw_old", "tw_new"}
    file.write_text("tw_new\n")
    worker.proxy.keys = {"tw_new"}
    assert world.completed(job)["attempt"] == 1
    assert world.api.outcomes(job) == ["completed"]
    assert worker.proxy.count("register") == 1
    world.completed(world.submit("echo"), within=10.0)
    used = {request.headers.get("authorization") for request in worker.proxy.requests if request.status == 200}
    assert used == {"Bearer tw_old", "Bearer tw_new"}


@pytest.mark.heavy
@pytest.mark.seconds(60)
def test_case_28_reports_wait_for_the_server(world):
    count, bound = 12_000, 10_000
    worker = world.worker(capacity=count, lease="2m")
    payload = {"for_ms": 20_000}
    jobs = world.api.submit_many([{"type": "sleep", "payload": payload, "retry": NEVER} for _ in range(count)])
    world.await_events(count, "start", within=60.0)
    begun = len(worker.proxy.of_kind("report"))
    worker.proxy.cut()
    ended_before = len(worker.events("end"))
    world.await_events(count, "end", within=60.0)
    assert count - ended_before > bound, "too many ended before the cut to prove anything"
    later = [world.submit("echo") for _ in range(3)]
    # Slow at first, so that it polls while most reports are still waiting.
    worker.proxy.delay("report", 2.0, count=4)
    healed = time.monotonic()
    worker.proxy.heal()
    polls = eventually("a poll", lambda: worker.proxy.of_kind("poll", since=healed), within=7.9)
    assert polls[0].json()["max"] == 0, "it asked for more while reports were waiting"
    eventually("all to be completed", lambda: not world.api.get("/api/v1/jobs?status=running&limit=1")["items"], within=60.0)
    world.await_completed(later, within=30.0)
    reported = {item["token"] for request in worker.proxy.of_kind("report")[begun:] for item in request.json()["reports"]}
    assert len(reported) >= count - ended_before
    starts = [event["job_id"] for event in worker.events("start") if event["type"] == "sleep"]
    assert sorted(starts) == sorted(jobs)
    assert worker.proxy.count("register") == 1


@pytest.mark.chaos
@pytest.mark.seconds(620)
def test_case_28_memory_is_level(world):
    worker = world.worker(capacity=200, lease="15s")
    worker.proxy.remembers_bodies = False
    begun, submitted, memory = time.monotonic(), 0, {}
    while (elapsed := time.monotonic() - begun) < 600:
        batch = [{"type": "log", "payload": {"lines": 3, "bytes": 200, "every_ms": 10}} for _ in range(45)]
        batch += [{"type": "sleep", "payload": {"for_ms": 300}} for _ in range(5)]
        ids = world.api.submit_many(batch)
        for job in ids[-2:]:
            world.api.cancel(job)
        submitted += len(ids)
        memory.setdefault(int(elapsed // 10), worker.memory_mib())
        time.sleep(max(0.0, begun + submitted / 500 - time.monotonic()))  # 500 jobs a second
    level = [mib for at, mib in memory.items() if at >= 12]
    assert max(level) - min(level) <= 20, memory
    assert submitted > 250_000
