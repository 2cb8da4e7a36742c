"""Stores that are filled once and measured many times. They are large: call `drop_all` when they are no longer needed."""

import contextlib
import os
import subprocess
import sys
import time

from . import servers, tools

FILL_S_MAX = 1800

_filled = {}
_leaving = contextlib.ExitStack()


def filled(kind, **contents):
    """Like `servers.fresh`, but the same store every time, with this many `waiting` or `finished` jobs in it, or this many
    `schedules` that fire in a `pattern`."""

    @contextlib.contextmanager
    def on():
        store = filled_once(kind, contents)
        settle(store)
        yield store

    return on


def drop_all():
    _leaving.close()
    _filled.clear()


def filled_once(kind, contents):
    key = kind, *sorted(contents.items())
    if key not in _filled:
        _filled[key] = None  # what failed once is not tried again: it takes minutes
        store = _leaving.enter_context(servers.fresh(kind)())
        fill(store, contents)
        _filled[key] = store
    if _filled[key] is None:
        raise ValueError("the store could not be filled")
    return _filled[key]


def fill(store, contents):
    words = ", ".join(f"{what} {count}" for what, count in contents.items())
    print(f"bench: filling {store.kind}: {words}", file=sys.stderr, flush=True)
    begun = time.monotonic()
    command = [tools.TICKWHEEL, "bench", "--json", "--only", "fill", *store.arguments, *fill_arguments(**contents)]
    subprocess.run(list(map(str, command)), check=True, timeout=FILL_S_MAX, capture_output=True)
    if store.kind == "postgres":
        servers.psql(store.url, "ANALYZE")
    print(f"bench: filled in {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)


def fill_arguments(waiting=0, finished=0, schedules=0, pattern="spread"):
    return [
        "--fill-waiting", waiting, "--fill-finished", finished, "--fill-schedules", schedules, "--pattern", pattern,
    ]


def settle(store):
    """Completes the background work of the last writes before a measurement."""
    if store.kind == "postgres":
        servers.psql(store.url, "VACUUM")
        servers.psql(store.url, "CHECKPOINT")
    else:
        os.sync()
