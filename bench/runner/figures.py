"""What is measured, of whom, with how much load. A case is one question that ours, peers and floors answer alike."""

from dataclasses import dataclass, field

from .entrants import (
    FLOOR,
    OURS,
    PG_DURABLE,
    SQLITE_DURABLE,
    Entrant,
    engine_drain,
    engine_idle,
    engine_lag,
    floor_fsync,
    floor_postgres,
    floor_sqlite,
    generator,
    http_drain,
    http_idle,
    http_lag,
    http_submit,
    on_postgres,
    on_redis,
)

STORES = {"postgres": ("PostgreSQL", PG_DURABLE), "sqlite": ("SQLite", SQLITE_DURABLE)}
IN_PROCESS, OVER_HTTP = "in process", "over HTTP"


@dataclass(frozen=True)
class Load:
    """How much."""

    submit_jobs: int
    batch_jobs: int
    drain_jobs: int
    http_drain_jobs: int
    lag_s: int
    rates: tuple
    idle_jobs: int


FULL = Load(100_000, 200_000, 100_000, 50_000, 10, (100, 1_000, 5_000), 200)
QUICK = Load(2_000, 5_000, 5_000, 2_000, 2, (100, 1_000), 20)


@dataclass
class Case:
    figure: str
    name: str
    metric: str  # the one number that is compared
    entrants: list
    runs: dict = field(default_factory=dict)

    @property
    def is_rate(self):
        return self.metric == "per_s"


def ours(store, how, ask):
    name, durability = STORES[store]
    return Entrant(f"Tickwheel, {how}" if how else "Tickwheel", OURS, durability, ask)


def floor(name, durability, ask):
    return Entrant(name, FLOOR, durability, ask)


def peers(words):
    """Every peer at the settings its own documentation recommends for speed. `words(part)` says what is asked of each; slow ones
    get only that part of the jobs."""
    return [
        on_postgres("graphile-worker", "0.18.0", "24 at once, local queue of 500, batched completion, poll every 10 ms; finished jobs are deleted", *words(1)),
        on_postgres("pg-boss", "12.35.0", "2 workers, batches of 500, notifications, poll every 500 ms (its shortest)", *words(1)),
        on_postgres("procrastinate", "3.10.0", "24 at once, notifications, poll every 10 ms", *words(20)),
        on_postgres("apalis", "1.0.0", "batches of 500, no task locks, poll every 10 ms; times are whole seconds", *words(1)),
        on_redis("bullmq", "6.7.0", "100 at once", "always", *words(1)),
        on_redis("bullmq", "6.7.0", "100 at once", "everysec", *words(1)),
        on_redis("celery", "5.7.0", "prefork, a process a core, late acknowledgement; delayed tasks wait in the worker's memory", "always", *words(20)),
    ]


def submission(load):
    """B1: how fast jobs are durably accepted over HTTP."""
    for store, (name, durability) in STORES.items():
        yield Case("B1", f"one job a request, 64 in flight, {name}", "per_s", [
            ours(store, "", http_submit(store, 64, 1, load.submit_jobs)),
            floor("the load generator against nothing", "none", generator(64, 1, load.submit_jobs)),
        ])
        yield Case("B1", f"batches of 500, 4 in flight, {name}", "per_s", [
            ours(store, "", http_submit(store, 4, 500, load.batch_jobs)),
            *floors(store, load.batch_jobs, "insert_per_s"),
        ])


def drain(load):
    """B2: how fast waiting jobs are worked off."""
    for store, (name, _) in STORES.items():
        entrants = [
            ours(store, IN_PROCESS, engine_drain(store, load.drain_jobs)),
            ours(store, OVER_HTTP, http_drain(store, load.http_drain_jobs)),
            *floors(store, load.drain_jobs, "drain_per_s"),
        ]
        if store == "postgres":
            entrants += peers(lambda part: ("drain", load.drain_jobs // part))
        yield Case("B2", f"drain, {name}", "per_s", entrants)


def floors(store, jobs, which):
    if store == "sqlite":
        return [floor("raw SQL, one connection", SQLITE_DURABLE, floor_sqlite(jobs, which))]
    return [
        floor("raw SQL, one connection", PG_DURABLE, floor_postgres(1, jobs, which)),
        floor("raw SQL, two connections", PG_DURABLE, floor_postgres(2, jobs, which)),
    ]


def punctuality(load):
    """B4: how long after their time jobs start."""
    for rate in load.rates:
        entrants = []
        for store, (name, _) in STORES.items():
            entrants.append(ours(store, f"{name}, {IN_PROCESS}", engine_lag(store, rate, load.lag_s)))
            entrants.append(ours(store, f"{name}, {OVER_HTTP}", http_lag(store, rate, load.lag_s)))
        if rate == 100:
            entrants += peers(lambda _: ("lag", rate, load.lag_s))
        yield Case("B4", f"start lag at {rate}/s", "p99", entrants)


def latency(load):
    """B5: how long a single job takes on an idle system."""
    to_start = []
    for store, (name, _) in STORES.items():
        to_start.append(ours(store, f"{name}, {IN_PROCESS}", engine_idle(store, load.idle_jobs, "to_start_ms")))
        to_start.append(ours(store, f"{name}, {OVER_HTTP}", http_idle(store, load.idle_jobs)))
    fsync = floor("4 KiB written and synced", "fdatasync", floor_fsync(load.idle_jobs))
    yield Case("B5", "submit to start, one at a time", "p50", [*to_start, fsync, *peers(lambda _: ("idle", load.idle_jobs))])
    yield Case("B5", "submit to completed, one at a time", "p50", [
        ours(store, f"{name}, {IN_PROCESS}", engine_idle(store, load.idle_jobs, "to_completed_ms"))
        for store, (name, _) in STORES.items()
    ] + [fsync])


FIGURES = {"B1": submission, "B2": drain, "B4": punctuality, "B5": latency}
NAMES = tuple(FIGURES)
TITLES = {
    "B1": "Submission rate over HTTP, jobs/s",
    "B2": "Drain rate, jobs/s",
    "B4": "Start minus scheduled time, p99, ms",
    "B5": "Idle latency, p50, ms",
}


def all_of(names, load):
    return [case for name in NAMES if name in names for case in FIGURES[name](load)]
