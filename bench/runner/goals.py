"""The project's goals compared with the results, for docs/internals/performance.md. Whether a goal is met is computed
here, never written by hand."""

from dataclasses import dataclass

from .asking import OURS
from .lookup import FAILED, Results, percent, shown_ratio
from .metrics import METRICS
from .provenance import marks, shown_commit, shown_date
from .report import was_measured

LARGE = "10,000,000 waiting"


@dataclass(frozen=True)
class Part:
    """One number that must reach a goal. Without a value, the measurement failed."""

    name: str
    value: float | None
    shown: str
    is_met: bool


def at_least(name, value, goal, shown):
    return Part(name, value, shown(value) if value is not None else FAILED, value is not None and value >= goal)


def under(name, value, goal, shown):
    return Part(name, value, shown(value) if value is not None else FAILED, value is not None and value < goal)


def block(results):
    found = Results(results)
    lines = ["| | goal | seen | | measured |", "|---|---|---|---|---|"]
    for figure, words, goal, parts in GOALS:
        if figure not in found.by_figure:
            continue
        parts, result = parts(found), found.by_figure[figure]
        if not parts:  # results from before this was measured
            continue
        seen = ", ".join(f"{part.name} {part.shown}" for part in parts)
        measured = f"{shown_date(result)}, {shown_commit(result)}"
        lines.append(f"| {figure} {words} | {goal} | {seen} | {verdict(parts)} | {measured} |")
    return "\n".join([*lines, *("\n" + mark for mark in marks(results))])


def verdict(parts):
    missed = [part.name for part in parts if not part.is_met]
    if not missed:
        return "met"
    return "**not met**" if len(missed) == len(parts) else f"met, but **not met**: {', '.join(missed)}"


def number(metric):
    return METRICS[metric].published


def one_by_one(found):
    name = "one job a request, 64 in flight"
    goals = {"SQLite": 10_000, "PostgreSQL": 6_000}
    return [at_least(store, found.ours("B1", f"{name}, {store}").value, goal, rate) for store, goal in goals.items()]


def in_batches(found):
    return [share_of_floor(found, "B1", f"batches of 500, 4 in flight, {store}", "", store, 0.6) for store in STORES]


def share_of_floor(found, figure, name, how, label, goal):
    share = found.ours(figure, name, how).times(found.floor(figure, name))
    return at_least(label, share, goal, percent)


def drain_sqlite(found):
    return [share_of_floor(found, "B2", "drain, SQLite", "in process", "SQLite", 0.5)]


def drain_postgres(found):
    own, peer = found.ours("B2", "drain, PostgreSQL", "in process"), found.best_peer("B2", "drain, PostgreSQL")
    name = peer.entrant["name"].split()[0] if peer else "nobody"
    return [at_least(f"PostgreSQL against {name}:", own.times(peer), 1.5, shown_ratio)]


def steady(found):
    own = found.ours("B3", "steady rate with p99 start lag under 100 ms, PostgreSQL", "in process")
    spread = own.steadiness if own.is_known else None
    return [at_least("rate", own.value, 20_000, rate), at_most("largest : smallest", spread, 1.3)]


def at_most(name, value, goal):
    return Part(name, value, shown_ratio(value), value is not None and value <= goal)


def punctual(found):
    """The worst of ours: both stores, inside the process and over HTTP."""
    p99 = number("p99")
    return [under(f"{hz}/s", worst(found, "B4", f"start lag at {hz}/s"), ms, p99) for hz, ms in PUNCTUAL_MS.items()]


def worst(found, figure, name):
    """The worst of ours in a case that measures time, or nothing if one of them failed. Workers have goals of their own."""
    own = [one for one in found.case(figure, name)["entrants"] if one["role"] == OURS and "worker" not in one["name"]]
    return max(one["median"] for one in own) if own and all(map(was_measured, own)) else None


def idle(found):
    name = "submit to start, one at a time"
    return [under("the slowest of ours", worst(found, "B5", name), 2, number("p50"))]


def worker_drain(found):
    case = "drain, PostgreSQL"
    if not found.has_ours("B2", case, RUST):
        return []
    against = lambda language, peer: found.ours("B2", case, language).times(found.peer("B2", case, peer))
    return [
        at_least("Rust", found.ours("B2", case, RUST).value, 25_000, rate),
        at_least("Python against Celery:", against("Python worker", "celery"), 5, shown_ratio),
        at_least("TypeScript against BullMQ:", against("TypeScript worker", "bullmq"), 1, shown_ratio),
    ]


