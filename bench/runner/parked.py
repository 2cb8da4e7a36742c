"""Jobs that no worker serves, and a few beside them that one waits for."""

from . import cpu, ours, servers, tools, workers
from .asking import both, run, spread
from .restart import memory
from .servers import fresh

FEW = 10
WATCH_S = 5


def machine(jobs):
    """The time it takes to take one job, in the machine that decides, without a store."""
    return lambda: {"take_us": ours.engine_asked(fresh("sqlite"), "--only", "parked", "--jobs", jobs)["take_us"]}


def beside(on, jobs):
    """How long a few jobs wait beside so many that nobody serves, and without them."""

    def measure():
        with on() as store, servers.tickwheel(store) as server:
            alone = observed(store, server)
            run(tools.LOAD, "worker-fill", server.address, "unserved", jobs)
            return {"beside": observed(store, server), "alone": alone}

    return both("beside", "alone", measure)


def observed(store, server):
    with workers.worker(workers.RUST, server) as one:
        cpu_part = cpu.part_while(server.pid, servers.database_of(store), WATCH_S)
        resident_mib = memory(server.pid)["resident_mib"]
        run(tools.LOAD, "worker-together", server.address, FEW)
        # The same numbers again: only the second time counts, when everything has been done once.
        submitted_ms = run(tools.LOAD, "worker-together", server.address, FEW)["submitted_ms"]
        waits = spread(workers.after(submitted_ms, one.stop()))
    return {**waits, "cpu_part": cpu_part, "resident_mib": resident_mib}
