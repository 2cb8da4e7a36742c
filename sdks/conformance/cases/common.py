"""Small things that several cases use."""

import json
import time
from datetime import datetime

SOON = {"max_retries": 3, "backoff": "fixed", "initial_delay": "100ms", "jitter": 0}
NEVER = {"max_retries": 0}
LEASE_S = 5.0


def seconds(text):
    """A time of the API as seconds since 1970."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def error_text(attempt):
    return json.dumps(attempt["error"])


def most_at_once(events):
    """How many handlers of one process ran at the same time, at most."""
    changes = []
    for event in events:
        if event["event"] == "start":
            changes.append((event["mono_ms"], 1))
        elif event["event"] in ("end", "error", "cancelled"):
            changes.append((event["mono_ms"], -1))
    running = most = 0
    for _, change in sorted(changes, key=lambda entry: (entry[0], entry[1])):
        running += change
        most = max(most, running)
    return most


def wait_until(moment):
    """Sleeps until that moment of the monotonic clock: the fault itself has a length."""
    time.sleep(max(0.0, moment - time.monotonic()))


def now_ms():
    return time.time() * 1000
