"""Cases 10 and 11: handlers that are told to stop, and handlers that stop everything else."""

import time

import pytest

from cases.common import LEASE_S, NEVER, SOON, now_ms
from harness.waiting import eventually


def test_case_10_a_running_job_is_cancelled(world):
    worker = world.worker(lease="30s")  # not with the next heartbeat, but at once
    job = world.submit("sleep", {"for_ms": 60_000})
    worker.await_event("start", job)
    asked = now_ms()
    world.api.cancel(job)
    event = worker.await_event("cancelled", job, within=6.0)
    assert event["reason"] == "requested"
    assert event["wall_ms"] - asked < 3000
    assert world.api.status_is(job, "cancelled", within=5.0)["status"] == "cancelled"
    assert world.api.outcomes(job) == ["cancelled"]


def test_case_10_a_full_worker_hears_of_a_cancel(world):
    worker = world.worker(capacity=1, lease="30s")
    job = world.submit("sleep", {"for_ms": 60_000})
    worker.await_event("start", job)
    waiting = world.submit("echo")
    asked = now_ms()
    world.api.cancel(job)
    assert worker.await_event("cancelled", job, within=6.0)["wall_ms"] - asked < 3000
    world.completed(waiting, within=8.0)


def test_case_10_a_deadline_ends_an_attempt(world):
    worker = world.worker()
    job = world.submit("sleep", {"for_ms": 60_000}, timeout="2s", retry=SOON)
    start = worker.await_event("start", job)
    event = worker.await_event("cancelled", job, within=8.0)
    assert event["reason"] == "deadline"
    assert event["mono_ms"] - start["mono_ms"] <= 4000
    again = worker.await_event("start", job, attempt=2, within=8.0)
    assert again["mono_ms"] - start["mono_ms"] <= 6000
    first = world.api.attempts(job)[0]
    assert first["outcome"] in ("timed_out", "failed") and first["error"]["code"] == "timed_out"


@pytest.mark.seconds(15)
def test_case_10_a_stubborn_handler_keeps_its_slot(world):
    worker = world.worker(capacity=2)
    job = world.submit("stubborn", {"for_ms": 20_000}, timeout="9s", retry=NEVER)
    start = worker.await_event("start", job)
    world.api.cancel(job)
    eventually("the slot to be stuck", lambda: world.api.workers("worker")[0]["stuck"] == 1, within=12.0)
    assert now_ms() - start["wall_ms"] > 4000, "the grace is 5 s"
    world.completed(world.submit("echo"), within=8.0)
    ended = world.api.ended(job, within=12.0)
    took = now_ms() - start["wall_ms"]
    assert ended["status"] in ("failed", "cancelled")
    assert 8500 < took < 17_000, took
    assert worker.proxy.count("register") == 1
    assert worker.log_lines("stuck")


@pytest.mark.seconds(40)
@pytest.mark.parametrize("how", [
    pytest.param("native", marks=pytest.mark.only_libraries("python", "reference")),  # elsewhere the same as busy
    "busy",
    "sleep",
])
def test_case_11_a_blocked_runtime_keeps_its_lease(world, how):
    block_s = 4 * LEASE_S
    worker = world.worker(capacity=10)
    session = world.api.workers("worker")[0]["id"]
    job = world.submit("block", {"for_ms": int(block_s * 1000), "how": how}, retry=NEVER)
    worker.await_event("start", job)
    begun = time.monotonic()
    time.sleep(0.5)  # it lets the loop turn once more before it blocks
    # The waiting poll gets these. A process that is blocked as a whole cannot read the answer.
    given = world.api.submit_many([{"type": "echo", "payload": n} for n in range(5)])
    eventually("the waiting poll to be answered", lambda: carrying(worker, given), within=6.0)
    world.worker("elsewhere")
    # A library that reads the answer nevertheless starts them, or keeps them until it can.
    eventually("them to run elsewhere, or to be read",
               lambda: len(started(world, given)) == 5 or is_read(worker, given), within=3 * LEASE_S)
    assert time.monotonic() - begun < block_s, "it was not blocked"
    ended = world.completed(job, within=block_s + 5.0)
    assert time.monotonic() - begun > block_s - 1.0
    assert ended["attempt"] == 1
    assert world.api.outcomes(job) == ["completed"]
    world.await_completed(given)
    time.sleep(2.0)  # what was read late would start now
    assert sorted(started(world, given)) == sorted(given), "each of them once"
    assert [entry["id"] for entry in world.api.workers("worker")] == [session]


def started(world, jobs):
    return [event["job_id"] for event in world.events("start") if event["job_id"] in jobs]


def carrying(worker, jobs):
    """The polls whose answers had one of these jobs."""
    return [poll for poll in worker.proxy.of_kind("poll")
            if any(entry["job"]["id"] in jobs for entry in (poll.answer_json() or {}).get("jobs", []))]


def is_read(worker, jobs):
    last = carrying(worker, jobs)[-1]
    return any(poll.at > last.at and poll.json()["seq"] > last.json()["seq"] for poll in worker.proxy.of_kind("poll"))


@pytest.mark.seconds(8)
def test_case_11_a_warning_names_who_blocks(world):
    worker = world.worker()
    job = world.submit("block", {"for_ms": 3000, "how": "sleep"})
    world.completed(job)
    eventually("a warning", lambda: [line for line in worker.log_lines("block") if "blocked" in line.lower()], within=6.0)
