"""The parts of a session that have no thread and no clock of their own."""

from __future__ import annotations

import json
import logging
import threading
import time
from typing import Any

import pytest

from tickwheel import Cancelled, JobType, NotRetryable, RetryAfter, Snooze, _heartbeater, _outcome
from tickwheel._attempt import Assignment, Attempt
from tickwheel._backoff import Backoff
from tickwheel._handlers import Handler, takes_context
from tickwheel._http import NoAnswer
from tickwheel._lease import Lease
from tickwheel._logs import ATTEMPT_BYTES_MAX, Line, LogBudget, LogBuffer
from tickwheel._outcome import Outcome
from tickwheel._poller import Demand
from tickwheel._reports import Reports
from tickwheel.errors import Overloaded
from tickwheel.testing._run import _Arguments, _attempt
from tickwheel.worker import Worker

ECHO = JobType("echo")


def handler(**changes: Any) -> Handler:
    fields: dict[str, Any] = {
        "job_type": ECHO,
        "function": lambda payload: payload,
        "kind": "async",
        "wants_context": False,
        "capacity": None,
        "not_retryable": (),
        "cancel_grace_s": 5.0,
        "on_lease_lost": "cancel",
    }
    return Handler(**{**fields, **changes})


def attempt(payload: Any = None) -> Attempt:
    return _attempt(_Arguments(Worker(), ECHO, None, 1, 300.0, None, "requested"), handler(), payload)


# The lease.


def test_a_lease_counts_from_before_the_heartbeat_was_sent() -> None:
    lease = Lease()
    assert not lease.is_provable(0.0)
    lease.renew(100.0, 30.0)
    assert lease.is_provable(126.9)
    assert not lease.is_provable(127.0), "a tenth is the margin"
    lease.renew(90.0, 30.0)
    assert lease.is_provable(126.9), "an older proof takes nothing away"
    lease.end()
    assert not lease.is_provable(101.0)


def test_the_margin_is_at_least_a_second() -> None:
    lease = Lease()
    lease.renew(0.0, 5.0)
    assert lease.is_provable(3.9)
    assert not lease.is_provable(4.0)
    assert lease.heard_within_lease(4.9)


# Back-off.


def test_a_reset_old_connection_is_tried_again_at_once_but_only_once() -> None:
    backoff = Backoff()
    reset = NoAnswer("reset", sent=True, reused_connection=True)
    assert backoff.after(reset) == 0.0
    assert all(0 <= backoff.after(reset) <= 5.0 for _ in range(20))


def test_pauses_grow_to_five_seconds_and_honour_retry_after() -> None:
    backoff = Backoff()
    refused = NoAnswer("refused", sent=False, reused_connection=False)
    assert max(Backoff().after(refused) for _ in range(50)) <= 0.1
    pauses = [backoff.after(refused) for _ in range(200)]
    assert 2.5 < max(pauses) <= 5.0
    assert backoff.after(Overloaded(status=503, code="overloaded", detail="", retry_after_s=7.0)) >= 7.0


# Demand.


def test_a_poll_is_asked_anew_only_when_it_must_be() -> None:
    assert not Demand(3, {}).is_outdated_by(Demand(5, {}))
    assert Demand(0, {}).is_outdated_by(Demand(1, {})), "a slot is free"
    assert Demand(3, {}).is_outdated_by(Demand(0, {})), "draining"
    assert Demand(3, {"a": 0}).is_outdated_by(Demand(3, {"a": 1})), "a full type has room"
    assert not Demand(3, {"a": 1}).is_outdated_by(Demand(3, {"a": 2}))


# Outcomes.


class Listed(Exception):
    pass


@pytest.mark.parametrize(
    ("error", "status", "code", "retryable", "delay"),
    [
        (ValueError("x"), "failed", "value_error", True, None),
        (Listed("x"), "failed", "listed", False, None),
        (NotRetryable("x", code="c"), "failed", "c", False, None),
        (RetryAfter("30s", "x"), "failed", "retry_after", True, 30.0),
        (Snooze("10m"), "snoozed", None, True, 600.0),
        (SystemExit(3), "failed", "system_exit", True, None),
        (KeyboardInterrupt(), "failed", "keyboard_interrupt", True, None),
        (Cancelled(), "failed", "cancelled", True, None),
    ],
)
def test_what_a_handler_raises_decides(error: Any, status: str, code: Any, retryable: bool, delay: Any) -> None:
    outcome = _outcome.failed(error, None, (Listed,))
    found = (outcome.status, outcome.error and outcome.error.code, outcome.retryable, outcome.delay_s)
    assert found == (status, code, retryable, delay)


@pytest.mark.parametrize(
    ("reason", "status", "code"),
    [("requested", "cancelled", None), ("deadline", "failed", "timed_out")]
    + [("shutdown", "released", None), ("lease_lost", "released", None)],
)
def test_a_cancelled_handler_is_reported_by_its_reason(reason: Any, status: str, code: Any) -> None:
    for error in (Cancelled(reason), RuntimeError("while cleaning up")):
        outcome = _outcome.failed(error, reason)
        assert (outcome.status, outcome.error and outcome.error.code) == (status, code)


