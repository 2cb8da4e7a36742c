"""Runs every entrant of a case once, then all again, beginning with another one each time, so that noise affects all alike."""

import itertools
import subprocess
import sys

from . import prepared
from .metrics import METRICS


def repeat(cases, repetitions, missing):
    """Fills in the runs of the cases and returns how many failed. `missing` says which entrants cannot take part, and why."""
    failures = 0
    for _, stage in itertools.groupby(cases, key=lambda case: case.stage):
        try:
            failures += repeat_stage([case for case in stage if case.asks], repetitions, missing)
        finally:
            prepared.drop_all()
    return failures


def repeat_stage(cases, repetitions, missing):
    failures = 0
    for case in cases:
        case.skipped.update({one.name: missing[one.needs] for one in case.entrants if one.needs in missing})
    for repetition in range(repetitions):
        for case in cases:
            for entrant in rotated([one for one in case.entrants if one.name not in case.skipped], repetition):
                failures += not measure(case, entrant, f"{repetition + 1}/{repetitions}")
    return failures


def measure(case, entrant, turn):
    label = f"bench: {turn} {case.figure} {case.name}: {entrant.name}"
    try:
        seen = entrant.ask()
    except (subprocess.SubprocessError, OSError, ValueError, KeyError, IndexError) as error:
        said = (getattr(error, "stderr", None) or b"").decode(errors="replace")
        print(f"{label}: FAILED: {error}\n{said[-2000:]}", file=sys.stderr, flush=True)
        case.failures.setdefault(entrant.name, []).append(in_short(error))
        return False
    case.runs.setdefault(entrant.name, []).append(seen)
    print(f"{label}: {METRICS[case.metric].shown(seen[case.metric])}", file=sys.stderr, flush=True)
    return True


def in_short(error):
    """One line without the paths of this machine."""
    if isinstance(error, subprocess.CalledProcessError):
        return f"ended with {error.returncode}"
    if isinstance(error, subprocess.TimeoutExpired):
        return f"did not end within {error.timeout:.0f} s"
    return type(error).__name__


def rotated(entrants, by):
    by %= len(entrants)
    return entrants[by:] + entrants[:by]
