"""The short table of the project's README: which results it quotes, and how."""

from . import provenance
from .lookup import SPELLINGS, Results, shown_ratio

PEERS_MAX = 5
# A word that a reader needs to take the number for what it is.
REMARKS = {
    ("B4", "celery"): "timers in memory",
    ("B1", "apalis"): "bulk insert without HTTP",
}
STORES = ("SQLite", "PostgreSQL")
LARGE = "10,000,000 waiting"
BURDEN = "wait of the last of 10 jobs behind 100,000 of another tenant"


def block(results):
    found = Results(results)
    known = [row for row in ROWS if row[1] in found.by_figure]
    rows = [[words, *quoted(found), measured(found, figure)] for words, figure, quoted in known]
    heading = ["", *(f"Tickwheel, {store}" for store in STORES), "for comparison", "measured"]
    lines = [f"| {' | '.join(cells)} |".replace("|  |", "| |") for cells in (heading, *rows)]
    lines.insert(1, "|" + "---|" * len(heading))
    shown = {figure for _, figure, _ in ROWS}
    sources = [result for result in results if result["figure"] in shown]
    notes = provenance.marks(sources) + provenance.older_methods(sources)
    return "\n".join([*lines, *("\n" + note for note in notes)])


def measured(found, figure):
    result = found.by_figure[figure]
    return f"{figure}, {provenance.shown_date(result)}, {provenance.shown_commit(result)}"


def both(numbers):
    return [number.published() for number in numbers]


def drain(found):
    own = [found.ours("B2", f"drain, {store}", "in process") for store in STORES]
    name = f"drain, {STORES[1]}"
    times = shown_ratio(own[1].times(found.best_peer("B2", name)))
    return [*both(own), f"on PostgreSQL {times} times the best peer: {peers(found, 'B2', name)}"]


def drain_over_http(found):
    return [*both(found.ours("B2", f"drain, {store}", "over HTTP") for store in STORES), ""]


def drain_beside_many(found):
    alone = both(found.baseline("B6", f"drain, {store}") for store in STORES)
    return [*both(found.ours("B6", f"drain, {store}", LARGE) for store in STORES), " and ".join(alone) + " beside none"]


def memory(found):
    name = "peak memory of the server after a drain"
    return [*both(found.ours("B6", f"{name}, {store}", LARGE) for store in STORES), ""]


def fairness(found):
    first = both(found.baseline("B11", f"{BURDEN}, {store}") for store in STORES)
    own = both(found.ours("B11", f"{BURDEN}, {store}", "in process") for store in STORES)
    return [*own, " and ".join(first) + " if the others went first"]


def lag(rate):
    def quoted(found):
        name = f"start lag at {rate}/s"
        own = both(found.ours("B4", name, f"{store}, in process") for store in STORES)
        return [*own, peers(found, "B4", name)]

    return quoted


def schedules(found):
    name = "1,000,000 schedules on the same minute: start of the last"
    return [*both(found.ours("B9F", f"{name}, {store}", "in process") for store in STORES), ""]


def idle(found):
    name = "submit to start, one at a time"
    return [*both(found.ours("B5", name, f"{store}, in process") for store in STORES), peers(found, "B5", name)]


def one_by_one(found):
    return [*both(found.ours("B1", f"one job a request, 64 in flight, {store}") for store in STORES), ""]


def in_batches(found):
    name = "batches of 500, 4 in flight"
    own = both(found.ours("B1", f"{name}, {store}") for store in STORES)
    return [*own, peers(found, "B1", f"{name}, {STORES[1]}", 2)]


def peers(found, figure, name, at_most=PEERS_MAX):
    words = []
    for peer, number in found.peers(figure, name, at_most).items():
        remark = REMARKS.get((figure, peer))
        words.append(f"{SPELLINGS.get(peer, peer)} {number}" + (f" ({remark})" if remark else ""))
    return ", ".join(words)


ROWS = (
    ("jobs drained per second, handlers inside the process", "B2", drain),
    ("the same with every job called over HTTP", "B2", drain_over_http),
    ("the same beside 10 million waiting jobs, inside the process", "B6", drain_beside_many),
    ("memory of the server with 10 million waiting jobs", "B6", memory),
    ("the wait of ten jobs behind 100,000 of another tenant", "B11", fairness),
    ("start after its time, p99, at 100 jobs per second", "B4", lag(100)),
    ("start after its time, p99, at 5,000 jobs per second", "B4", lag(5000)),
    ("start of the last of a million schedules on the same minute", "B9F", schedules),
    ("from submission to start on an idle machine, p50", "B5", idle),
    ("submissions per second, one per HTTP request", "B1", one_by_one),
    ("submissions per second in batches of 500", "B1", in_batches),
)
