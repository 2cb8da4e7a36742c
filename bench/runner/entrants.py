"""Who takes part, and how each is asked. An answer is a dictionary of numbers; times are spreads in milliseconds."""

import contextlib
import json
import os
import subprocess
from dataclasses import dataclass
from typing import Callable

from . import servers, tools

RUN_S_MAX = 240

OURS, PEER, FLOOR = "ours", "peer", "floor"

PG_DURABLE = "PostgreSQL, fsync and synchronous_commit on"
SQLITE_DURABLE = "SQLite, WAL, synchronous FULL"


@dataclass(frozen=True)
class Entrant:
    name: str
    role: str
    durability: str
    ask: Callable[[], dict]
    needs: str | None = None
    note: str = ""


def run(*command, **environment):
    """Runs a program that prints one JSON document."""
    done = subprocess.run(
        list(map(str, command)),
        check=True,
        timeout=RUN_S_MAX,
        capture_output=True,
        env={**os.environ, "NODE_ENV": "production", **environment},
    )
    return json.loads(done.stdout)


def spread(samples):
    """The same places of the sorted samples as `tickwheel bench` shows."""
    ordered = sorted(samples)
    at = lambda part: ordered[int((len(ordered) - 1) * part)]
    return {"p50": at(0.5), "p99": at(0.99), "p999": at(0.999), "max": ordered[-1]}


# Ours


def engine(store, *arguments):
    """The engine in this machine's own process, with an executor that does nothing."""
    command = [tools.TICKWHEEL, "bench", "--json", *arguments]
    if store == "sqlite":
        return run(*command, "--store", "sqlite", "--data-dir", tools.DATA)[0]
    with servers.postgres() as url:
        return run(*command, "--store", url)[0]


def engine_drain(store, jobs):
    return lambda: {"per_s": engine(store, "--only", "drain", "--jobs", jobs)["drain_per_s"]}


def engine_lag(store, rate, seconds):
    arguments = ["--only", "punctuality", "--rates", rate, "--seconds", seconds]
    return lambda: engine(store, *arguments)["lag_ms"]


def engine_idle(store, jobs, which):
    return lambda: engine(store, "--only", "latency", "--single-jobs", jobs)[which]


def over_http(store, verb, *numbers):
    """A server, and jobs that come and are called over HTTP."""
    fresh = servers.postgres() if store == "postgres" else contextlib.nullcontext("sqlite")
    with fresh as url, servers.tickwheel(url) as address:
        return run(tools.LOAD, verb, address, *numbers)


def http_submit(store, in_flight, batch, jobs):
    return lambda: {"per_s": over_http(store, "submit", in_flight, batch, jobs)["submit_per_s"]}


def http_drain(store, jobs):
    return lambda: {"per_s": over_http(store, "drain", jobs)["drain_per_s"]}


def http_lag(store, rate, seconds):
    return lambda: spread(over_http(store, "lag", rate, seconds)["samples_ms"])


def http_idle(store, jobs):
    return lambda: spread(over_http(store, "idle", jobs)["samples_ms"])


# Floors


def floor_postgres(connections, jobs, which):
    def ask():
        with servers.postgres() as url:
            return {"per_s": run(tools.FLOORS, "postgres", url, connections, jobs)[which]}

    return ask


def floor_sqlite(jobs, which):
    def ask():
        with servers.directory() as home:
            return {"per_s": run(tools.FLOORS, "sqlite", home, jobs)[which]}

    return ask


def floor_fsync(writes):
    def ask():
        with servers.directory() as home:
            return spread(run(tools.FLOORS, "fsync", home, writes)["samples_ms"])

    return ask


def generator(in_flight, batch, jobs):
    """What the load generator can do against an endpoint that does nothing."""
    return lambda: {"per_s": run(tools.LOAD, "calibrate", in_flight, batch, jobs)["submit_per_s"]}


# Peers


def node(peer):
    return [tools.NODE, tools.PEERS / peer / "peer.mjs"]


def python(peer):
    return [tools.python_of(peer), tools.PEERS / peer / "peer.py"]


PEER_PROGRAMS = {
    "graphile-worker": lambda: node("graphile-worker"),
    "pg-boss": lambda: node("pg-boss"),
    "bullmq": lambda: node("bullmq"),
    "celery": lambda: python("celery"),
    "procrastinate": lambda: python("procrastinate"),
    "apalis": lambda: [tools.APALIS],
}


def ask_peer(peer, server, *words):
    def ask():
        with server() as url:
            seen = run(*PEER_PROGRAMS[peer](), *words, BENCH_SERVER=url)
        return {"per_s": seen["drain_per_s"]} if "drain_per_s" in seen else spread(seen["samples_ms"])

    return ask


def on_postgres(peer, version, note, *words):
    return Entrant(f"{peer} {version}", PEER, PG_DURABLE, ask_peer(peer, servers.postgres, *words), peer, note)


def on_redis(peer, version, note, appendfsync, *words):
    server = lambda: servers.redis(appendfsync)
    durability = f"Redis, AOF, appendfsync {appendfsync}"
    return Entrant(f"{peer} {version} ({appendfsync})", PEER, durability, ask_peer(peer, server, *words), peer, note)
