"""An attempt: one execution of one job by this worker.

    received ──▶ running ──▶ ended ──▶ gone
        │                      ▲
        └── given back ────────┘

The main loop moves it from `received` to `running`, unless the network thread has given it back by then because the
main loop did not come for it. Both sides see the same object; what both change is behind its lock.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Any, Literal

from ._durations import seconds
from ._handlers import Handler
from ._logs import LogBuffer
from ._outcome import Outcome
from .context import CancelState
from .models import Job

Phase = Literal["received", "running", "ended"]


@dataclass(frozen=True)
class Assignment:
    """What the server handed out."""

    job: Job
    number: int
    token: str
    fencing_token: int
    deadline_in_s: float
    traceparent: str | None

    @staticmethod
    def read(entry: dict[str, Any], read_job: Any) -> Assignment:
        """Reads an entry of the answer to a poll."""
        return Assignment(
            job=read_job(entry["job"]),
            number=int(entry["attempt"]),
            token=str(entry["token"]),
            fencing_token=int(entry["fencing_token"]),
            deadline_in_s=seconds(entry["deadline_in"]),
            traceparent=entry.get("traceparent"),
        )


class Attempt:
    """One execution of one job by this worker."""

    def __init__(
        self,
        assignment: Assignment,
        handler: Handler,
        logs: LogBuffer,
        received_at: float,
        raw_job: dict[str, Any] | None = None,
    ) -> None:
        self.assignment, self.handler, self.logs = assignment, handler, logs
        self.job, self.token = assignment.job, assignment.token
        self.raw_job = raw_job
        """The job as it came, for a child process."""
        self.deadline = received_at + assignment.deadline_in_s
        self.cancel = CancelState()
        self.phase: Phase = "received"
        self.worker_id: str | None = None
        self.abandoned = False
        """Told to be somebody else's: nothing is reported."""
        self.stuck_since: float | None = None
        self.started_at: float | None = None
        self.ended_at: float | None = None
        self.outcome: Outcome | None = None
        self._lock = threading.Lock()

    def begin(self) -> bool:
        """Starts running, on the main loop. False: it was given back in the meantime."""
        with self._lock:
            if self.phase != "received":
                return False
            self.phase, self.started_at = "running", time.monotonic()
            return True

    def give_back(self) -> bool:
        """Ends before it started. False: it has started."""
        with self._lock:
            if self.phase != "received":
                return False
            self.phase, self.ended_at = "ended", time.monotonic()
            return True

    def end(self, outcome: Outcome) -> bool:
        """Ends. False: it had ended before."""
        with self._lock:
            if self.phase == "ended":
                return False
            self.phase, self.ended_at, self.outcome = "ended", time.monotonic(), outcome
            return True

    @property
    def ran_s(self) -> float:
        """How long the handler ran."""
        if self.started_at is None or self.ended_at is None:
            return 0.0
        return self.ended_at - self.started_at

    @property
    def fields(self) -> dict[str, Any]:
        """What log lines about it carry."""
        found = {"job_id": self.job.id, "type": self.job.type, "attempt": self.assignment.number}
        return {**found, "worker_id": self.worker_id}


def tail(attempt: Attempt) -> str:
    """The end of a log line about an attempt."""
    return " (" + " ".join(f"{name}={value}" for name, value in attempt.fields.items()) + ")"
