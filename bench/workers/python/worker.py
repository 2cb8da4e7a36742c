"""A worker whose handler does nothing, as somebody would write it with the Python library.

    python worker.py CAPACITY [async | thread]

It runs jobs of type `bench` and notes when each of them started. When it is asked to stop, it prints those times as
JSON.
"""

import json
import sys
import time
from dataclasses import dataclass

from tickwheel import JobType, Worker


@dataclass
class NoOp:
    to: str
    template: str
    language: str
    number: int
    n: int


noop = JobType("bench", NoOp, None)
worker = Worker(capacity=int(sys.argv[1]))
starts = []


async def run(job: NoOp) -> None:
    starts.append((job.n, time.time() * 1000))


def run_on_a_thread(job: NoOp) -> None:
    starts.append((job.n, time.time() * 1000))


if __name__ == "__main__":
    worker.handler(noop)({"async": run, "thread": run_on_a_thread}[sys.argv[2]])
    worker.run()
    print(json.dumps({"starts": starts}), flush=True)
