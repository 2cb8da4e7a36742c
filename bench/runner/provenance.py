"""Where a result comes from: the commit of the product, the machine, and the version of everything that took part.

A figure without this cannot be repeated. Results from before it was recorded name the commit that they landed with,
which the repository's history tells; what nobody knows is called unknown.
"""

import os
import platform
import re
import subprocess
import textwrap
from pathlib import Path

from . import tools

# What is measured, and how, has changed over time. Each result names the method that it was measured with.
METHOD = 2
METHODS = {
    1: "The clock of a peer's drain (B2, B8) included the start of its worker, and in B1 peers had one bulk insert in "
    "flight.",
    2: "The clock of a drain starts when the worker is up and may take its first job, and in B1 all have four batches in "
    "flight.",
}

# The figures that a change of the method concerns.
CHANGED = {1: ("B1", "B2", "B8")}

# What runs a peer and is taken from the machine; Node, Python's packages and crates are pinned beside the peers.
GO = ("Go", r"go(\d\S+)", "go", "version")
JAVA = ("Java", r"^\S+ (\S+)", "java", "--version")
RUNTIMES = {"river": GO, "temporal": GO, "quartz": JAVA, "db-scheduler": JAVA}

LINE_LEN = 120

RECORDED, LANDED = "recorded", "landed"

# Changes to these do not change what is measured; a run itself writes the results and the pages.
HARMLESS = (":!*.md", ":!bench/results")


def commit():
    """The commit of the working tree, or nothing outside a repository. `dirty` says whether files differ from it."""
    hash = git("rev-parse", "HEAD")
    if hash is None:
        return None
    return {"hash": hash, "dirty": bool(git("status", "--porcelain", "--", ".", *HARMLESS)), "known": RECORDED}


def git(*words):
    done = subprocess.run(["git", *words], cwd=tools.ROOT, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def machine():
    cpu = re.search(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text())
    memory = re.search(r"MemTotal:\s*(\d+)", Path("/proc/meminfo").read_text())
    return {
        "cpu": cpu[1].strip() if cpu else platform.machine(),
        "cores": os.cpu_count(),
        "memory_gib": round(int(memory[1]) / 2**20) if memory else None,
        "kernel": re.match(r"\d+\.\d+", platform.release())[0],
    }


def versions(cases):
    """The versions of the servers, and of the peers in these cases."""
    found = {"PostgreSQL": postgres_version()}
    durabilities = {entrant.durability for case in cases for entrant in case.entrants}
    if any(durability.startswith("Redis") for durability in durabilities):
        found["Redis"] = said(r"v=(\S+)", "redis-server", "--version")
    for case in cases:
        found |= {one.needs: one.version for one in case.entrants if one.needs and one.name in case.runs}
    runtimes = {RUNTIMES[peer] for peer in found if peer in RUNTIMES}
    return found | {name: said(*how) for name, *how in sorted(runtimes)}


def postgres_version():
    server = os.environ["TICKWHEEL_TEST_POSTGRES"]
    return said(r"(\S+)", "psql", "--no-psqlrc", "--tuples-only", server, "--command", "SHOW server_version")


def said(pattern, *command):
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    found = re.search(pattern, answer)
    return found[1] if found else "unknown"


def shown_commit(result):
    """As a table shows it: `1e3ce24`, with a plus if files had changed, with a star if it is the commit it landed with."""
    commit = result.get("commit")
    if not commit:
        return "commit unknown"
    mark = r"\*" if commit["known"] == LANDED else "+" if commit["dirty"] else ""
    return commit["hash"][:7] + mark


def shown_date(result):
    return result["date"][:10] if result.get("date") else "date unknown"


def marks(results):
    """What the marks of these commits mean."""
    shown = [shown_commit(result) for result in results]
    words = []
    if any(commit.endswith("*") for commit in shown):
        words.append(r"\* landed with this commit; the exact source that was measured was not recorded.")
    if any(commit.endswith("+") for commit in shown):
        words.append(r"\+ this commit with changes that were not committed.")
    return words


def older_methods(results):
    """Notes on figures that would be measured differently today."""
    words = []
    for method, figures in CHANGED.items():
        older = [result["figure"] for result in results if result.get("method", 1) == method]
        if of := [figure for figure in older if figure in figures]:
            words.append(wrapped(f"{' and '.join(of)}: measured by an older method. {METHODS[method]}"))
    return words


def wrapped(words):
    return textwrap.fill(words, LINE_LEN, break_on_hyphens=False)
