"""Cases 20 to 22: workers that are told to stop."""

import time

import pytest

from cases.common import NEVER, SOON, now_ms
from harness.waiting import eventually


@pytest.mark.seconds(10)
def test_case_20_a_worker_drains(world):
    worker = world.worker(capacity=10)
    jobs = world.api.submit_many([{"type": "sleep", "payload": {"for_ms": 3_000}, "retry": NEVER} for _ in range(60)])
    starts = world.await_events(10, "start", jobs)
    worker.terminate()
    assert worker.exit_code(8.0) == 0
    assert len(worker.events("start")) == 10
    done = {event["job_id"] for event in starts}
    for job in done:
        assert world.api.job(job)["status"] == "completed"
        assert world.api.outcomes(job) == ["completed"]
    for job in set(jobs) - done:
        assert world.api.job(job)["status"] == "scheduled"
    assert world.api.workers("worker") == []


@pytest.mark.seconds(12)
def test_case_20_a_cancel_while_draining(world):
    worker = world.worker()
    slow = world.submit("sleep", {"for_ms": 60_000})
    quick = world.submit("sleep", {"for_ms": 9_000}, retry=NEVER)
    worker.await_event("start", slow)
    worker.await_event("start", quick)
    worker.terminate()
    time.sleep(0.5)
    asked = now_ms()
    world.api.cancel(slow)
    event = worker.await_event("cancelled", slow, within=7.0)
    assert event["reason"] == "requested"
    assert event["wall_ms"] - asked < 5000, "at the latest with the next heartbeat"
    assert worker.exit_code(18.0) == 0
    assert world.api.outcomes(slow) == ["cancelled"]
    assert world.api.outcomes(quick) == ["completed"], "the lease was kept while draining"


@pytest.mark.seconds(12)
@pytest.mark.parametrize("how", ["timeout", "second_signal"])
def test_case_21_what_cannot_end_goes_back(world, how):
    worker = world.worker(drain_timeout="1s" if how == "timeout" else None)
    jobs = world.api.submit_many([{"type": "sleep", "payload": {"for_ms": 60_000}, "retry": NEVER} for _ in range(3)])
    world.await_events(3, "start", jobs)
    elsewhere = world.worker("elsewhere")
    worker.terminate()
    if how == "second_signal":
        time.sleep(0.5)
        worker.terminate()
    assert worker.exit_code(12.0) == 0
    ended = now_ms()
    starts = world.await_events(3, "start", jobs, within=6.0, programs=[elsewhere])
    assert max(event["wall_ms"] for event in starts) - ended < 3000
    assert {event["reason"] for event in worker.events("cancelled")} == {"shutdown"}
    for job in jobs:
        assert world.api.attempts(job)[0]["outcome"] == "released"
        assert world.api.job(job)["retries"] == 0


@pytest.mark.seconds(10)
def test_case_21_a_third_signal(world):
    worker = world.worker()
    job = world.submit("stubborn", {"for_ms": 30_000})
    worker.await_event("start", job)
    for _ in range(3):
        worker.terminate()
        time.sleep(0.3)
    assert worker.exit_code(10.0) == 130


@pytest.mark.seconds(12)
def test_case_21_drained_by_hand(world):
    worker = world.worker()
    running = world.submit("sleep", {"for_ms": 2_000}, retry=NEVER)
    worker.await_event("start", running)
    session = world.api.workers("worker")[0]["id"]
    world.api.post(f"/api/v1/workers/{session}/drain")
    eventually("it to drain", lambda: world.api.workers("worker")[0]["state"] == "draining", within=10.0)
    waiting = world.submit("echo", retry=SOON)
    world.completed(running)
    time.sleep(2.0)  # it would have been started by now
    assert worker.events("start", waiting) == []
    world.api.post(f"/api/v1/workers/{session}/resume")
    world.completed(waiting, within=10.0)
    assert [entry["id"] for entry in world.api.workers("worker")] == [session]


@pytest.mark.heavy
@pytest.mark.seconds(40)
def test_case_22_a_rolling_restart(world):
    workers = [world.worker(f"worker-{n}", capacity=20) for n in range(3)]
    jobs, batch = [], [{"type": "sleep", "payload": {"for_ms": 200}, "retry": NEVER}] * 20
    begun = time.monotonic()
    replacing, exits = None, []
    while not (replacing is None and len(exits) == 3):
        jobs += world.api.submit_many(batch)
        second = (time.monotonic() - begun) / 2
        if replacing is None and second >= len(exits) + 1:
            replacing = workers[len(exits)]
            world.prepare_worker(f"worker-{len(exits) + 3}", capacity=20).start()
            replacing.terminate()
        if replacing is not None and not replacing.is_running():
            exits.append(replacing.process.returncode)
            replacing = None
        time.sleep(max(0.0, begun + len(jobs) / 200 - time.monotonic()))  # 200 jobs a second
        assert time.monotonic() - begun < 60, "the workers do not end"
    assert exits == [0, 0, 0]
    world.await_events(len(jobs), "end", jobs, within=20.0)
    eventually("all to be completed", lambda: not world.api.list_all("/api/v1/jobs", status="running"))
    starts = [event["job_id"] for event in world.events("start")]
    assert len(starts) == len(set(starts)) == len(jobs), "each job's handler runs once"
    for job in world.api.list_all("/api/v1/jobs"):
        assert job["status"] == "completed"
        assert job["attempt"] == 1 or "lost" not in world.api.outcomes(job["id"])