def test_results_are_checked() -> None:
    assert _outcome.completed(ECHO, {"a": [1]}).result == b'{"a":[1]}'
    assert _outcome.completed(JobType("x", dict, int), "text").error.code == "result_invalid"  # type: ignore[union-attr]
    large = _outcome.completed(ECHO, "x" * 10, bytes_max=11)
    assert large.error is not None
    assert (large.error.code, large.retryable) == ("result_too_large", False)


def test_a_stack_is_cut_at_its_beginning() -> None:
    def deep(levels: int) -> None:
        if levels:
            deep(levels - 1)
        raise ValueError("the end \u00e9" * 2000)

    with pytest.raises(ValueError, match="the end") as caught:
        deep(5)
    failure = _outcome.failure(caught.value)
    assert failure.stack is not None
    assert len(failure.stack.encode()) <= 16 * 1024
    assert failure.stack.rstrip().endswith("the end \u00e9")


# Reports.


def test_reports_come_again_until_they_are_done() -> None:
    reports = Reports()
    first, second = attempt(), attempt()
    reports.add(first, Outcome("completed", result=b'{"n":1}'))
    reports.add(second, Outcome("failed", error=_outcome.failure(ValueError("x")), retryable=False))
    body = json.loads(reports.next_batch(True).body)
    assert body == json.loads(reports.next_batch(True).body)
    assert body["reports"][0]["result"] == {"n": 1}
    assert (body["reports"][1]["retryable"], body["reports"][1]["error"]["type"]) == (False, "ValueError")
    batch = reports.next_batch(True)
    reports.done(batch.items[0])
    assert [report["token"] for report in json.loads(reports.next_batch(True).body)["reports"]] == [second.token]


def test_a_batch_of_reports_is_bounded() -> None:
    reports = Reports()
    for _ in range(1500):
        reports.add(attempt(), Outcome("completed"))
    assert len(reports.next_batch(False).items) == 1000
    large = Reports()
    for _ in range(50):
        large.add(attempt(), Outcome("completed", result=b'"' + b"x" * 250_000 + b'"'))
    assert 30 < len(large.next_batch(False).items) < 34
    assert not large.is_full
    for _ in range(250):
        large.add(attempt(), Outcome("completed", result=b'"' + b"x" * 250_000 + b'"'))
    assert large.is_full


def test_a_report_that_spoils_the_request_is_found_and_replaced() -> None:
    reports = Reports()
    good, bad = attempt(), attempt()
    reports.add(bad, Outcome("completed", result=b"[1e999]"))
    reports.add(good, Outcome("completed", result=b"1"))
    assert reports.refused(reports.next_batch(False), "invalid_json") is None
    alone = reports.next_batch(False)
    assert [item.attempt for item in alone.items] == [bad]
    assert reports.refused(alone, "invalid_json: number out of range") is None
    replaced = json.loads(reports.next_batch(False).body)["reports"][0]
    assert (replaced["outcome"], replaced["retryable"]) == ("failed", False)
    assert replaced["error"]["code"] == "result_invalid"
    given_up = reports.refused(reports.next_batch(False), "again")
    assert given_up is not None
    assert given_up.attempt is bad
    assert [item.attempt for item in reports.next_batch(False).items] == [good]


# Logs.


def line(text: str) -> Line:
    return Line("info", text, time.monotonic())


def test_lines_are_numbered_when_they_are_sent_and_come_again_until_accepted() -> None:
    logs = LogBuffer(LogBudget())
    logs.add(line("a"))
    first = logs.take()
    logs.add(line("b"))
    assert first is not None
    again = logs.take()
    assert again is not None
    assert (again["first"], [entry["message"] for entry in again["lines"]]) == (0, ["a"])
    everything = logs.take(everything=True)
    assert everything is not None
    assert [entry["message"] for entry in everything["lines"]] == ["a", "b"]
    logs.accepted(first)
    rest = logs.take()
    assert rest is not None
    assert (rest["first"], [entry["message"] for entry in rest["lines"]]) == (1, ["b"])
    logs.accepted(everything)
    logs.accepted(first)
    assert logs.take() is None
    assert logs.is_empty


def test_the_oldest_lines_go_and_one_line_says_how_many() -> None:
    budget = LogBudget()
    logs = LogBuffer(budget)
    for number in range(10_000):
        logs.add(line(f"line {number} ".ljust(1024, "x")))
    assert budget.bytes_used <= ATTEMPT_BYTES_MAX
    taken = logs.take(everything=True)
    assert taken is not None
    kept = len(taken["lines"]) - 1
    assert 200 < kept < 260
    assert taken["lines"][-1]["message"].startswith(f"{10_000 - kept} lines are missing")
    assert taken["lines"][-2]["message"].startswith("line 9999 ")
    assert budget.bytes_used == 0


