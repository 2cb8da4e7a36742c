"""The peers, each with the settings that its documentation recommends for speed, and how one is measured."""

from dataclasses import dataclass
from typing import Callable

from . import pins, servers, tools
from .asking import PEER, PG_DURABLE, SQLITE_DURABLE, Entrant, run, spread


@dataclass(frozen=True)
class Peer:
    name: str
    server: Callable  # a context: the URL of an empty server
    durability: str
    note: str
    variant: str = ""
    part: int = 1  # slow ones get only that part of the jobs

    def asked(self, *words):
        def ask():
            with self.server() as url:
                return answer(self.run(url, *words))

        return self.entrant(ask)

    def run(self, url, *words):
        return run(*PROGRAMS[self.name](), *words, BENCH_SERVER=url, BENCH_HOLD=str(tools.PEERS / "shared" / "hold"))

    def entrant(self, ask):
        version = pins.version(self.name)
        name = f"{self.name} {version}{self.variant}"
        return Entrant(name, PEER, self.durability, ask, self.name, self.note, version)


def answer(seen):
    for rate in ("submit_per_s", "drain_per_s", "flow_per_s"):
        if rate in seen:
            return {"per_s": seen[rate]}
    return spread(seen["samples_ms"])


def on_postgres(name, note, **more):
    return Peer(name, servers.postgres, PG_DURABLE, note, **more)


def on_redis(name, note, appendfsync, **more):
    server = lambda: servers.redis(appendfsync)
    return Peer(name, server, f"Redis, AOF, appendfsync {appendfsync}", note, f" ({appendfsync})", **more)


GRAPHILE_WORKER = on_postgres("graphile-worker", "24 at once, local queue of 500, batched completion, poll every 10 ms; finished jobs are deleted")
PG_BOSS = on_postgres("pg-boss", "2 workers, batches of 500, notifications, poll every 500 ms (its shortest)")
PROCRASTINATE = on_postgres("procrastinate", "24 at once, notifications, poll every 10 ms", part=20)
APALIS = on_postgres("apalis", "batches of 500, no task locks, poll every 10 ms; times are whole seconds")
BULLMQ = on_redis("bullmq", "100 at once", "always")
BULLMQ_EVERYSEC = on_redis("bullmq", "100 at once", "everysec")
CELERY = on_redis("celery", "prefork, a process a core, late acknowledgement; delayed tasks wait in the worker's memory", "always", part=20)
RIVER = on_postgres(
    "river",
    "2,000 workers, fetch at most every 2 ms (its own benchmark's settings), poll every 10 ms, insert by COPY; "
    "jobs for later become available every 5 s, for the 5 s to come",
)
DB_SCHEDULER = on_postgres(
    "db-scheduler",
    "50 threads, lock-and-fetch 1.0 and 4.0, immediate execution, poll every 10 ms; finished jobs are deleted",
    part=4,
)
QUARTZ = on_postgres(
    "quartz", "25 threads, 25 triggers acquired at once, not clustered; finished jobs are deleted", part=40
)
TEMPORAL = Peer(
    "temporal", servers.temporal, SQLITE_DURABLE,
    "development server; a job is a workflow without activities; 16 pollers, 500 tasks at once, eager start",
    part=100,
)

ON_POSTGRES = (GRAPHILE_WORKER, PG_BOSS, PROCRASTINATE, APALIS, RIVER, DB_SCHEDULER, QUARTZ)
ALL = (*ON_POSTGRES, BULLMQ, BULLMQ_EVERYSEC, CELERY, TEMPORAL)
# apalis looks at whole seconds and falls behind: it is late by seconds, and half a minute a run.
PUNCTUAL_AT_100 = tuple(peer for peer in ALL if peer is not APALIS)
# procrastinate takes delayed jobs one by one; Quartz and Temporal cannot be given a thousand a second.
PUNCTUAL_AT_1000 = (GRAPHILE_WORKER, PG_BOSS, RIVER, DB_SCHEDULER, BULLMQ, BULLMQ_EVERYSEC, CELERY)

# Those who are asked for jobs that wait for others.
FLOWING = (BULLMQ, BULLMQ_EVERYSEC)

PROGRAMS = {
    "graphile-worker": lambda: node("graphile-worker"),
    "pg-boss": lambda: node("pg-boss"),
    "bullmq": lambda: node("bullmq"),
    "celery": lambda: python("celery"),
    "procrastinate": lambda: python("procrastinate"),
    "apalis": lambda: [tools.APALIS],
    "db-scheduler": lambda: java("db-scheduler", "DbSchedulerPeer"),
    "quartz": lambda: java("quartz", "QuartzPeer"),
    "river": lambda: [tools.go_program("river")],
    "temporal": lambda: [tools.go_program("temporal")],
}


def node(peer):
    return [tools.NODE, tools.PEERS / peer / "peer.mjs"]


def python(peer):
    return [tools.python_of(peer), tools.PEERS / peer / "peer.py"]


def java(peer, main):
    classes = tools.java_classes(peer)
    return ["java", "-classpath", f"{classes}:{classes / 'lib'}/*", main]
