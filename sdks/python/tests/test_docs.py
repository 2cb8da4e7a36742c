"""The pages say what is so: every public name is listed, and every block of code is one that runs."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tickwheel import JobType, Workflow, ref

ROOT = Path(__file__).resolve().parents[3]
GUIDE = ROOT / "docs/guide/workers-python.md"
REFERENCE = ROOT / "docs/reference/python.md"
README = ROOT / "sdks/python/README.md"
EXAMPLES = ROOT / "sdks/python/examples/shop"


def listed(module: str) -> list[str]:
    """The names in the section of a module."""
    text = REFERENCE.read_text(encoding="utf-8")
    section = text.split(f"\n## `{module}`\n")[1].split("\n##")[0]
    return re.findall(r"^\| `([A-Za-z_]+)[^`]*` \|", section, re.M)


@pytest.mark.parametrize("module", ["tickwheel", "tickwheel.errors", "tickwheel.testing", "tickwheel.models"])
def test_the_reference_lists_every_public_name_once_and_no_other(module: str) -> None:
    names = listed(module)
    assert sorted(names) == sorted(set(names))
    assert sorted(names) == sorted(importlib.import_module(module).__all__)


@pytest.mark.parametrize("heading", ["Context", "Worker", "Client", "Handle", "Schedules", "Workflows"])
def test_the_reference_lists_every_public_method(heading: str) -> None:
    text = REFERENCE.read_text(encoding="utf-8")
    section = text.split(f"\n### `{heading}`\n")[1].split("\n##")[0]
    names = re.findall(r"^\| `([a-z_]+)[^`]*` \|", section, re.M)
    modules = {"Context": "tickwheel.context", "Worker": "tickwheel.worker"}
    found = getattr(importlib.import_module(modules.get(heading, "tickwheel.client")), heading)
    internal = {"send_call", "wait_for", "supervised", "run_in_lifespan", "make_client", "make_sync_client", "settings"}
    public = {name for name in dir(found) if not name.startswith("_")} - (internal if heading == "Worker" else set())
    assert public - set(names) - {"send_call"} == set()


def blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)


def lines(text: str) -> list[str]:
    return [line.strip() for line in textwrap.dedent(text).splitlines() if line.strip() and not line.startswith("# ")]


def test_every_block_of_the_guide_is_in_the_example_or_runs() -> None:
    sources = [lines(path.read_text(encoding="utf-8")) for path in sorted(EXAMPLES.glob("*.py"))]
    others: list[str] = []
    for block in blocks(GUIDE):
        wanted = lines(block)
        if not any(source[start : start + len(wanted)] == wanted for source in sources for start in range(len(source))):
            others.append(block)
    (schedules,) = others
    put: list[Any] = []
    client = SimpleNamespace(
        schedules=SimpleNamespace(put=lambda name, **options: put.append((name, options))),
        workflows=SimpleNamespace(put=lambda workflow: put.append(workflow.to_wire())),
    )
    types = {name: JobType(name) for name in ("digest", "extract", "load")}
    exec(schedules, {**types, "Digest": str, "client": client, "Workflow": Workflow, "ref": ref})  # noqa: S102
    assert put[0][0] == "digest"
    assert put[1]["tasks"][1]["job"]["payload"] == {"rows": {"$from": "extract.result.rows"}}


def test_the_blocks_of_the_readme_run(tmp_path: Path) -> None:
    contract, worker, _ = blocks(README)
    (tmp_path / "jobs.py").write_text(contract)
    (tmp_path / "worker.py").write_text(worker)
    script = "import sys, worker; sys.exit(sorted(worker.worker.handlers) != ['send_email'])"
    subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, check=True, env={**os.environ, "PYTHONPATH": str(tmp_path)}
    )


def test_a_put_of_a_schedule_is_what_the_server_reads() -> None:
    from tickwheel._calls import put_schedule

    job = JobType("digest").new("daily")
    call = put_schedule(
        "digest", job, {"cron": "0 7 * * mon-fri", "timezone": "Europe/Berlin", "jitter": "5m", "every": None}
    )
    assert call.request.method == "PUT"
    assert b'"jitter":"300000ms"' in (call.request.body or b"")
    assert b"every" not in (call.request.body or b"")
