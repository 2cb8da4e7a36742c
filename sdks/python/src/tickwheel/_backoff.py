"""How long to wait before a failed request is sent again."""

from __future__ import annotations

import random

from ._http import NoAnswer
from .errors import Problem

FIRST_S, MOST_S = 0.1, 5.0


class Backoff:
    """100 ms, doubled up to 5 s, with full jitter; at once after the reset of an old connection; `Retry-After`."""

    def __init__(self, most_s: float = MOST_S) -> None:
        self._failures = 0
        self._most_s = most_s

    def reset(self) -> None:
        """It worked."""
        self._failures = 0

    def after(self, error: Exception) -> float:
        """It did not work. How long to wait."""
        self._failures += 1
        if isinstance(error, NoAnswer) and error.reused_connection and self._failures == 1:
            return 0.0
        pause_s = random.uniform(0, min(FIRST_S * 2.0 ** (self._failures - 1), self._most_s))  # noqa: S311 - spreads load
        if isinstance(error, Problem) and error.retry_after_s is not None:
            return max(pause_s, min(error.retry_after_s, 60.0))
        return pause_s
