"""What came of it: a JSON file and a picture a figure, one table for people, and the same table in the README."""

import datetime
import json
import os
import platform
import re
import statistics
from pathlib import Path

from . import plot
from .asking import BASELINE, FLOOR, OURS, PEER
from .figures import NAMES, TITLES
from .metrics import METRICS

OPENING, CLOSING = "<!-- latest table -->", "<!-- end of latest table -->"


def write(name, cases, directory, repetitions):
    """Writes a figure, unless nothing of it could be measured: then the last one stays."""
    directory.mkdir(parents=True, exist_ok=True)
    own = [described(case) for case in cases if case.runs]
    if not own:
        return
    result = {
        "figure": name,
        "title": TITLES[name],
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%MZ"),
        "machine": machine(),
        "repetitions": repetitions,
        "cases": own,
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
        "entrants": [entry(case, entrant) for entrant in case.entrants if entrant.name in case.runs],
    }


def entry(case, entrant):
    runs = case.runs[entrant.name]
    values = [run[case.metric] for run in runs]
    return {
        "name": entrant.name,
        "role": entrant.role,
        "durability": entrant.durability,
        "settings": entrant.note,
        "min": rounded(min(values)),
        "median": rounded(statistics.median(values)),
        "max": rounded(max(values)),
        "runs": [{key: rounded(value) for key, value in run.items()} for run in runs],
    }


def rounded(value):
    return float(f"{value:.4g}")


def machine():
    cpu = re.search(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text())
    memory = re.search(r"MemTotal:\s*(\d+)", Path("/proc/meminfo").read_text())
    return {
        "cpu": cpu[1].strip() if cpu else platform.machine(),
        "cores": os.cpu_count(),
        "memory_gib": round(int(memory[1]) / 2**20) if memory else None,
        "kernel": re.match(r"\d+\.\d+", platform.release())[0],
    }


def table(results):
    """One row for every figure of ours: beside it the best peer and the best floor, or ours unburdened, of the same run."""
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
            entrants = sorted(case["entrants"], key=lambda one: one["median"], reverse=case["better"] == "more")
            rows += [full_row(result, case, entrant) for entrant in entrants]
    return aligned(rows)


def full_row(result, case, entrant):
    median, spread = shown(case, entrant).removesuffix("]").split(" [")
    return [f"{result['figure']} {case['name']}", entrant["name"], median, spread, entrant["durability"], entrant["settings"]]


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
        ratio(own, peer),
        f"{shown(case, floor)} {floor['name']}" if floor else "",
        ratio(own, floor),
    ]


def best(case, role):
    entrants = [entrant for entrant in case["entrants"] if entrant["role"] == role]
    pick = max if case["better"] == "more" else min
    return pick(entrants, key=lambda entrant: entrant["median"], default=None)


def shown(case, entrant):
    """The median, and in brackets the smallest and the largest."""
    metric = METRICS[case["metric"]]
    low, high = metric.number(entrant["min"]), metric.number(entrant["max"])
    return f"{metric.shown(entrant['median'])} [{low}–{high}]"


def ratio(own, other):
    return f"{own['median'] / other['median']:.2f}" if other else ""


def renew_readme(readme, directory):
    results = read(directory)
    pictures = [f"![{result['title']}](results/{result['figure']}.svg)" for result in results]
    words = [said_once(results), "", table(results), "", *pictures, "", "Everybody:", "", everybody(results)]
    text = readme.read_text()
    before, after = text.split(OPENING)[0], text.split(CLOSING)[1]
    readme.write_text(f"{before}{OPENING}\n" + "\n".join(words) + f"\n{CLOSING}{after}")


def said_once(results):
    machine = results[0]["machine"]
    dates = ", ".join(sorted({result["date"][:10] for result in results}))
    return (
        f"{dates}; {machine['cores']} cores of {machine['cpu']}, {machine['memory_gib']} GiB, Linux {machine['kernel']}. "
        f"Median of {results[0]['repetitions']} runs, smallest and largest in brackets."
    )
