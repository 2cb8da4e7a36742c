"""The numbers that are compared: which is better, and how one is shown."""

from dataclasses import dataclass


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

    @property
    def is_time(self):
        """Times differ by orders of magnitude; other numbers do not."""
        return self.unit in (" ms", " s")


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
    "rows_per_firing": Metric("less", 1, " rows a firing"),
}
