"""Very many jobs that workers hold: the memory and the heartbeats they cost the server, and what others feel of them."""

import contextlib
import time

from . import cpu, servers, tools, workers
from .asking import both, run
from .restart import memory

# What one worker holds.
JOBS_EACH = 1_000
HOLD_S_MAX = 300


def held(on, jobs, rate, seconds, watch_s):
    """The lag of other jobs beside so many that are held, the memory of each of those, and the part of a core that the
    server and its database take while nothing but heartbeats goes on; and the same with the same workers and no job. The
    memory is all that the server has grown by, with what it needed to accept the jobs and did not give back."""

    def measure():
        with on() as store, servers.tickwheel(store) as server, holders(server, jobs // JOBS_EACH):
            alone = observed(store, server, rate, seconds, watch_s)
            run(tools.LOAD, "worker-fill", server.address, "hold", jobs)
            wait_for_all(server, jobs)
            beside = observed(store, server, rate, seconds, watch_s)
            if workers.running_jobs(server) != jobs:
                raise ValueError("some of the jobs are no longer held")
            grown_mib = beside["resident_mib"] - alone["resident_mib"]
            return {"beside": {**beside, "job_bytes": grown_mib * 2**20 / jobs}, "alone": alone}

    return both("beside", "alone", measure)


@contextlib.contextmanager
def holders(server, count):
    """Workers that hold whatever they get, all in one process."""
    with workers.process([tools.RUST_WORKER, "hold", count, JOBS_EACH], server) as process:
        servers.wait_until(lambda: workers.polling(server) == count, "the holding workers")
        yield process


def wait_for_all(server, jobs):
    deadline = time.monotonic() + HOLD_S_MAX
    while workers.running_jobs(server) < jobs:
        if time.monotonic() > deadline:
            raise TimeoutError(f"not all jobs were running after {HOLD_S_MAX} s")
        time.sleep(0.5)


def observed(store, server, rate, seconds, watch_s):
    cpu_part = cpu.part_while(server.pid, servers.database_of(store), watch_s)
    resident_mib = memory(server.pid)["resident_mib"]
    return {**workers.lag_on(server, workers.RUST, rate, seconds), "cpu_part": cpu_part, "resident_mib": resident_mib}
