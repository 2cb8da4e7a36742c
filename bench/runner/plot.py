"""Pictures of results as SVG: one panel per case, one bar per entrant, a line from the smallest to the largest run.

Times are drawn along a logarithmic axis, for between ours and a poll every half second lie three powers of ten; all else along a
linear one.
"""

import math
from html import escape

from .metrics import METRICS

WIDTH = 860
LABELS = 260
VALUES = 90
BAR = 16
GAP = 6
HEADING = 34
COLOURS = {"ours": "#0f766e", "peer": "#9ca3af", "floor": "#d6b656", "baseline": "#7fb5ae"}
STYLE = "text{font:12px system-ui,sans-serif;fill:#1f2937}.title{font-size:15px;font-weight:600}.case{font-weight:600}"


def picture(result):
    parts, y = [], 30
    parts.append(text(12, y, result["title"], "title"))
    y += 12
    for case in result["cases"]:
        panel, y = drawn(case, y)
        parts += panel
    parts.append(legend(y + 22))
    height = y + 40
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">\n'
        f"<style>{STYLE}</style>\n"
        f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#ffffff"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def drawn(case, y):
    place = axis(case)
    parts = [text(12, y + 24, case["name"], "case")]
    y += HEADING
    for entrant in sorted(measured(case), key=lambda one: one["median"], reverse=case["better"] == "more"):
        parts += bar(case, entrant, place, y)
        y += BAR + GAP
    for entrant in case["entrants"]:
        if entrant["median"] is None:
            parts.append(text(LABELS - 8, y + 12, entrant["name"], anchor="end"))
            parts.append(text(LABELS, y + 12, "not run" if entrant.get("skipped") else "failed"))
            y += BAR + GAP
    return parts, y


def measured(case):
    return [entrant for entrant in case["entrants"] if entrant["median"] is not None]


def axis(case):
    """Where a value lies between the left and the right end of the bars."""
    room = WIDTH - LABELS - VALUES
    most = max((entrant["max"] for entrant in measured(case)), default=1)
    if not METRICS[case["metric"]].is_time:
        return lambda value: room * value / most
    least = min((entrant["min"] for entrant in measured(case)), default=1) / 2
    return lambda value: room * math.log(value / least) / math.log(most / least)


def bar(case, entrant, place, y):
    middle = y + BAR / 2
    low, median, high = (LABELS + place(entrant[key]) for key in ("min", "median", "max"))
    value = METRICS[case["metric"]].number(entrant["median"])
    return [
        text(LABELS - 8, y + 12, entrant["name"], anchor="end"),
        f'<rect x="{LABELS}" y="{y}" width="{median - LABELS:.1f}" height="{BAR}" rx="2" fill="{COLOURS[entrant["role"]]}"/>',
        f'<line x1="{low:.1f}" x2="{high:.1f}" y1="{middle}" y2="{middle}" stroke="#111827" stroke-width="1.5"/>',
        text(high + 6, y + 12, value),
    ]


def legend(y):
    parts, x = [], 12
    for role, colour in COLOURS.items():
        parts.append(f'<rect x="{x}" y="{y - 10}" width="12" height="12" rx="2" fill="{colour}"/>' + text(x + 18, y, role))
        x += 80
    return "\n".join(parts) + text(x, y, "bar: median, line: smallest to largest run; times on a logarithmic axis")


def text(x, y, words, kind="", anchor="start"):
    return f'<text x="{x:.1f}" y="{y}" class="{kind}" text-anchor="{anchor}">{escape(words)}</text>'
