"""Says in the log when the server goes away and when it is back: once, then every 30 seconds, never more."""

from __future__ import annotations

import logging
import time

log = logging.getLogger("tickwheel.worker")

REPEAT_S = 30.0


class ServerWatch:
    """Whether the server answers."""

    def __init__(self) -> None:
        self._away_since: float | None = None
        self._said_at = 0.0

    def away(self, why: str) -> None:
        """A request was not answered, or not in a useful way."""
        now = time.monotonic()
        if self._away_since is None:
            self._away_since = now
        elif now - self._said_at < REPEAT_S:
            return
        self._said_at = now
        log.warning("server away for %.0f s: %s", now - self._away_since, why)

    def back(self) -> None:
        """A request was answered."""
        if self._away_since is not None:
            log.info("reconnected after %.1f s", time.monotonic() - self._away_since)
            self._away_since = None
