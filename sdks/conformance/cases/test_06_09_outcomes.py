"""Cases 6 to 9: what becomes of results, errors, progress and log lines."""

import re
import time

import pytest

from cases.common import NEVER, SOON, error_text, seconds
from harness.waiting import eventually

LOG_BYTES_MAX = 1024 * 1024


def test_case_06_an_error_is_retried(world):
    world.worker()
    job = world.submit("fail", {"times": 2}, retry=SOON)
    assert world.completed(job)["result"] == {"attempt": 3}
    assert world.api.outcomes(job) == ["failed", "failed", "completed"]
    first = world.api.attempts(job)[0]
    assert first["error"]["code"] == "conformance_error"
    assert "asked to fail, attempt 1" in first["error"]["message"]
    assert "ConformanceError" in error_text(first)


def test_case_06_an_error_has_a_stack(world):
    """The stack goes with the report; how much of it the server shows is its own affair."""
    worker = world.worker()
    job = world.submit("fail", {"times": 1}, retry=NEVER)
    world.api.ended(job)
    error = worker.proxy.of_kind("report")[0].json()["reports"][0]["error"]
    assert "ConformanceError" in error["type"]
    assert "conformance" in error["stack"].lower(), error
    assert len(error["stack"].encode()) <= 16 * 1024


@pytest.mark.parametrize("payload, code", [
    ({"how": "not_retryable", "code": "no_such_address"}, "no_such_address"),
    ({"how": "listed"}, "listed_error"),
], ids=["raised", "listed"])
def test_case_06_what_is_not_retryable_is_not_retried(world, payload, code):
    world.worker()
    job = world.submit("reject", payload, retry=SOON)
    ended = world.api.ended(job)
    assert (ended["status"], ended["error"]["code"], ended["retries"]) == ("failed", code, 0)
    assert world.api.outcomes(job) == ["failed"]
    assert world.api.dead_letter(job)["reason"] == "not_retryable"


def test_case_07_retry_after(world):
    worker = world.worker()
    job = world.submit("retry_after", {"delay_ms": 2000, "times": 1}, retry=SOON)
    ended = world.completed(job)
    assert (ended["retries"], world.api.outcomes(job)) == (1, ["failed", "completed"])
    first, second = worker.events("start", job)
    assert 2000 <= second["mono_ms"] - first["mono_ms"] <= 3500


def test_case_07_snooze(world):
    worker = world.worker()
    job = world.submit("snooze", {"delay_ms": 1000, "times": 3}, retry=NEVER)
    ended = world.completed(job)
    assert (ended["retries"], ended["result"]) == (0, {"attempt": 4})
    assert world.api.outcomes(job) == ["snoozed", "snoozed", "snoozed", "completed"]
    starts = [event["mono_ms"] for event in worker.events("start", job)]
    assert len(starts) == 4
    assert all(1000 <= later - earlier <= 2500 for earlier, later in zip(starts, starts[1:])), starts


def test_case_08_a_payload_of_the_wrong_type(world):
    worker = world.worker()
    job = world.submit("sleep", {"for_ms": "soon"}, retry=SOON)
    ended = world.api.ended(job)
    assert (ended["status"], ended["error"]["code"]) == ("failed", "invalid_payload")
    assert "for_ms" in ended["error"]["message"]
    assert worker.events("start", job) == []
    assert world.api.outcomes(job) == ["failed"]
    assert world.api.dead_letter(job) is not None


@pytest.mark.parametrize("how", ["panic", "system_exit", "rejection", "not_json"])
def test_case_08_a_worker_survives_its_handlers(world, how):
    worker = world.worker()
    beside = world.submit("sleep", {"for_ms": 1500})
    worker.await_event("start", beside)
    job = world.submit("fail", {"times": 1, "how": how}, retry=NEVER)
    ended = world.api.ended(job)
    assert ended["status"] == "failed"
    if how == "not_json":
        assert ended["error"]["code"] == "result_invalid"
    assert world.api.outcomes(job) == ["failed"]
    world.completed(beside)
    world.completed(world.submit("echo"))
    assert worker.is_running()
    assert worker.proxy.count("register") == 1


def test_case_09_progress_is_seen_while_it_runs(world):
    worker = world.worker()
    job = world.submit("progress", {"steps": 10, "every_ms": 500})
    start = worker.await_event("start", job)
    seen = []

    def look():
        at, shown = time.time() * 1000, world.api.job(job)
        if shown.get("progress") is not None and (not seen or shown["progress"] != seen[-1][1]):
            seen.append((at, shown["progress"], shown.get("progress_message")))
        return shown["status"] == "completed"

    eventually("the job to end", look, pause=0.1)
    percents = [percent for _, percent, _ in seen]
    assert len(percents) >= 3 and percents == sorted(percents), seen
    for at, percent, message in seen[:-1]:
        step = round(percent / 10)
        assert message == f"step {step}", seen
        later_by = at - (start["wall_ms"] + (step - 1) * 500)
        assert later_by < 4000, (step, later_by, seen)


def test_case_09_lines_are_seen_while_it_runs(world):
    worker = world.worker()
    job = world.submit("log", {"lines": 20, "bytes": 40, "every_ms": 250})
    start = worker.await_event("start", job)
    seen = {}

    def look():
        ended = world.api.job(job)["status"] == "completed"
        at = time.time() * 1000
        for line in world.api.logs(job):
            seen.setdefault(line["message"], at)
        return ended

    eventually("the job to end", look, pause=0.1)
    lines = world.api.logs(job)
    assert [line["message"] for line in lines] == [f"line {n} ".ljust(40, "x") for n in range(1, 21)]
    late = [seen[line["message"]] - (start["wall_ms"] + n * 250) for n, line in enumerate(lines)]
    assert max(late) < 4000, late
    times = [seconds(line["time"]) for line in lines]
    assert times == sorted(times)


@pytest.mark.heavy
def test_case_09_too_many_lines(world):
    world.worker()
    job = world.submit("log", {"lines": 10_000, "bytes": 1024, "every_ms": 0})
    world.completed(job)
    messages = [line["message"] for line in world.api.logs(job)]
    kept = [int(found.group(1)) for message in messages if (found := re.match(r"line (\d+) x*$", message))]
    others = [message for message in messages if not re.match(r"line \d+ ", message)]
    assert sum(map(len, messages)) <= LOG_BYTES_MAX + 1024
    assert len(kept) < 10_000 and kept == sorted(set(kept))
    # One line for every place where lines are missing: where the library dropped some, and where the log begins.
    missing = [int(found.group().replace(",", "")) for other in others if (found := re.search(r"[\d,]+", other))]
    assert len(missing) == len(others) >= 1, others
    assert sum(missing) == 10_000 - len(kept), (others, len(kept))
