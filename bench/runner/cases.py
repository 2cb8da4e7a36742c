"""A case is one measurement that ours, peers and floors have in common. A load says how large it is."""

import dataclasses
from dataclasses import dataclass, field

from .asking import BASELINE, FLOOR, OURS, PG_DURABLE, SQLITE_DURABLE, Entrant

STORES = {"postgres": ("PostgreSQL", PG_DURABLE), "sqlite": ("SQLite", SQLITE_DURABLE)}
IN_PROCESS, OVER_HTTP = "in process", "over HTTP"


@dataclass(frozen=True)
class Load:
    """How much."""

    submit_jobs: int
    batch_jobs: int
    drain_jobs: int
    http_drain_jobs: int
    steady_s: int
    steady_first: int
    lag_s: dict  # how long at which rate
    idle_jobs: int
    waiting: tuple
    size_lag_s: int
    finished: int
    churn_jobs: int
    pinned_jobs: int
    burst_jobs: int
    fleet: int
    fleet_s: int
    tenants: int
    many_jobs: int
    run_tasks: int
    run_rounds: int
    deep_rounds: int
    large_tasks: int
    large_rounds: int
    beside_s: int
    worker_drain_jobs: int
    held_jobs: tuple
    watch_s: int
    parked_jobs: tuple
    unserved_jobs: int


FULL = Load(
    submit_jobs=100_000,
    batch_jobs=200_000,
    drain_jobs=100_000,
    http_drain_jobs=50_000,
    steady_s=3,
    steady_first=4_000,
    lag_s={100: 10, 1_000: 5, 5_000: 5},
    idle_jobs=200,
    waiting=(1_000_000, 10_000_000),
    size_lag_s=5,
    finished=10_000_000,
    churn_jobs=100_000,
    pinned_jobs=50_000,
    burst_jobs=100_000,
    fleet=1_000_000,
    fleet_s=20,
    tenants=50_000,
    many_jobs=100_000,
    run_tasks=1_000,
    run_rounds=15,
    deep_rounds=2,
    large_tasks=10_000,
    large_rounds=3,
    beside_s=6,
    worker_drain_jobs=100_000,
    held_jobs=(50_000, 100_000),
    watch_s=30,
    parked_jobs=(1_000, 10_000, 100_000, 1_000_000),
    unserved_jobs=1_000_000,
)
QUICK = Load(
    submit_jobs=2_000,
    batch_jobs=5_000,
    drain_jobs=5_000,
    http_drain_jobs=2_000,
    steady_s=1,
    steady_first=1_000,
    lag_s={100: 2, 1_000: 2},
    idle_jobs=20,
    waiting=(10_000, 100_000),
    size_lag_s=2,
    finished=50_000,
    churn_jobs=5_000,
    pinned_jobs=2_000,
    burst_jobs=5_000,
    fleet=20_000,
    fleet_s=5,
    tenants=2_000,
    many_jobs=5_000,
    run_tasks=200,
    run_rounds=3,
    deep_rounds=1,
    large_tasks=2_000,
    large_rounds=1,
    beside_s=2,
    worker_drain_jobs=5_000,
    held_jobs=(2_000,),
    watch_s=6,
    parked_jobs=(1_000, 10_000),
    unserved_jobs=20_000,
)


@dataclass
class Case:
    figure: str
    name: str
    metric: str  # the one number that is compared
    entrants: list
    stage: str = ""  # cases of one stage are repeated together; the stores that were filled for them are dropped behind them
    asks: bool = True
    runs: dict = field(default_factory=dict)  # what was seen, by entrant
    failures: dict = field(default_factory=dict)  # why a run failed, likewise
    skipped: dict = field(default_factory=dict)  # why somebody was not asked at all

    def seen_as(self, name, metric, entrants=None):
        """Another number of the same runs, for all entrants or for those that have it."""
        return dataclasses.replace(self, name=name, metric=metric, entrants=entrants or self.entrants, asks=False)


def ours(store, how, ask):
    return Entrant(f"Tickwheel, {how}" if how else "Tickwheel", OURS, STORES[store][1], ask)


def baseline(store, how, ask):
    """Ours without the burden that the case is about."""
    return Entrant(f"Tickwheel, {how}", BASELINE, STORES[store][1], ask)


def floor(name, durability, ask):
    return Entrant(name, FLOOR, durability, ask)
