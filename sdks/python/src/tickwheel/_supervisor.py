"""Runs a worker in several processes: passes signals on, replaces those that end, ends when all have ended."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time

log = logging.getLogger("tickwheel.supervisor")

RESTART_S_MIN, RESTART_S_MAX = 1.0, 30.0
QUIET_S = 60.0
LOOK_S = 0.1
REFUSED = 2


class Slot:
    """One of the processes, and those that replace it."""

    def __init__(self, target: str, index: int, jobs_max: int | None) -> None:
        self._command = [sys.executable, "-m", "tickwheel", "worker", target]
        self._command += ["--child-of", str(os.getpid()), "--child-index", str(index)]
        if jobs_max is not None:
            self._command += ["--jobs-max", str(jobs_max)]
        self.process: subprocess.Popen[bytes] | None = None
        self._pause_s = RESTART_S_MIN
        self._started_at = 0.0
        self._start_at = 0.0

    def start_if_due(self, now: float) -> None:
        if self.process is None and now >= self._start_at:
            # In a session of its own: a Ctrl-C in the terminal reaches it once, through us.
            self.process = subprocess.Popen(self._command, start_new_session=True)  # noqa: S603 - ourselves
            self._started_at = now

    def look(self, now: float) -> int | None:
        """The exit code of a process that has ended. The next one starts at once, or later if it failed."""
        code = None if self.process is None else self.process.poll()
        if code is None:
            return None
        self.process = None
        if code == 0 or now - self._started_at > QUIET_S:
            self._pause_s = RESTART_S_MIN
        self._start_at = now if code == 0 else now + self._pause_s
        self._pause_s = min(self._pause_s * 2, RESTART_S_MAX) if code != 0 else RESTART_S_MIN
        return code

    def signal(self, number: int) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)


def supervise(target: str, processes: int, jobs_max: int | None) -> int:
    """Runs until a signal, or until a process is refused at the start. The exit code."""
    slots = [Slot(target, index, jobs_max) for index in range(processes)]
    signals: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _: signals.append(received))
    passed, result, stopping = 0, 0, False
    while True:
        while passed < len(signals):
            stopping = True
            for slot in slots:
                slot.signal(signals[passed])
            passed += 1
        now = time.monotonic()
        for slot in slots:
            code = slot.look(now)
            if code == REFUSED and not stopping:
                result, stopping = REFUSED, True
                for other in slots:
                    other.signal(signal.SIGTERM)
            elif stopping and code is not None and -code in signals:
                continue  # the signal came before it had begun
            elif code is not None and code != 0:
                log.error("a worker process ended with %d", code)
                result = result or (130 if code == 130 else 1 if stopping else 0)
            if not stopping:
                slot.start_if_due(now)
        if stopping and all(slot.process is None for slot in slots):
            return result
        time.sleep(LOOK_S)
