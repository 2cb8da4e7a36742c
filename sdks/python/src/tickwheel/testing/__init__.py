"""Testing: one handler without a server, a client that only records, and a real server for a test.

outcome = testing.run(worker, send_email, SendEmail("nobody", "Hi"), state=fake_app, attempt=2)
assert (outcome.status, outcome.retryable, outcome.error.code) == ("failed", False, "bad_address")
"""

from ._recording import AsyncRecordingClient, RecordingClient, Submitted
from ._run import Result, run, run_batch
from ._server import Server

__all__ = ["AsyncRecordingClient", "RecordingClient", "Result", "Server", "Submitted", "run", "run_batch"]
