"""Runs it: every entrant of a case once, then all again, beginning with another one each time, so that noise hits all alike."""

import itertools
import subprocess
import sys

from . import prepared
from .metrics import METRICS


def repeat(cases, repetitions):
    """Fills in the runs of the cases and answers how many of them failed."""
    failures = 0
    for _, stage in itertools.groupby(cases, key=lambda case: case.stage):
        try:
            failures += repeat_stage([case for case in stage if case.asks], repetitions)
        finally:
            prepared.drop_all()
    return failures


def repeat_stage(cases, repetitions):
    failures = 0
    for repetition in range(repetitions):
        for case in cases:
            for entrant in rotated(case.entrants, repetition):
                failures += not measure(case, entrant, f"{repetition + 1}/{repetitions}")
    return failures


def measure(case, entrant, turn):
    label = f"bench: {turn} {case.figure} {case.name}: {entrant.name}"
    try:
        seen = entrant.ask()
    except (subprocess.SubprocessError, OSError, ValueError, KeyError, IndexError) as error:
        said = (getattr(error, "stderr", None) or b"").decode(errors="replace")
        print(f"{label}: FAILED: {error}\n{said[-2000:]}", file=sys.stderr, flush=True)
        return False
    case.runs.setdefault(entrant.name, []).append(seen)
    print(f"{label}: {METRICS[case.metric].shown(seen[case.metric])}", file=sys.stderr, flush=True)
    return True


def rotated(entrants, by):
    by %= len(entrants)
    return entrants[by:] + entrants[:by]
