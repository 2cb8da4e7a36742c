"""Measures an old and a new build in turn, round by round, so that other load on the machine affects both alike.

Rounds are compared one by one: what counts is the ratio of new to old within a round, its median over all rounds, and
an interval that holds the true median with 95 % confidence (by the sign test, which asks nothing of the noise but that
it is the same for both).
"""

import json
import math
import shutil
import statistics
import subprocess
import sys
from dataclasses import dataclass, field

from . import cpu, report, tools
from .asking import OURS
from .metrics import METRICS, ratio, significant

OLD, NEW = "old", "new"
TOLERANCE = 0.05
CONFIDENCE = 0.95
# The others fill a store once, which cannot be shared by builds with different schemas.
COMPARABLE = ("B1", "B2", "B3", "B4", "B5", "B8", "B9", "B10", "B11", "B12", "B15")

NO_SLOWER, SLOWER, UNCLEAR = "no slower", "SLOWER", "cannot tell"
EXIT_CODES = {NO_SLOWER: 0, SLOWER: 1, UNCLEAR: 3}


@dataclass
class Comparison:
    """One measurement of both builds, and the pairs of results."""

    name: str
    metric: str
    ask: object
    pairs: list = field(default_factory=list)  # a dictionary by build for each round
    failed: int = 0


def compare(old, cases, rounds):
    """Measures ours in these cases, and returns whether the new build is slower anywhere."""
    builds = {OLD: tools.CACHE / "tickwheel-old", NEW: tools.CACHE / "tickwheel-new"}
    shutil.copy2(old, builds[OLD])
    shutil.copy2(tools.TICKWHEEL, builds[NEW])
    comparisons = [
        Comparison(f"{case.figure} {case.name}: {entrant.name}", case.metric, entrant.ask)
        for case in cases if case.asks for entrant in case.entrants if entrant.role == OURS
    ]
    for number in range(rounds):
        for comparison in comparisons:
            ask_both(comparison, builds, number, rounds)
    rows = [row for comparison in comparisons for row in rows_of(comparison)]
    print(report.aligned([["figure", "old", "new", "new : old", f"{CONFIDENCE:.0%} interval", "verdict"], *rows]))
    write(comparisons, rounds)
    return worst([row[-1] for row in rows])


def ask_both(comparison, builds, number, rounds):
    """Measures both builds, the other one first in every second round."""
    order = (OLD, NEW) if number % 2 == 0 else (NEW, OLD)
    pair = {}
    for build in order:
        tools.TICKWHEEL = builds[build]
        label = f"bench: {number + 1}/{rounds} {comparison.name}: {build}"
        try:
            pair[build] = seen = measured(comparison)
        except (subprocess.SubprocessError, OSError, ValueError, KeyError, IndexError) as error:
            said = (getattr(error, "stderr", None) or b"").decode(errors="replace")
            print(f"{label}: FAILED: {error}\n{said[-2000:]}", file=sys.stderr, flush=True)
            comparison.failed += 1
            return
        shown = METRICS[comparison.metric].shown(seen["value"])
        print(f"{label}: {shown}, {seen['cpu_s']:.2f} s of CPU", file=sys.stderr, flush=True)
    comparison.pairs.append(pair)


def measured(comparison):
    before = cpu.used_s()
    value = comparison.ask()[comparison.metric]
    return {"value": value, "cpu_s": cpu.used_s() - before}


def rows_of(comparison):
    """The measured figure, and the processor time of the whole measurement."""
    metric = METRICS[comparison.metric]
    yield row(comparison, comparison.name, "value", metric.better, metric.shown, metric.number)
    seconds = lambda value: significant(value, 3)
    yield row(comparison, f"{comparison.name}, CPU", "cpu_s", "less", lambda value: f"{seconds(value)} s", seconds)


def row(comparison, name, key, better, shown, number):
    failed = f", FAILED {comparison.failed}" if comparison.failed else ""
    if not comparison.pairs:
        return [name, "", "", "", "", UNCLEAR + failed]
    sides = {build: [pair[build][key] for pair in comparison.pairs] for build in (OLD, NEW)}
    cells = [f"{shown(statistics.median(all))} [{number(min(all))}–{number(max(all))}]" for all in sides.values()]
    ratios = [new / old for old, new in zip(sides[OLD], sides[NEW])]
    span = interval(ratios)
    shown_span = f"{ratio(span[0], 1)}–{ratio(span[1], 1)}" if span else "too few rounds"
    return [name, *cells, ratio(statistics.median(ratios), 1), shown_span, verdict(span, better) + failed]


def interval(ratios):
    """A confidence interval of the median, or nothing if there are too few rounds."""
    ordered, rounds, outside = sorted(ratios), len(ratios), 0.0
    left_out = -1
    # Each value at an end may be left out as long as the median is unlikely to be beyond those that are left.
    while (outside := outside + 2 * math.comb(rounds, left_out + 1) / 2**rounds) <= 1 - CONFIDENCE:
        left_out += 1
    return (ordered[left_out], ordered[-1 - left_out]) if left_out >= 0 else None


def verdict(span, better):
    if span is None:
        return UNCLEAR
    # As a slowdown, whatever the number is: 1.05 is five percent slower.
    least, most = span if better == "less" else (1 / span[1], 1 / span[0])
    if most <= 1 + TOLERANCE:
        return NO_SLOWER
    return SLOWER if least > 1 + TOLERANCE else UNCLEAR


def worst(verdicts):
    """The exit code for all verdicts. A failed run proves nothing."""
    if any(said.startswith(SLOWER) for said in verdicts):
        return EXIT_CODES[SLOWER]
    return EXIT_CODES[NO_SLOWER if all(said == NO_SLOWER for said in verdicts) else UNCLEAR]


def write(comparisons, rounds):
    """Writes all rounds, for a closer look."""
    seen = [{"name": one.name, "metric": one.metric, "failed": one.failed, "rounds": one.pairs} for one in comparisons]
    file = tools.CACHE / "against.json"
    file.write_text(json.dumps({"rounds": rounds, "comparisons": seen}, indent=1) + "\n")
    print(f"bench: all rounds are in {file.relative_to(tools.ROOT)}", file=sys.stderr)
