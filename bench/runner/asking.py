"""A participant of a comparison, and how it is measured: a program prints a JSON document, a dictionary of numbers."""

import contextlib
import json
import os
import signal
import subprocess
from dataclasses import dataclass
from typing import Callable

from . import cpu, tools

RUN_S_MAX = 120

OURS, PEER, FLOOR = "ours", "peer", "floor"
BASELINE = "baseline"  # ours without the burden that a case is about

PG_DURABLE = "PostgreSQL, fsync and synchronous_commit on"
SQLITE_DURABLE = "SQLite, WAL, synchronous FULL"


@dataclass(frozen=True)
class Entrant:
    name: str
    role: str
    durability: str
    ask: Callable[[], dict]
    needs: str | None = None  # the peer that has to be installed
    note: str = ""
    version: str = ""


def run(*command, **environment):
    """Runs a program that prints one JSON document. All processes that it started end with it, even if a peer hangs."""
    command = list(map(str, command))
    environment = {**os.environ, "NODE_ENV": "production", **environment}
    pipe = subprocess.PIPE
    used_before = cpu.of_ended_children()
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, env=environment, start_new_session=True) as process:
        try:
            answer, said = process.communicate(timeout=RUN_S_MAX)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    if command[0] == str(tools.TICKWHEEL):
        cpu.count(cpu.of_ended_children() - used_before)
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, command, answer, said)
    return json.loads(answer)


def both(one, other, measure):
    """Two participants of one measurement, which returns a result for each by name. The first request makes the measurement."""
    seen = {}

    def half(name):
        def ask():
            if name not in seen:
                seen.update(measure())
            return seen.pop(name)

        return ask

    return half(one), half(other)


def spread(samples):
    """The same percentiles of the sorted samples that `tickwheel bench` shows."""
    ordered = sorted(samples)
    at = lambda part: ordered[int((len(ordered) - 1) * part)]
    return {"p50": at(0.5), "p99": at(0.99), "p999": at(0.999), "max": ordered[-1]}
