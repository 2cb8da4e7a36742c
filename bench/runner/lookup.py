"""Finds single numbers in the results on disk, for the pages that quote them."""

from dataclasses import dataclass

from .asking import BASELINE, FLOOR, OURS, PEER
from .metrics import METRICS, ratio, significant
from .report import best, best_first, some_failed, was_measured, without_numbers

FAILED = "**failed**"
# As they write themselves, where a package is called otherwise.
SPELLINGS = {"bullmq": "BullMQ", "celery": "Celery", "river": "River", "quartz": "Quartz", "temporal": "Temporal"}


@dataclass(frozen=True)
class Number:
    """A number of one entrant. Without a value, the entrant failed."""

    metric: str
    entrant: dict

    @property
    def value(self):
        return self.entrant["median"]

    def published(self):
        return METRICS[self.metric].published(self.value) + some_failed(self.entrant) if self.is_known else FAILED

    @property
    def is_known(self):
        return was_measured(self.entrant)

    @property
    def steadiness(self):
        """The largest run as a multiple of the smallest."""
        return self.entrant["max"] / self.entrant["min"]

    def times(self, other):
        """The ratio to another number, or nothing if one of them is missing."""
        return self.value / other.value if other and self.is_known and other.is_known else None


class Results:
    """The results on disk by figure."""

    def __init__(self, results):
        self.by_figure = {result["figure"]: result for result in results}

    def case(self, figure, name):
        cases = [case for case in self.by_figure[figure]["cases"] if case["name"] == name]
        if not cases:
            raise LookupError(f"{figure} has no case {name!r}")
        return cases[0]

    def ours(self, figure, name, how=""):
        """Ours in a case. `how` chooses one if there are several."""
        wanted = f"Tickwheel, {how}" if how else "Tickwheel"
        case = self.case(figure, name)
        found = [one for one in case["entrants"] if one["role"] in (OURS, BASELINE) and one["name"] == wanted]
        if not found:
            raise LookupError(f"{figure} {name}: nobody is called {wanted!r}")
        return Number(case["metric"], found[0])

    def has_ours(self, figure, name, how):
        """Whether that was measured at all: results may be older than a way to measure."""
        return any(one["name"] == f"Tickwheel, {how}" for one in self.case(figure, name)["entrants"])

    def peer(self, figure, name, peer):
        """The best number of this peer, or nothing if it did not take part."""
        case = self.case(figure, name)
        found = [one for one in best_first(case) if one["role"] == PEER and one["name"].split()[0] == peer]
        return Number(case["metric"], found[0]) if found else None

    def best(self, figure, name, role):
        """The best entrant with that role. One without numbers if all failed, nothing if there is none."""
        case = self.case(figure, name)
        found = best(case, role) or next((one for one in case["entrants"] if one["role"] == role), None)
        return Number(case["metric"], found) if found else None

    def best_peer(self, figure, name):
        return self.best(figure, name, PEER)

    def floor(self, figure, name):
        return self.best(figure, name, FLOOR)

    def baseline(self, figure, name):
        return self.best(figure, name, BASELINE)

    def peers(self, figure, name, at_most):
        """The numbers of the best peers. For a peer that took part in two ways, the smaller and the larger one. Failed peers
        come last: no peer is best because a better one broke."""
        case = self.case(figure, name)
        spans = {}
        for entrant in best_first(case):
            if entrant["role"] == PEER:
                spans.setdefault(entrant["name"].split()[0], []).append(entrant["median"])
        shown = {peer: shown_span(case["metric"], span) for peer, span in list(spans.items())[:at_most]}
        broken = [one for one in without_numbers(case) if one["role"] == PEER and not one.get("skipped")]
        return shown | {one["name"].split()[0]: FAILED for one in broken if one["name"].split()[0] not in spans}


def shown_span(metric, values):
    """`16,600–18,200`, with one unit for both ends. One number if both print the same."""
    first, last = (METRICS[metric].published(value) for value in (min(values), max(values)))
    unit = last.partition(" ")[2]
    return last if first == last else f"{first.removesuffix(f' {unit}') if unit else first}–{last}"


def shown_ratio(value):
    return FAILED if value is None else ratio(value, 1)


def percent(value):
    return FAILED if value is None else f"{significant(value * 100, 2)} %"
