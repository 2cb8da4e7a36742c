"""The numbers that are compared: which is better, and how one is shown.

Every page takes its numbers from here: the long tables with `shown`, the short ones that people quote with `published`.
"""

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal


@dataclass(frozen=True)
class Metric:
    better: str  # "more" or "less"
    digits: int
    unit: str
    prefix: str = ""

    def number(self, value):
        return f"{value:,.{self.digits}f}"

    def shown(self, value):
        return f"{self.prefix}{self.number(value)}{self.unit}"

    def published(self, value):
        """As people quote it: rates to three digits, everything else to two, and seconds from one second on."""
        unit = self.unit.partition(" a ")[0]
        if unit == " ms" and value >= 1000:
            value, unit = value / 1000, " s"
        places = 3 if unit == "/s" else 2
        return significant(value, places) + unit.removeprefix("/s")

    @property
    def is_time(self):
        """Times differ by orders of magnitude; other numbers do not."""
        return self.unit in (" ms", " s")


def significant(value, places):
    """The number with that many significant digits, a half rounded up, never in scientific notation."""
    exact = Decimal(str(value))
    if exact == 0:
        return "0"
    last = Decimal(1).scaleb(exact.adjusted() - places + 1)
    rounded = exact.quantize(last, ROUND_HALF_UP)
    # 9.96 to two places is 10, not 10.0.
    if rounded.adjusted() > exact.adjusted():
        rounded = rounded.quantize(last.scaleb(1), ROUND_HALF_UP)
    return f"{rounded:,.{max(0, -rounded.as_tuple().exponent)}f}"


def ratio(value, other):
    return f"{value / other:.2f}"


METRICS = {
    "per_s": Metric("more", 0, "/s"),
    "unpinned_per_s": Metric("more", 0, "/s"),
    "kept": Metric("more", 2, "", "kept "),
    "p50": Metric("less", 2, " ms", "p50 "),
    "p99": Metric("less", 2, " ms", "p99 "),
    "max": Metric("less", 1, " ms", "last "),
    "first_start_s": Metric("less", 3, " s"),
    "peak_mib": Metric("less", 0, " MiB"),
    "cpu_us": Metric("less", 1, " µs"),
    "link_ms": Metric("less", 2, " ms a link"),
    "start_ms": Metric("less", 1, " ms", "p50 "),
    "read_ms": Metric("less", 1, " ms", "p50 "),
    "job_bytes": Metric("less", 0, " bytes"),
    "resident_mib": Metric("less", 0, " MiB"),
    "cpu_part": Metric("less", 2, " % of a core"),
    "take_us": Metric("less", 2, " µs a job"),
    "rows_per_firing": Metric("less", 1, " rows a firing"),
}
