"""Cases 18, 19 and 23: what is counted once: reports, deaths, and effects."""

import pytest

from cases.common import NEVER, SOON
from harness.raw_worker import RawWorker
from harness.waiting import eventually


def test_case_18_the_first_report_counts(world):
    raw = RawWorker(world.api)
    job = world.submit("echo", 1)
    token = raw.take()["token"]
    for _ in range(2):
        assert raw.report(token, "completed", result={"n": 1})["status"] == "accepted"
    before = world.api.job(job)
    other = raw.report(token, "failed", error={"code": "late", "message": "too late"})
    assert other["error"]["status"] == 409, other
    assert world.api.job(job) == before
    assert (before["status"], before["result"]) == ("completed", {"n": 1})


@pytest.mark.seconds(45)
def test_case_19_a_job_that_kills_its_worker(world):
    job = world.submit("exit", {"code": 3}, retry=NEVER)
    deaths = 0
    while world.api.job(job)["status"] != "failed":
        worker = world.prepare_worker(f"worker-{deaths}").start()
        eventually("the worker or the job to end",
                   lambda: not worker.is_running() or world.api.job(job)["status"] == "failed")
        if not worker.is_running():
            assert worker.process.returncode == 3, worker.log()
            deaths += 1
        assert deaths <= 5
    assert deaths == 5
    assert world.api.outcomes(job) == ["lost"] * 5
    assert world.api.dead_letter(job)["reason"] == "poison_pill"


def test_case_23_once_within_an_attempt_and_after_a_failure(world):
    worker = world.worker()
    job = world.submit("once", {"key": "letter", "calls": 2, "fail_times": 1}, retry=SOON)
    ended = world.completed(job)
    assert world.api.outcomes(job) == ["failed", "completed"]
    effects = worker.events("effect", job)
    assert [event["idempotency_key"] for event in effects] == [f"{job}:letter"]
    assert ended["result"] == [{"effect": f"{job}:letter"}] * 2


def test_case_23_an_effect_that_fails_did_not_happen(world):
    """A second key is another effect; the same key of another job too."""
    worker = world.worker()
    jobs = [world.submit("once", {"key": key}) for key in ("a", "b", "a")]
    world.await_completed(jobs)
    keys = sorted(event["idempotency_key"] for event in worker.events("effect"))
    assert keys == sorted([f"{jobs[0]}:a", f"{jobs[1]}:b", f"{jobs[2]}:a"])


@pytest.mark.seconds(12)
@pytest.mark.parametrize("in_doubt", ["again", "fail"])
def test_case_23_death_between_effect_and_done(world, in_doubt):
    worker = world.worker()
    job = world.submit("once", {"key": "letter", "die": True, "in_doubt": in_doubt}, retry=SOON)
    assert worker.exit_code(10.0) == 9
    second = world.worker("second")
    ended = world.api.ended(job)
    effects = [event["idempotency_key"] for event in world.events("effect", job)]
    if in_doubt == "again":
        assert ended["status"] == "completed"
        assert effects == [f"{job}:letter"] * 2
    else:
        assert ended["status"] == "failed"
        assert effects == [f"{job}:letter"]
        assert world.api.dead_letter(job)["reason"] == "not_retryable"
        assert len(second.events("start", job)) == 1


def test_case_23_two_jobs_share_a_key_of_the_tenant(world):
    worker = world.worker()
    payload = {"key": "shared", "scope": "tenant", "hold_ms": 500}
    jobs = [world.submit("once", payload) for _ in range(2)]
    results = [world.completed(job)["result"] for job in jobs]
    assert len(worker.events("effect")) == 1
    assert results[0] == results[1]


def test_case_23_a_stale_token_changes_nothing(world):
    raw = RawWorker(world.api)
    job = world.submit("once", {"key": "letter"})
    token = raw.take()["token"]
    assert world.api.post(f"/api/v1/attempts/{token}/once/letter", {})["state"] == "first"
    assert raw.report(token, "completed")["status"] == "accepted"
    status, problem = world.api.call("POST", f"/api/v1/attempts/{token}/once/letter/done", {"result": 1})
    assert (status, problem["code"]) == (409, "stale_token"), problem
    assert world.api.job(job)["status"] == "completed"
