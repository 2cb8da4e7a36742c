"""Whether a worker is well: numbers for people, `/healthz` and `/readyz` for machines."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import time
from dataclasses import asdict, dataclass

from ._session import Session

REQUEST_BYTES_MAX = 8 * 1024
REQUEST_S_MAX = 5.0
CONNECTIONS_MAX = 32


@dataclass(frozen=True)
class Stats:
    """What a worker is doing. Times are in seconds."""

    worker_id: str | None
    capacity: int
    running: int
    stuck: int
    reports_waiting: int
    jobs_started: int
    draining: bool
    main_loop_blocked: bool
    last_heartbeat_age: float | None
    last_poll_age: float
    log_lines_dropped: int
    healthy: bool
    ready: bool


def stats_of(session: Session) -> Stats:
    """The numbers of a session. From any thread."""
    now = time.monotonic()
    proven_at, registered = session.lease.proven_at, session.registered
    poll_age_s = now - session.poller.turned_at
    poll_wait_s = registered.poll_wait_s if registered else 20.0
    was_registered = session.lease.lease_s > 0
    healthy = (not was_registered or session.lease.heard_within_lease(now)) and poll_age_s < 2 * poll_wait_s
    draining = session.draining or session.server_drain
    return Stats(
        worker_id=registered.worker_id if registered else None,
        capacity=session.settings.capacity,
        running=len(session.running),
        stuck=session.stuck,
        reports_waiting=len(session.reports),
        jobs_started=session.jobs_started,
        draining=draining,
        main_loop_blocked=session.main_blocked,
        last_heartbeat_age=None if proven_at is None else now - proven_at,
        last_poll_age=poll_age_s,
        log_lines_dropped=session.log_budget.lines_dropped,
        healthy=healthy,
        ready=healthy and registered is not None and not draining,
    )


class HealthServer:
    """Answers on the health port, if there is one."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._server: asyncio.Server | None = None
        self._open = 0

    async def start(self) -> None:
        port = self._session.settings.health_port
        if port is not None:
            self._server = await asyncio.start_server(self._serve, None, port, limit=REQUEST_BYTES_MAX)

    @property
    def port(self) -> int | None:
        """Where it listens."""
        if self._server is None:
            return None
        ours = [one for one in self._server.sockets if one.family == socket.AF_INET] or list(self._server.sockets)
        return int(ours[0].getsockname()[1])

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            if self._open <= CONNECTIONS_MAX:
                head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), REQUEST_S_MAX)
                writer.write(self._answer(head.split(b"\r\n", 1)[0].decode("latin-1")))
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, asyncio.TimeoutError):
            pass
        finally:
            self._open -= 1
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    def _answer(self, request_line: str) -> bytes:
        path = [*request_line.split(" "), "", ""][1].partition("?")[0]
        stats = stats_of(self._session)
        if path == "/healthz":
            status = 200 if stats.healthy else 503
        elif path == "/readyz":
            status = 200 if stats.ready else 503
        else:
            status = 404
        body = json.dumps(asdict(stats)).encode() if status != 404 else b"{}"
        reason = {200: "OK", 404: "Not Found", 503: "Service Unavailable"}[status]
        head = f"HTTP/1.1 {status} {reason}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
        return head.encode() + b"connection: close\r\n\r\n" + body
