"""Durations: what people write (`"250ms"`, `30`, a timedelta) and what the wire carries (`"250ms"`).

Inside the library a duration is a float of seconds, and its name ends in `_s`.
"""

from __future__ import annotations

import re
from datetime import timedelta

Duration = str | int | float | timedelta
"""A string with a unit (`ms`, `s`, `m`, `h`, `d`), a number of seconds, or a timedelta."""

_PATTERN = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)?")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, None: 1.0}


def seconds(duration: Duration) -> float:
    """The seconds of a duration. Raises ValueError for anything that is none."""
    if isinstance(duration, timedelta):
        value = duration.total_seconds()
    elif isinstance(duration, bool):
        raise ValueError(f"{duration!r} is not a duration")
    elif isinstance(duration, (int, float)):
        value = float(duration)
    else:
        match = _PATTERN.fullmatch(duration)
        if match is None:
            raise ValueError(f'{duration!r} is not a duration; write "250ms", "30s", "5m", "4h" or "1d"')
        value = float(match[1]) * _SECONDS[match[2]]
    if not 0 <= value < 1e11:
        raise ValueError(f"{duration!r} is not a duration: it must be positive and finite")
    return value


def to_wire(duration: Duration) -> str:
    """The same duration as the server reads it, in whole milliseconds. What is not zero does not become zero."""
    value = seconds(duration)
    return f"{max(round(value * 1000), 1 if value > 0 else 0)}ms"
