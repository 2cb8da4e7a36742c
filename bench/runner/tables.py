"""The tables of docs/internals/performance.md that quote fleets of schedules (B9F) and workflows (B12)."""

from .lookup import Results, shown_ratio
from .provenance import shown_commit, shown_date

STORES = ("SQLite", "PostgreSQL")
NOT_MEASURED = "Not measured yet."


def fleets(results):
    found = Results(results)
    if "B9F" not in found.by_figure:
        return NOT_MEASURED
    own = lambda name: [found.ours("B9F", f"{name}, {store}", "in process").published() for store in STORES]
    spread = "a million hourly schedules, spread over the hour: start minus nominal time, p99"
    together = "a million on the same minute: start of the last"
    midnights = "midnight of 50,000 tenants in all time zones: start of the last"
    return table(found, "B9F", [
        (spread, own("1,000,000 schedules hourly, spread: start lag")),
        ("memory of the process", own("1,000,000 schedules spread: peak memory")),
        (together, own("1,000,000 schedules on the same minute: start of the last")),
        ("memory of the process", own("1,000,000 schedules together: peak memory")),
        (midnights, own("midnight of 50,000 tenants in all zones: start of the last")),
    ])


def workflows(results):
    found = Results(results)
    if "B12" not in found.by_figure:
        return NOT_MEASURED
    own = lambda name, how="in process": [found.ours("B12", f"{name}, {store}", how).published() for store in STORES]

    def beside(name):
        """Ours and its ratio to the baseline of the same case."""
        cells = []
        for store in STORES:
            case = f"{name}, {store}"
            number = found.ours("B12", case, "in process")
            cells.append(f"{number.published()}, **{shown_ratio(number.times(found.baseline('B12', case)))}**")
        return cells

    def both(first, second):
        return [f"{one}; {other}" for one, other in zip(first, second)]

    unburdened = lambda name: [found.baseline("B12", f"{name}, {store}").published() for store in STORES]
    wide, layered = "CPU a task, 1,000 tasks, 1 → 998 → 1", "CPU a task, 1,000 tasks, 10 layers of 100"
    lag = "start lag at 100/s beside runs of 10,000 tasks"
    reading = own("reading a run of 10,000 tasks from the store while it goes on")
    getting = own("GET of a run of 10,000 tasks", "over HTTP")
    return table(found, "B12", [
        ("a plain job beside 1 → 998 → 1, submitted and completed", unburdened(wide)),
        ("a task of 1 → 998 → 1 (2 dependencies per task)", beside(wide)),
        ("a task of 10 layers of 100 (9 dependencies per task)", beside(layered)),
        ("a task of 10 layers of 1,000", beside("CPU a task, 10,000 tasks, 10 layers of 1,000")),
        ("a link of a chain, beside one plain job after the other", beside("chain of 1,000 tasks")),
        ("a task of 10 layers of 100 that is given the result of another", beside(f"{layered}, with results of others")),
        ("until a run of 10,000 tasks is stored", own("start of a run of 10,000 tasks")),
        ("until such a run is read from the store while it goes on; over HTTP at rest", both(reading, getting)),
        ("start lag of plain jobs at 100/s beside such runs, p99; without", both(own(lag), unburdened(lag))),
    ])


def table(found, figure, rows):
    result = found.by_figure[figure]
    lines = [f"| {words} | {' | '.join(cells)} |" for words, cells in rows]
    source = f"{figure}, {shown_date(result)}, {shown_commit(result)}"
    return "\n".join([f"| {source} | {' | '.join(STORES)} |", "|---|---|---|", *lines])
