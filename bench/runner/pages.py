"""The pages that quote results, written from the files on disk and compared with them.

A page holds generated blocks between `<!-- figures: NAME -->` and `<!-- end of figures -->`. Nothing else of it is
touched.
"""

import difflib

from . import goals, plot, provenance, published, report, tables
from .tools import BENCH, ROOT

CLOSING = "<!-- end of figures -->"
RESULTS = BENCH / "results"


def opening(name):
    return f"<!-- figures: {name} -->"


def renew():
    """Writes every page and picture from the results on disk."""
    for file, text in expected().items():
        file.write_text(text)


def differences():
    """The differences between the pages and pictures and the results, as a diff. Empty if they agree."""
    lines = []
    for file, text in expected().items():
        found, name = file.read_text() if file.exists() else "", str(file.relative_to(ROOT))
        said, meant = found.splitlines(), text.splitlines()
        lines += difflib.unified_diff(said, meant, name, f"{name}, from the results", lineterm="", n=0)
    return lines


def expected():
    results = report.read(RESULTS)
    texts = {RESULTS / f"{result['figure']}.svg": plot.picture(result) for result in results}
    for file, blocks in PAGES.items():
        text = file.read_text()
        for name, block in blocks.items():
            text = with_block(text, file, name, block(results))
        texts[file] = text
    return texts


def with_block(text, file, name, block):
    before, found, rest = text.partition(opening(name))
    _, closed, after = rest.partition(CLOSING)
    if not found or not closed:
        raise LookupError(f"{file.name} has no block {opening(name)} … {CLOSING}")
    return f"{before}{opening(name)}\n{block}\n{CLOSING}{after}"


def conditions(results):
    """One sentence for a short table: where it was measured, and how often."""
    machines = dict.fromkeys(shown_machine(result) for result in results)
    times = dict.fromkeys(str(result["repetitions"]) for result in results)
    return f"Measured on {'; '.join(machines)}; everything on one machine; medians of {' or '.join(times)} runs."


def short_table(results):
    return f"{conditions(results)}\n\n{published.block(results)}"


def latest(results):
    pictures = [f"![{result['title']}](results/{result['figure']}.svg)" for result in results]
    return "\n".join([
        sources(results), "", "Medians; smallest and largest run in brackets.", "", report.table(results), "",
        *pictures, "", "Everybody:", "", report.everybody(results),
    ])


def sources(results):
    """Where each figure comes from, and by which method."""
    rows = [["figure", "measured", "commit", "runs", "machine", "versions", "method"]]
    for result in results:
        rows.append([
            result["figure"], result["date"], provenance.shown_commit(result), str(result["repetitions"]),
            shown_machine(result), shown_versions(result), str(result.get("method", 1)),
        ])
    used = sorted({result.get("method", 1) for result in results})
    methods = [provenance.wrapped(f"Method {number}. {provenance.METHODS[number]}") for number in used]
    return "\n\n".join([report.aligned(rows), *provenance.marks(results), *methods])


def shown_machine(result):
    machine = result.get("machine")
    if not machine:
        return "machine unknown"
    return f"{machine['cores']} cores of {machine['cpu']}, {machine['memory_gib']} GiB, Linux {machine['kernel']}"


def shown_versions(result):
    versions = result.get("versions") or {}
    return ", ".join(f"{name} {version}" for name, version in versions.items()) or "not recorded"


PAGES = {
    ROOT / "README.md": {"short table": short_table},
    BENCH / "README.md": {"latest": latest},
    ROOT / "docs" / "internals" / "performance.md": {
        "goals": goals.block,
        "fleets": tables.fleets,
        "workflows": tables.workflows,
    },
}
