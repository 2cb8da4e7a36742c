"""The watchdog: looks ten times a second at the lease, at the main loop, and at itself.

If its own turn comes late, the whole process stood still: it was stopped, or some code held the interpreter's lock.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
import traceback
from typing import TYPE_CHECKING

from ._outcome import Outcome

if TYPE_CHECKING:
    from ._session import Session

log = logging.getLogger("tickwheel.worker")

TICK_S = 0.1
STALL_S = 1.0
BLOCKED_S = 1.0


class Watchdog:
    """Watches a session and the main loop."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._last_tick = time.monotonic()
        self._stalled_at = 0.0
        self._ping_at = self._pong_at = 0.0
        self._said_for = 0.0

    def stalled_since(self, moment: float) -> bool:
        """Whether the process stood still at some time since then."""
        return time.monotonic() - self._last_tick > STALL_S or self._stalled_at >= moment

    async def run(self) -> None:
        """Watches until this is cancelled."""
        self._ping_at = self._pong_at = time.monotonic()
        while True:
            await asyncio.sleep(TICK_S)
            now = time.monotonic()
            stalled = now - self._last_tick > STALL_S
            if stalled:
                self._stalled_at = now
                self._say_blocked(now - self._last_tick)
            else:  # after a stall, what the heartbeater said meanwhile is read first
                self._check_lease(now)
            self._last_tick = now
            self._check_main(now)
            if self._is_over():
                self._session.begin_drain()

    def _is_over(self) -> bool:
        """Whether a worker that is one of several has lost its supervisor, or done its share."""
        settings = self._session.settings
        orphaned = settings.parent_pid is not None and os.getppid() != settings.parent_pid
        return orphaned or (settings.jobs_max is not None and self._session.jobs_started >= settings.jobs_max)

    def _check_lease(self, now: float) -> None:
        if self._session.registered is None or self._session.lease_warned or self._session.lease.is_provable(now):
            return
        self._session.lease_warned = True
        affected = [a for a in self._session.running.values() if a.handler.on_lease_lost != "continue"]
        log.error(
            "lease lost: no heartbeat was accepted in time, %d attempts are cancelled (worker_id=%s)",
            len(affected),
            self._session.registered.worker_id,
        )
        for attempt in affected:
            self._session.cancel(attempt, "lease_lost")

    def _check_main(self, now: float) -> None:
        """Watches the main loop. While it is blocked, jobs it has not begun go back, and none are asked for."""
        if self._pong_at >= self._ping_at:
            if now - self._ping_at >= TICK_S * 2:
                self._ping_at = now
                self._session.main.ping(self._pong_soon)
            if self._session.main_blocked:
                self._session.main_blocked = False
                self._session.changed.set()
            return
        if now - self._ping_at <= BLOCKED_S:
            return
        self._say_blocked(now - self._ping_at)
        self._session.main_blocked = True
        for attempt in list(self._session.running.values()):
            if attempt.phase == "received" and attempt.give_back():
                self._session.ended(attempt, Outcome("released"))
        self._session.changed.set()

    def _pong_soon(self) -> None:
        self._session.loop.call_soon_threadsafe(self._pong)

    def _pong(self) -> None:
        self._pong_at = time.monotonic()

    def _say_blocked(self, for_s: float) -> None:
        """Says who blocks, once for each ping that stays without an answer."""
        if self._said_for == self._ping_at:
            return
        self._said_for = self._ping_at
        frames = sys._current_frames()  # pyright: ignore[reportPrivateUsage]
        frame = frames.get(self._session.main.main_thread())
        codes = {
            getattr(h.function, "__code__", None): name
            for name, h in self._session.handlers.items()
            if h.kind != "thread"
        }
        names: list[str] = []
        walked = frame
        while walked is not None:
            if walked.f_code in codes:
                names.append(f"{codes[walked.f_code]} ({walked.f_code.co_name})")
            walked = walked.f_back
        stack = "".join(traceback.format_stack(frame, limit=20)) if frame is not None else ""
        log.warning("main loop blocked for %.1f s by %s:\n%s", for_s, names[0] if names else "unknown code", stack)
