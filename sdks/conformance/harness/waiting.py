"""Waiting for something to become true, with an end."""

import time

PATIENCE = 20.0
PAUSE = 0.03


def eventually(what, look, within=PATIENCE, pause=PAUSE):
    """The first answer of `look` that is something. Fails with `what` when none comes in time."""
    end = time.monotonic() + within
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"waited {within:g} s for {what}")
        time.sleep(pause)
