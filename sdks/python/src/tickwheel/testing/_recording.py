"""Clients that send nothing and keep what was submitted. Everything else about them is the real client."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import httpx2

from .._http import AsyncTransport, SyncTransport
from .._settings import Addresses, ApiKey, Connection
from ..aclient import AsyncClient
from ..client import Client
from ..jobtype import JobType


@dataclass(frozen=True)
class Submitted:
    """A job that was submitted: its type, its payload as JSON, and its options as the server would read them."""

    type: str
    payload: Any
    options: Mapping[str, Any]


class _Recorder:
    """Answers submissions like a server, and keeps them."""

    def __init__(self) -> None:
        self.submitted: list[Submitted] = []
        self.jobs: dict[str, dict[str, Any]] = {}

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        path = request.url.path
        body: Any = json.loads(request.content) if request.content else {}
        if request.method == "POST" and path == "/api/v1/jobs":
            return httpx2.Response(201, json=self._take(body))
        if request.method == "POST" and path == "/api/v1/jobs/batch":
            return httpx2.Response(200, json={"results": [{"job": self._take(job)} for job in body["jobs"]]})
        job = self.jobs.get(path.split("/")[4]) if path.startswith("/api/v1/jobs/") else None
        if job is None:
            problem = {"status": 404, "code": "not_found", "detail": f"a recording client has nothing at {path}"}
            return httpx2.Response(404, json=problem)
        if path.endswith("/cancel"):
            job["status"] = "cancelled"
        return httpx2.Response(200, json=job)

    def _take(self, body: dict[str, Any]) -> dict[str, Any]:
        options = {name: value for name, value in body.items() if name not in ("type", "payload", "idempotency_key")}
        self.submitted.append(Submitted(body["type"], body.get("payload"), options))
        now = datetime.now(timezone.utc).isoformat()
        job: dict[str, Any] = {
            "id": str(uuid.uuid4()),
            "type": body["type"],
            "status": "scheduled",
            "queue": body.get("queue", "default"),
            "priority": body.get("priority", "normal"),
            "tenant": "default",
            "execute_at": body.get("execute_at", now),
            "created_at": now,
            "attempt": 0,
            "retries": 0,
            "max_retries": body.get("retry", {}).get("max_retries", 3),
            "cancel_requested": False,
            "tags": body.get("tags", []),
            "metadata": body.get("metadata", {}),
            "target": {"worker": {}},
            "retry": body.get("retry", {}),
            "timeout": body.get("timeout", "300s"),
            "delivery": body.get("delivery", "at_least_once"),
            "depends_on": body.get("depends_on", []),
            "payload": body.get("payload"),
        }
        self.jobs[job["id"]] = job
        return job

    def of(self, job_type: JobType[Any, Any]) -> list[Any]:
        return [job_type.read_payload(job.payload) for job in self.submitted if job.type == job_type.name]


_NOWHERE = Connection(Addresses(["http://recording.invalid"]), ApiKey(None))


class RecordingClient(Client):
    """A `Client` that sends nothing. `submitted` has what it was given."""

    def __init__(self) -> None:
        super().__init__("http://recording.invalid")
        self._recorder = _Recorder()
        self._transport = SyncTransport(_NOWHERE, httpx2.MockTransport(self._recorder.answer))

    @property
    def submitted(self) -> list[Submitted]:
        """What was submitted, in order."""
        return self._recorder.submitted

    def payloads(self, job_type: JobType[Any, Any]) -> list[Any]:
        """The payloads of the submitted jobs of a type, in order."""
        return self._recorder.of(job_type)


class AsyncRecordingClient(AsyncClient):
    """An `AsyncClient` that sends nothing. `submitted` has what it was given."""

    def __init__(self) -> None:
        super().__init__("http://recording.invalid")
        self._recorder = _Recorder()
        self._transport = AsyncTransport(_NOWHERE, httpx2.MockTransport(self._recorder.answer))

    @property
    def submitted(self) -> list[Submitted]:
        """What was submitted, in order."""
        return self._recorder.submitted

    def payloads(self, job_type: JobType[Any, Any]) -> list[Any]:
        """The payloads of the submitted jobs of a type, in order."""
        return self._recorder.of(job_type)