def test_no_more_is_sent_of_an_attempt_than_the_server_keeps() -> None:
    logs = LogBuffer(LogBudget())
    sent: list[str] = []
    for number in range(3000):
        logs.add(line(f"line {number} ".ljust(1024, "x")))
        if number % 100 == 99 and (taken := logs.take()):
            sent += [entry["message"] for entry in taken["lines"]]
            logs.accepted(taken)
    last = logs.take(everything=True)
    assert last is not None
    sent += [entry["message"] for entry in last["lines"]]
    assert sum(len(text) + 1 for text in sent) <= 1024 * 1024
    assert [text for text in sent if "missing" in text] == [
        f"{3000 - len(sent) + 1} lines are missing: there were too many"
    ]


def test_all_attempts_together_are_bounded_too() -> None:
    budget = LogBudget(bytes_max=10_000)
    buffers = [LogBuffer(budget) for _ in range(5)]
    for _ in range(100):
        for buffer in buffers:
            buffer.add(line("x" * 100))
    assert budget.bytes_used <= 10_000 + 5 * 200
    for buffer in buffers:
        buffer.discard()
    assert budget.bytes_used == 0


def test_a_line_is_cut_and_cannot_break_the_request() -> None:
    logs = LogBuffer(LogBudget())
    logs.add(line("é\ud800" * 20_000))
    taken = logs.take()
    assert taken is not None
    assert len(taken["lines"][0]["message"].encode()) <= 16 * 1024
    json.dumps(taken).encode()


# Attempts and handlers.


def test_an_attempt_is_begun_or_given_back_but_not_both() -> None:
    begun = attempt()
    assert begun.begin()
    assert not begun.give_back()
    given_back = attempt()
    assert given_back.give_back()
    assert not given_back.begin()
    assert begun.end(Outcome("completed"))
    assert not begun.end(Outcome("failed"))


def test_an_assignment_is_read_as_the_server_writes_it() -> None:
    entry = {"job": {}, "attempt": 2, "token": "t", "fencing_token": 3, "deadline_in": "299.9s", "deadline": "…"}
    read = Assignment.read({**entry, "traceparent": None, "newer": 1}, lambda job: attempt().job)
    assert (read.number, read.fencing_token, round(read.deadline_in_s, 3)) == (2, 3, 299.9)


def test_a_handler_may_leave_the_context_out() -> None:
    assert not takes_context(lambda payload: None)
    assert takes_context(lambda payload, ctx: None)
    for wrong in (lambda: None, lambda a, b, c: None, lambda a, *, b: None):
        with pytest.raises(TypeError):
            takes_context(wrong)


def test_wrong_registrations_are_refused() -> None:
    worker = Worker()
    worker.handler(ECHO)(lambda payload: None)
    with pytest.raises(ValueError, match="has a handler already"):
        worker.handler(ECHO)(lambda payload: None)

    async def coroutine(payload: Any) -> None: ...

    with pytest.raises(TypeError, match="plain def"):
        worker.handler(JobType("b"), isolate=True)(coroutine)
    decorate: Any = worker.batch_handler(JobType("c"), jobs_max=2, wait_max=1)
    with pytest.raises(TypeError, match="async def"):
        decorate(lambda payloads: [])


def test_the_http_client_does_not_log_our_tokens(caplog: pytest.LogCaptureFixture) -> None:
    from tickwheel.testing import RecordingClient

    with caplog.at_level(logging.DEBUG):
        RecordingClient().submit(ECHO, 1)
    assert not [record for record in caplog.records if record.name.startswith(("httpx2", "httpcore2"))]


# The heartbeater.


class SlowWire:
    """Answers a heartbeat when the test says so."""

    def __init__(self) -> None:
        self.bodies: list[Any] = []
        self.sent, self.answer = threading.Event(), threading.Event()

    def post(self, path: str, body: Any, timeout_s: float) -> Any:
        self.bodies.append(body)
        self.sent.set()
        assert self.answer.wait(5.0)
        return {"resync": False}


def test_a_change_of_state_during_a_heartbeat_brings_the_next_one_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    wire = SlowWire()
    monkeypatch.setattr(_heartbeater, "Wire", lambda session: wire)
    heart = _heartbeater.Heart(lambda message: None)
    session = {"path": "/w", "lease_s": 30.0, "interval_s": 10.0, "resync": False}
    heart.hear({"kind": "session", "session": session})
    threading.Thread(target=heart.beat_for_ever, args=(lambda: False,), daemon=True).start()
    assert wire.sent.wait(5.0)
    heart.hear({"kind": "state", "state": "draining", "stuck": 0})
    wire.sent.clear()
    wire.answer.set()
    assert wire.sent.wait(3.0), "it waits for the next interval"
    assert [body["state"] for body in wire.bodies] == ["active", "draining"]
    heart.stop()
