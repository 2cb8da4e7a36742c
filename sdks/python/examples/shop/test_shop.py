"""Tests of the handlers without a server, and of the whole with a real one."""

from __future__ import annotations

import threading

from jobs import IndexDoc, Receipt, SendEmail, index_doc, send_email
from worker import App, worker

from tickwheel import testing
from tickwheel.testing import RecordingClient


def test_an_email_is_sent_once() -> None:
    app = App()
    outcome = testing.run(worker, send_email, SendEmail("ann@example.com", "Hi"), state=app)
    assert outcome.status == "completed"
    assert isinstance(outcome.result, Receipt)
    assert len(app.sent) == 1
    assert outcome.progress == [(10, "rendering")]
    assert outcome.logs[0] == "to ann@example.com"


def test_a_bad_address_is_not_retried() -> None:
    outcome = testing.run(worker, send_email, SendEmail("nobody", "Hi"), state=App(), attempt=2)
    assert outcome.error is not None
    assert (outcome.status, outcome.retryable, outcome.error.code) == ("failed", False, "bad_address")


def test_too_little_time_is_a_reason_to_come_back_later() -> None:
    outcome = testing.run(worker, send_email, SendEmail("ann@example.com", "Hi"), state=App(), timeout="4s")
    assert (outcome.status, outcome.retryable, outcome.delay) == ("failed", True, 60.0)


def test_an_empty_document_fails_alone() -> None:
    outcomes = testing.run_batch(worker, index_doc, [IndexDoc(1, "one"), IndexDoc(2, "")], state=App())
    assert [outcome.status for outcome in outcomes] == ["completed", "failed"]


def test_what_is_submitted() -> None:
    client = RecordingClient()
    client.submit(send_email, SendEmail("ann@example.com", "Hi"), delay="30m")
    (job,) = client.submitted
    assert (job.type, job.options["queue"], job.options["delay"]) == ("send_email", "mail", "1800000ms")
    assert client.payloads(send_email) == [SendEmail("ann@example.com", "Hi")]


def test_with_a_real_server(tickwheel_server: testing.Server) -> None:
    real = worker.at(tickwheel_server.url)
    thread = threading.Thread(target=real.run, daemon=True)
    thread.start()
    try:
        with tickwheel_server.client() as client:
            receipt = client.submit(send_email, SendEmail("ann@example.com", "Hi")).wait("30s")
            assert receipt.message_id.endswith(":smtp@example.com>")
    finally:
        real.stop()
        thread.join(10)
    assert not thread.is_alive()
