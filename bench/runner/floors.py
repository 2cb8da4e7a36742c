"""The floors: the stores and the disk doing the same writes and nothing else, and the load generator against nothing."""

from . import servers, tools
from .asking import run, spread


def postgres(connections, jobs, which):
    def ask():
        with servers.postgres() as url:
            return {"per_s": run(tools.FLOORS, "postgres", url, connections, jobs)[which]}

    return ask


def sqlite(jobs, which):
    def ask():
        with servers.directory() as home:
            return {"per_s": run(tools.FLOORS, "sqlite", home, jobs)[which]}

    return ask


def fsync(writes):
    def ask():
        with servers.directory() as home:
            return spread(run(tools.FLOORS, "fsync", home, writes)["samples_ms"])

    return ask


def generator(in_flight, batch, jobs):
    """What the load generator can do against an endpoint that does nothing."""
    return lambda: {"per_s": run(tools.LOAD, "calibrate", in_flight, batch, jobs)["submit_per_s"]}
