"""The results: a JSON file and a picture for each figure, and the long tables. `pages` writes the pages."""

import datetime
import json
import statistics

from . import plot, provenance
from .asking import BASELINE, FLOOR, OURS, PEER
from .figures import NAMES, TITLES
from .metrics import METRICS, ratio


def write(name, cases, directory, repetitions, commit):
    """Writes a figure. If nothing of it could be measured, the last one stays."""
    directory.mkdir(parents=True, exist_ok=True)
    if not any(case.runs for case in cases):
        return
    result = {
        "figure": name,
        "title": TITLES[name],
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%MZ"),
        "commit": commit,
        "method": provenance.METHOD,
        "machine": provenance.machine(),
        "versions": provenance.versions(cases),
        "repetitions": repetitions,
        "cases": [described(case) for case in cases],
    }
    (directory / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
    (directory / f"{name}.svg").write_text(plot.picture(result))


def read(directory, names=NAMES):
    files = [directory / f"{name}.json" for name in NAMES if name in names]
    return [json.loads(file.read_text()) for file in files if file.exists()]


def described(case):
    return {
        "name": case.name,
        "metric": case.metric,
        "better": METRICS[case.metric].better,
        "entrants": [entry(case, entrant) for entrant in case.entrants],
    }


def entry(case, entrant):
    """The results of an entrant. One that failed every time, or did not take part, has no numbers and a reason."""
    runs = case.runs.get(entrant.name, [])
    values = [run[case.metric] for run in runs]
    numbers = dict.fromkeys(("min", "median", "max"))
    if values:
        numbers = {"min": min(values), "median": statistics.median(values), "max": max(values)}
        numbers = {key: rounded(value) for key, value in numbers.items()}
    return {
        "name": entrant.name,
        "role": entrant.role,
        "durability": entrant.durability,
        "settings": entrant.note,
        **numbers,
        "runs": [{key: rounded(value) for key, value in run.items()} for run in runs],
        "failed": case.failures.get(entrant.name, []),
        "skipped": case.skipped.get(entrant.name, ""),
    }


def rounded(value):
    return float(f"{value:.4g}")


def table(results):
    """One row for every figure of ours, with the best peer and the best floor, or our baseline, of the same run."""
    rows = [["figure", "ours", "best peer", "ours : peer", "floor or baseline", "ours : that"]]
    for result in results:
        for case in result["cases"]:
            rows += [row(result, case, own) for own in case["entrants"] if own["role"] == OURS]
    return aligned(rows)


def everybody(results):
    """One row for every entrant of every case, the best first, with its durability and its settings."""
    rows = [["figure", "who", "median", "smallest–largest", "durability", "settings"]]
    for result in results:
        for case in result["cases"]:
            rows += [full_row(result, case, entrant) for entrant in best_first(case) + without_numbers(case)]
    return aligned(rows)


def full_row(result, case, entrant):
    metric = METRICS[case["metric"]]
    median = metric.shown(entrant["median"]) if was_measured(entrant) else why_no_number(entrant)
    spread = f"{metric.number(entrant['min'])}–{metric.number(entrant['max'])}" if was_measured(entrant) else ""
    spread += some_failed(entrant)
    figure = f"{result['figure']} {case['name']}"
    return [figure, entrant["name"], median, spread, entrant["durability"], entrant["settings"]]


def aligned(rows):
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]])


def row(result, case, own):
    peer, floor = best(case, PEER), best(case, FLOOR) or best(case, BASELINE)
    how = own["name"].removeprefix("Tickwheel").removeprefix(", ")
    return [
        f"{result['figure']} {case['name']}" + (f" ({how})" if how else ""),
        shown(case, own),
        f"{shown(case, peer)} {peer['name']}" if peer else "",
        ratio_of(own, peer),
        f"{shown(case, floor)} {floor['name']}" if floor else "",
        ratio_of(own, floor),
    ]


def best(case, role):
    return next((entrant for entrant in best_first(case) if entrant["role"] == role), None)


def best_first(case):
    """The entrants that have numbers."""
    entrants = [entrant for entrant in case["entrants"] if was_measured(entrant)]
    return sorted(entrants, key=lambda one: one["median"], reverse=case["better"] == "more")


def without_numbers(case):
    return [entrant for entrant in case["entrants"] if not was_measured(entrant)]


def was_measured(entrant):
    return entrant["median"] is not None


def why_no_number(entrant):
    if entrant.get("skipped"):
        return f"not run: {entrant['skipped']}"
    failed = entrant.get("failed", [])
    return f"FAILED {len(failed)} of {len(failed)}: {failed[0]}" if failed else "FAILED"


def some_failed(entrant):
    failed, runs = len(entrant.get("failed", [])), len(entrant["runs"])
    return f", FAILED {failed} of {failed + runs}" if failed and runs else ""


def shown(case, entrant):
    """The median, and in brackets the smallest and the largest."""
    if not was_measured(entrant):
        return why_no_number(entrant)
    metric = METRICS[case["metric"]]
    low, high = metric.number(entrant["min"]), metric.number(entrant["max"])
    return f"{metric.shown(entrant['median'])} [{low}–{high}]{some_failed(entrant)}"


def ratio_of(own, other):
    return ratio(own["median"], other["median"]) if other and was_measured(own) else ""
