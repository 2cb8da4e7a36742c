"""The figures: what is measured, for which entrants, with which load."""

from . import floors, held, parked, peers, pinned, workers
from .asking import PG_DURABLE, SQLITE_DURABLE, run
from .cases import IN_PROCESS, OVER_HTTP, STORES, Case, baseline, floor, ours
from .ours import (
    engine_beside,
    engine_burst,
    engine_cron,
    engine_drain,
    engine_few,
    engine_idle,
    engine_lag,
    engine_last,
    engine_schedules,
    engine_steady,
    engine_workflow,
    http_burst,
    http_drain,
    http_idle,
    http_lag,
    http_steady,
    http_submit,
)
from .prepared import fill_arguments, filled
from .reading import read_run
from .restart import restart
from .servers import fresh
from .tools import LOAD

SIZE_RATE = 1_000
BESIDE_RATE = 100


def submission(load):
    """B1: how fast jobs are durably accepted over HTTP."""
    for store, (name, _) in STORES.items():
        yield Case("B1", f"one job a request, 64 in flight, {name}", "per_s", [
            ours(store, "", http_submit(fresh(store), 64, 1, load.submit_jobs)),
            floor("the load generator against nothing", "none", floors.generator(64, 1, load.submit_jobs)),
        ])
        entrants = [
            ours(store, "", http_submit(fresh(store), 4, 500, load.batch_jobs)),
            *raw_sql(store, load.batch_jobs, "insert_per_s"),
        ]
        if store == "postgres":
            entrants += [peer.asked("submit", load.submit_jobs // peer.part) for peer in peers.ALL]
        yield Case("B1", f"batches of 500, 4 in flight, {name}", "per_s", entrants)


def drain(load):
    """B2: how fast waiting jobs are executed."""
    for store, (name, _) in STORES.items():
        entrants = [
            ours(store, IN_PROCESS, engine_drain(fresh(store), load.drain_jobs)),
            ours(store, OVER_HTTP, http_drain(fresh(store), load.http_drain_jobs)),
            *worker_drains(store, load),
            *raw_sql(store, load.drain_jobs, "drain_per_s"),
        ]
        if store == "postgres":
            entrants += [peer.asked("drain", load.drain_jobs // peer.part) for peer in peers.ALL]
        yield Case("B2", f"drain, {name}", "per_s", entrants)


def worker_drains(store, load):
    """The worker in Python gets fewer jobs, as the slow peers do."""
    for language in (workers.RUST, workers.PYTHON, workers.PYTHON_THREADS, workers.TYPESCRIPT):
        jobs = load.worker_drain_jobs // language.part
        yield workers.entrant(store, language, "", workers.drain(fresh(store), language, jobs))


def raw_sql(store, jobs, which):
    if store == "sqlite":
        return [floor("raw SQL, one connection", SQLITE_DURABLE, floors.sqlite(jobs, which))]
    return [
        floor("raw SQL, one connection", PG_DURABLE, floors.postgres(1, jobs, which)),
        floor("raw SQL, two connections", PG_DURABLE, floors.postgres(2, jobs, which)),
    ]


def end_to_end(load):
    """B3: the highest rate of jobs, submitted one by one and due at once, that still start in time."""
    for store, (name, _) in STORES.items():
        yield Case("B3", f"steady rate with p99 start lag under 100 ms, {name}", "per_s", [
            ours(store, IN_PROCESS, engine_steady(fresh(store), load.steady_first, load.steady_s)),
            ours(store, OVER_HTTP, http_steady(fresh(store), load.steady_first, load.steady_s)),
        ])


def punctuality(load):
    """B4: how long after their time jobs start."""
    rivals = {100: peers.PUNCTUAL_AT_100, 1_000: peers.PUNCTUAL_AT_1000}
    for rate, seconds in load.lag_s.items():
        entrants = []
        for store, (name, _) in STORES.items():
            entrants.append(ours(store, f"{name}, {IN_PROCESS}", engine_lag(fresh(store), rate, seconds)))
            entrants.append(ours(store, f"{name}, {OVER_HTTP}", http_lag(fresh(store), rate, seconds)))
            entrants += [
                workers.entrant(store, one, f"{name}, {one.name}", workers.lag(fresh(store), one, rate, seconds))
                for one in workers.LANGUAGES if rate <= one.rate_max
            ]
        entrants += [peer.asked("lag", rate, seconds) for peer in rivals.get(rate, ())]
        yield Case("B4", f"start lag at {rate}/s", "p99", entrants)


def latency(load):
    """B5: how long a single job takes on an idle system."""
    to_start = []
    for store, (name, _) in STORES.items():
        to_start.append(ours(store, f"{name}, {IN_PROCESS}", engine_idle(fresh(store), load.idle_jobs, "to_start_ms")))
        to_start.append(ours(store, f"{name}, {OVER_HTTP}", http_idle(fresh(store), load.idle_jobs)))
        to_start += worker_latencies(store, load, "start")
    fsync = floor("4 KiB written and synced", "fdatasync", floors.fsync(load.idle_jobs))
    rivals = [peer.asked("idle", load.idle_jobs) for peer in peers.ALL]
    yield Case("B5", "submit to start, one at a time", "p50", [*to_start, fsync, *rivals])
    yield Case("B5", "submit to completed, one at a time", "p50", [
        ours(store, f"{name}, {IN_PROCESS}", engine_idle(fresh(store), load.idle_jobs, "to_completed_ms"))
        for store, (name, _) in STORES.items()
    ] + [one for store in STORES for one in worker_latencies(store, load, "completed")] + [fsync])


def worker_latencies(store, load, until):
    for one in workers.LANGUAGES:
        ask = workers.idle(fresh(store), one, load.idle_jobs, until)
        yield workers.entrant(store, one, f"{STORES[store][0]}, {one.name}", ask)


def size(load):
    """B6: what millions of jobs for later days cost the jobs of today, and a server that starts."""
    work = lambda address: run(LOAD, "drain", address, load.http_drain_jobs)
    for store, (name, _) in STORES.items():
        stage = f"B6 {store}"
        questions = {
            "drain": ("per_s", lambda on: engine_drain(on, load.drain_jobs)),
            f"start lag at {SIZE_RATE}/s": ("p99", lambda on: engine_lag(on, SIZE_RATE, load.size_lag_s)),
            "process start to start of a due job": ("first_start_s", lambda on: restart(on, work)),
        }
        for question, (metric, ask) in questions.items():
            entrants = [ours(store, f"{jobs:,} waiting", ask(filled(store, waiting=jobs))) for jobs in load.waiting]
            entrants.append(baseline(store, "nothing waiting", ask(fresh(store))))
            yield (case := Case("B6", f"{question}, {name}", metric, entrants, stage))
        yield case.seen_as(f"peak memory of the server after a drain, {name}", "peak_mib")


def history(load):
    """B7: what millions of finished jobs cost the jobs of today."""
    for store, (name, _) in STORES.items():
        past = filled(store, finished=load.finished)
        yield Case("B7", f"drain with a history, {name}", "per_s", [
            ours(store, f"{load.finished:,} finished", engine_drain(past, load.drain_jobs)),
            baseline(store, "nothing finished", engine_drain(fresh(store), load.drain_jobs)),
        ], stage=f"B7 {store}")


def pinned_vacuum(load):
    """B8: the cost of dead rows that cannot be removed."""
    ask = lambda drain: pinned.with_and_without(drain, load.churn_jobs, load.pinned_jobs)
    entrants = [ours("postgres", "", ask(pinned.ours_drain))]
    entrants += [peer.entrant(ask(pinned.peer_drain(peer))) for peer in (peers.GRAPHILE_WORKER, peers.PG_BOSS)]
    beside = Case("B8", "drain beside an open snapshot, PostgreSQL", "per_s", entrants)
    yield beside
    yield beside.seen_as("drain without one, PostgreSQL", "unpinned_per_s")
    yield beside.seen_as("the part of the speed that is kept, PostgreSQL", "kept")


def timers(load):
    """B9: next firings of cron expressions, and many jobs due in the same second."""
    yield Case("B9", "next firing of everyday cron expressions, one thread", "per_s", [
        ours("sqlite", "", engine_cron(fresh("sqlite"))),
    ])
    entrants = []
    for store, (name, _) in STORES.items():
        entrants.append(ours(store, f"{name}, {IN_PROCESS}", engine_burst(fresh(store), load.burst_jobs)))
        entrants.append(ours(store, f"{name}, {OVER_HTTP}", http_burst(fresh(store), load.burst_jobs)))
    yield Case("B9", f"start of the last of {load.burst_jobs:,} jobs due in the same second", "max", entrants)


def fleets(load):
    """B9F: the firings of very many schedules, by an engine that starts five seconds before them."""
    for store, (name, _) in STORES.items():
        for pattern, seconds, metric, words in (
            ("spread", load.fleet_s, "p99", "hourly, spread: start lag"),
            ("together", 1, "max", "on the same minute: start of the last"),
        ):
            on = filled(store, schedules=load.fleet, pattern=pattern)
            case = Case("B9F", f"{load.fleet:,} schedules {words}, {name}", metric, [
                ours(store, IN_PROCESS, engine_schedules(on, seconds)),
            ], stage=f"B9F {store} {pattern}")
            yield case
            yield case.seen_as(f"{load.fleet:,} schedules {pattern}: peak memory, {name}", "peak_mib")
            if store == "postgres":
                yield case.seen_as(f"{load.fleet:,} schedules {pattern}: rows written, {name}", "rows_per_firing")
        fill = fill_arguments(schedules=load.tenants, pattern="midnights")
        yield Case("B9F", f"midnight of {load.tenants:,} tenants in all zones: start of the last, {name}", "max", [
            ours(store, IN_PROCESS, engine_schedules(fresh(store), 1, *fill)),
        ])


def many_running(load):
    """B10: what jobs cost that workers hold, and what the others feel of them."""
    for store, (name, _) in STORES.items():
        for jobs in load.held_jobs:
            beside, alone = held.held(fresh(store), jobs, BESIDE_RATE, load.beside_s, load.watch_s)
            own, without = ours(store, f"{jobs:,} held", beside), baseline(store, "nothing held", alone)
            case = Case("B10", f"start lag at {BESIDE_RATE}/s beside {jobs:,} running jobs, {name}", "p99", [own, without])
            yield case
            yield case.seen_as(f"memory of the server per running job, {jobs:,} of them, {name}", "job_bytes", [own])
            yield case.seen_as(f"CPU of server and database while {jobs:,} jobs run, {name}", "cpu_part")


def unserved(load):
    """B15: ten jobs that a worker waits for, beside very many that nobody serves."""
    fewest, *more = load.parked_jobs
    yield Case("B15", "taking a job beside parked ones, without a store", "take_us", [
        *(ours("sqlite", f"{jobs:,} parked", parked.machine(jobs)) for jobs in more),
        baseline("sqlite", f"{fewest:,} parked", parked.machine(fewest)),
    ])
    for store, (name, _) in STORES.items():
        beside, alone = parked.beside(fresh(store), load.unserved_jobs)
        own = ours(store, f"{load.unserved_jobs:,} unserved", beside)
        case = Case("B15", f"start of the last of ten jobs, {name}", "max", [own, baseline(store, "no others", alone)])
        yield case
        yield case.seen_as(f"memory of the server, {name}", "resident_mib")
        yield case.seen_as(f"CPU of server and database at rest, {name}", "cpu_part")


def fairness(load):
    """B11: how long ten jobs of one tenant wait when many of another are due before them."""
    for store, (name, _) in STORES.items():
        last = Case("B11", f"wait of the last of 10 jobs behind {load.many_jobs:,} of another tenant, {name}", "max", [
            ours(store, IN_PROCESS, engine_few(fresh(store), load.many_jobs)),
            baseline(store, "if the others went first", engine_last(fresh(store), load.many_jobs)),
        ])
        yield last
        yield last.seen_as(f"wait of the 10, {name}", "p50")


def workflows(load):
    """B12: the cost of dependencies between tasks, compared with as many plain jobs in the same process."""
    small, large = load.run_tasks, load.large_tasks
    for store, (name, _) in STORES.items():
        for shape, tasks, rounds, words in (
            ("wide", small, load.run_rounds, f"1 → {small - 2:,} → 1"),
            ("layered", small, load.run_rounds, f"10 layers of {small // 10:,}"),
            ("data", small, load.run_rounds, f"10 layers of {small // 10:,}, with results of others"),
            ("layered", large, load.large_rounds, f"10 layers of {large // 10:,}"),
        ):
            own = run_and_jobs(store, shape, tasks, rounds, "as plain jobs")
            rivals = peers.FLOWING if (store, shape) == ("postgres", "wide") else ()
            case = Case("B12", f"run of {tasks:,} tasks, {words}, {name}", "per_s", [
                *own, *(peer.asked("flow", tasks, rounds) for peer in rivals),
            ])
            yield case
            yield case.seen_as(f"CPU a task, {tasks:,} tasks, {words}, {name}", "cpu_us", own)
        yield Case("B12", f"chain of {small:,} tasks, {name}", "link_ms", [
            *run_and_jobs(store, "deep", small, load.deep_rounds, "one plain job after the other"),
        ])
        beside, alone = engine_beside(fresh(store), large, BESIDE_RATE, load.beside_s)
        own = ours(store, IN_PROCESS, beside)
        lag = Case("B12", f"start lag at {BESIDE_RATE}/s beside runs of {large:,} tasks, {name}", "p99", [
            own, baseline(store, "no run beside", alone),
        ])
        yield lag
        yield lag.seen_as(f"start of a run of {large:,} tasks, {name}", "start_ms", [own])
        yield lag.seen_as(f"reading a run of {large:,} tasks from the store while it goes on, {name}", "read_ms", [own])
        yield Case("B12", f"GET of a run of {large:,} tasks, {name}", "read_ms", [
            ours(store, OVER_HTTP, read_run(fresh(store), large)),
        ])


def run_and_jobs(store, shape, tasks, rounds, plain):
    run, jobs = engine_workflow(fresh(store), shape, tasks, rounds)
    return [ours(store, IN_PROCESS, run), baseline(store, plain, jobs)]


FIGURES = {
    "B1": submission,
    "B2": drain,
    "B3": end_to_end,
    "B4": punctuality,
    "B5": latency,
    "B6": size,
    "B7": history,
    "B8": pinned_vacuum,
    "B9": timers,
    "B9F": fleets,
    "B10": many_running,
    "B11": fairness,
    "B12": workflows,
    "B15": unserved,
}
NAMES = tuple(FIGURES)
# Filling stores with millions of schedules takes a quarter of an hour: only who asks for it gets it.
USUAL = tuple(name for name in NAMES if name != "B9F")
TITLES = {
    "B1": "Submission rate over HTTP, jobs/s",
    "B2": "Drain rate, jobs/s",
    "B3": "End to end: highest steady rate with p99 start lag under 100 ms, jobs/s",
    "B4": "Start minus scheduled time, p99, ms",
    "B5": "Idle latency, p50, ms",
    "B6": "With millions of jobs waiting for days to come",
    "B7": "With millions of finished jobs, drain rate, jobs/s",
    "B8": "While a snapshot keeps PostgreSQL from removing dead rows",
    "B9": "Many jobs due in the same second, start of the last, ms",
    "B9F": "Very many schedules",
    "B10": "Many jobs held running by workers",
    "B11": "Ten jobs beside many of another tenant, wait in ms",
    "B12": "Workflows: tasks that wait for each other, beside plain jobs",
    "B15": "Ten jobs beside very many that no worker serves",
}


def cases_of(name, load):
    return list(FIGURES[name](load))
