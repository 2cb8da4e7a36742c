"""`python -m tickwheel worker module:worker --processes N`."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from typing import Any

from ._supervisor import supervise
from .worker import Worker, configure_logging, made_here


def find_worker(target: str) -> Worker[Any]:
    """The worker that `module:name` means. Raises ValueError."""
    module_name, _, name = target.partition(":")
    if not module_name or not name:
        raise ValueError(f"{target!r} is not of the form module:worker")
    found: Any = importlib.import_module(module_name)
    for part in name.split("."):
        found = getattr(found, part, None)
    worker: Worker[Any] | None = next((made for made in made_here if made is found), None)
    if worker is not None:
        return worker
    raise ValueError(f"{name} in {module_name} is not a Worker")


def main(arguments: list[str] | None = None) -> int:
    """The command line. The exit code."""
    parser = argparse.ArgumentParser(prog="python -m tickwheel")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("worker", help="run a worker until SIGTERM")
    run.add_argument("target", metavar="module:worker", help="where the Worker is")
    run.add_argument("--processes", type=int, default=1, metavar="N", help="how many processes run it (1)")
    run.add_argument("--jobs-max", type=int, metavar="N", help="replace a process after about so many jobs")
    run.add_argument("--child-of", type=int, help=argparse.SUPPRESS)
    run.add_argument("--child-index", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.processes < 1 or (options.jobs_max is not None and options.jobs_max < 1):
        parser.error("--processes and --jobs-max must be at least 1")
    sys.path.insert(0, os.getcwd())
    configure_logging()
    if options.child_of is None and (options.processes > 1 or options.jobs_max is not None):
        return supervise(options.target, options.processes, options.jobs_max)
    try:
        worker = find_worker(options.target)
    except (ImportError, ValueError) as error:
        print(f"tickwheel: {error}", file=sys.stderr)
        return 2
    if options.child_of is not None:
        worker.supervised(options.child_of, options.child_index, options.jobs_max)
    worker.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
