"""Cases 24 and 25: batches, and workers whose clock is wrong."""

import time

import pytest

from cases.common import NEVER, SOON, now_ms, seconds
from harness.clock import Clock

HOUR = 3600


def batch_jobs(count, **special):
    """`batch_echo` jobs; `special` says how some of them act, as n7="fail"."""
    jobs = []
    for n in range(count):
        how = special.get(f"n{n}")
        payload = {"n": n} | ({"how": how} if how else {})
        jobs.append({"type": "batch_echo", "payload": payload, "retry": SOON})
    return jobs


def test_case_24_batches(world):
    worker = world.worker(capacity=250)
    jobs = world.api.submit_many(batch_jobs(250, n7="fail"))
    for n, job in enumerate(world.await_completed(jobs)):
        assert job["result"] == n
        assert job["attempt"] == (2 if n == 7 else 1)
    sizes = [len(event["ns"]) for event in worker.events("batch")]
    assert sum(sizes) == 251 and max(sizes) <= 100 and len(sizes) >= 3, sizes
    assert max(sizes) > 10, "these are no batches"


@pytest.mark.parametrize("how, code", [("raise", "conformance_error"), ("short", "batch_result_mismatch")])
def test_case_24_a_batch_that_fails_as_a_whole(world, how, code):
    worker = world.worker(capacity=100)
    jobs = world.api.submit_many(batch_jobs(10, n3=how))
    world.await_completed(jobs)
    first = next(event for event in worker.events("batch") if 3 in event["ns"])
    for n, job in enumerate(jobs):
        attempts = world.api.attempts(job)
        if n in first["ns"]:
            assert [attempt["outcome"] for attempt in attempts] == ["failed", "completed"]
            assert attempts[0]["error"]["code"] == code


def check_times(world, worker, during=None):
    """Nothing is early or late, whatever the worker's clock says. All times are those of this process."""
    begun = now_ms()
    delayed = world.submit("echo", delay="2s", retry=NEVER)
    timed = world.submit("sleep", {"for_ms": 30_000}, timeout="2s", retry=NEVER)
    slept = world.submit("sleep", {"for_ms": 3_000}, retry=NEVER)
    logged = world.submit("log", {"lines": 10, "bytes": 20, "every_ms": 300}, retry=NEVER)
    if during:
        worker.await_event("start", slept)
        during()
    ended = world.api.ended(timed, within=10.0)
    took = now_ms() - begun
    assert ended["error"]["code"] == "timed_out" and 2000 < took < 8000, took
    started = seconds(world.completed(delayed)["started_at"]) * 1000
    assert 1999 <= started - begun < 6000  # the server's times are whole milliseconds
    world.completed(slept)
    took = now_ms() - begun
    assert 3000 < took < 9000, took
    world.completed(logged)
    lines = world.api.logs(logged)
    attempt = world.api.attempts(logged)[0]
    assert len(lines) == 10
    for n, line in enumerate(lines):
        expected = seconds(attempt["started_at"]) + n * 0.3
        assert abs(seconds(line["time"]) - expected) < 3.0, (n, line, attempt)
    assert worker.proxy.count("register") == 1


@pytest.mark.seconds(10)
@pytest.mark.parametrize("hours", [1, -1])
def test_case_25_a_clock_that_is_wrong(world, tmp_path, hours):
    worker = world.worker(env=Clock(tmp_path, hours * HOUR).env)
    ahead_ms = worker.await_event("start", world.submit("echo"))["wall_ms"] - now_ms()
    assert abs(ahead_ms - hours * HOUR * 1000) < 60_000, "the clock was not changed"
    check_times(world, worker)


@pytest.mark.seconds(12)
def test_case_25_a_clock_that_is_stepped(world, tmp_path):
    clock = Clock(tmp_path)
    worker = world.worker(env=clock.env)

    def step():
        for offset in (HOUR, -HOUR, HOUR // 6):
            clock.set(offset)
            time.sleep(0.4)

    check_times(world, worker, during=step)
    ahead_ms = worker.await_event("start", world.submit("echo"))["wall_ms"] - now_ms()
    assert ahead_ms > 500_000, "the clock was not changed"