def worker_lag(found):
    case = "start lag at 1000/s"
    if not found.has_ours("B4", case, f"PostgreSQL, {RUST}"):
        return []
    return [under(store, found.ours("B4", case, f"{store}, {RUST}").value, 5, number("p99")) for store in STORES]


def many_running(found):
    parts = []
    for store in STORES:
        for jobs in HELD:
            name = f"memory of the server per running job, {jobs} of them, {store}"
            own = found.ours("B10", name, f"{jobs} held")
            parts.append(under(f"{store} {jobs}", own.value, 1024, number("job_bytes")))
    return parts


def size(found):
    parts = []
    for store in STORES:
        drain, lag = f"drain, {store}", f"start lag at 1000/s, {store}"
        drained = found.ours("B6", drain, LARGE).times(found.baseline("B6", drain))
        late = found.ours("B6", lag, LARGE).times(found.baseline("B6", lag))
        memory = found.ours("B6", f"peak memory of the server after a drain, {store}", LARGE)
        start = found.ours("B6", f"process start to start of a due job, {store}", LARGE)
        parts += [
            at_least(f"{store} drain", drained, 0.9, shown_ratio),
            at_most(f"{store} lag", late, 1.1),
            under(f"{store} memory", memory.value, 300, number("peak_mib")),
            under(f"{store} first start", start.value, 3, number("first_start_s")),
        ]
    return parts


def history(found):
    parts = []
    for store in STORES:
        name = f"drain with a history, {store}"
        kept = found.ours("B7", name, "10,000,000 finished").times(found.baseline("B7", name))
        parts.append(at_least(store, kept, 0.9, shown_ratio))
    return parts


def pinned(found):
    return [at_least("kept", found.ours("B8", "the part of the speed that is kept, PostgreSQL").value, 0.8, percent)]


def timers(found):
    cron = found.ours("B9", "next firing of everyday cron expressions, one thread").value
    last = worst(found, "B9", "start of the last of 100,000 jobs due in the same second")
    return [at_least("firings/s", cron, 1e6, rate), under("the slowest of ours", last, 5000, number("max"))]


def workflows(found):
    parts = []
    for store in STORES:
        for shape, name, goal in SHAPES:
            case = f"{name}, {store}"
            times = found.ours("B12", case, "in process").times(found.baseline("B12", case))
            parts.append(at_most(f"{store} {shape}", times, EXCEPTIONS.get((store, shape), goal)))
    return parts


STORES = ("SQLite", "PostgreSQL")
RUST = "Rust worker"
HELD = ("50,000", "100,000")
PUNCTUAL_MS = {100: 4, 1000: 10, 5000: 50}
SHAPES = (
    ("wide", "CPU a task, 1,000 tasks, 1 → 998 → 1", 1.5),
    ("deep", "chain of 1,000 tasks", 1.5),
    ("layered", "CPU a task, 1,000 tasks, 10 layers of 100", 1.5),
)
EXCEPTIONS = {("PostgreSQL", "layered"): 2.0}
rate = number("per_s")
GOALS = (
    ("B1", "one job per request", "10,000/s on SQLite, 6,000/s on PostgreSQL", one_by_one),
    ("B1", "batches of 500", "60 % of a raw insert", in_batches),
    ("B2", "drain, SQLite", "half of raw SQL", drain_sqlite),
    ("B2", "drain, PostgreSQL", "1.5 times the best peer", drain_postgres),
    (
        "B2", "drain through a worker, PostgreSQL",
        "Rust 25,000/s, Python 5 times Celery, TypeScript as fast as the faster BullMQ", worker_drain,
    ),
    ("B3", "steady rate, PostgreSQL", "20,000/s, the largest run at most 1.3 times the smallest", steady),
    ("B4", "start lag, p99, worst of ours", "under 4, 10 and 50 ms at 100, 1,000 and 5,000/s", punctual),
    ("B4", "start lag at 1,000/s through a Rust worker, p99", "under 5 ms", worker_lag),
    ("B5", "idle latency, p50", "under 2 ms", idle),
    ("B6", "10 million waiting", "within 10 % of empty, under 300 MiB, under 3 s", size),
    ("B7", "10 million finished", "within 10 % of empty", history),
    ("B8", "pinned vacuum", "80 % of the speed kept", pinned),
    ("B9", "cron and timers", "1 million next firings/s; 100,000 timers within 5 s", timers),
    ("B10", "memory of the server per running job", "under 1 KiB", many_running),
    (
        "B12", "workflows",
        "at most 1.5 times a plain job (CPU; for deep runs the time per link), layered on PostgreSQL 2.0", workflows,
    ),
)
