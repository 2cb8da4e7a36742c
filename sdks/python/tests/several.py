"""A worker module for `python -m tickwheel worker several:worker`."""

import os
from typing import Any

from tickwheel import JobType, Worker

worker = Worker(capacity=1)


@worker.handler(JobType("pid"))
async def pid(payload: Any) -> int:
    return os.getpid()
