"""How ours is measured with workers: a server, and a worker process that is written with one of the libraries."""

import contextlib
import json
import platform
import signal
import subprocess
import urllib.request
from dataclasses import dataclass
from typing import Callable

from . import cpu, servers, tools
from .asking import OURS, Entrant, run, spread
from .cases import STORES

# As many jobs at once as a poll may bring ten times over: what is measured is never that the worker has no room.
CAPACITY = 10_000
FIRST_NUMBER = 10_000_000  # as the load generator counts
STOP_S_MAX = 60
WORKERS_MAX = 200


@dataclass(frozen=True)
class Language:
    name: str
    command: Callable  # the program, without the capacity
    needs: str | None = None  # what has to be installed
    version: str = ""
    note: str = ""
    part: int = 1  # slow ones get only that part of the jobs
    rate_max: int = 1_000_000  # and are not asked to keep up with more than this


RUST = Language("Rust worker", lambda capacity: [tools.RUST_WORKER, "work", capacity])
PYTHON = Language(
    "Python worker", lambda capacity: [*tools.python_worker(), capacity, "async"], "Python", platform.python_version(),
    "one process, async def", part=5, rate_max=1_000,
)
PYTHON_THREADS = Language(
    "Python worker, threads", lambda capacity: [*tools.python_worker(), THREADS, "thread"], "Python",
    platform.python_version(), "one process, def, 100 threads", part=5,
)
TYPESCRIPT = Language(
    "TypeScript worker", lambda capacity: [*tools.typescript_worker(), capacity], "Node",
    tools.NODE_PIN.rpartition("=")[2], "one process",
)
# A thread for every slot: more of them than this only get into each other's way.
THREADS = 100
LANGUAGES = (RUST, PYTHON, TYPESCRIPT)


class Worker:
    """A worker process that waits for jobs."""

    def __init__(self, process):
        self.process = process

    def stop(self):
        """Lets it finish, and answers when which job started."""
        self.process.send_signal(signal.SIGTERM)
        answer, _ = self.process.communicate(timeout=STOP_S_MAX)
        return {number - FIRST_NUMBER: at_ms for number, at_ms in json.loads(answer)["starts"]}


@contextlib.contextmanager
def worker(language, server, capacity=CAPACITY):
    """A worker that has a session and whose first poll waits."""
    before = polling(server)
    with process(language.command(capacity), server) as started:
        servers.wait_until(lambda: polling(server) > before, language.name)
        yield Worker(started)


@contextlib.contextmanager
def process(command, server):
    environment = {"TICKWHEEL_SERVER": f"http://{server.address}"}
    with servers.running(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **environment) as started:
        yield started
        with contextlib.suppress(OSError):
            cpu.count(cpu.of_running(started.pid))


def polling(server):
    """How many workers have polled."""
    return sum(1 for one in listed(server) if one.get("last_poll"))


def running_jobs(server):
    """How many jobs workers have, as the store knows it."""
    return sum(one["running"] for one in listed(server))


def listed(server):
    with urllib.request.urlopen(f"http://{server.address}/api/v1/workers?limit={WORKERS_MAX}", timeout=10) as answer:
        return json.loads(answer.read())["items"]


def entrant(store, language, how, ask):
    name = f"Tickwheel, {how}" if how else f"Tickwheel, {language.name}"
    return Entrant(name, OURS, STORES[store][1], ask, language.needs, language.note, language.version)


def drain(on, language, jobs):
    def ask():
        with on() as store, servers.tickwheel(store) as server, worker(language, server):
            return {"per_s": run(tools.LOAD, "worker-drain", server.address, jobs)["drain_per_s"]}

    return ask


def lag(on, language, rate, seconds):
    def ask():
        with on() as store, servers.tickwheel(store) as server:
            return lag_on(server, language, rate, seconds)

    return ask


def lag_on(server, language, rate, seconds):
    with worker(language, server) as one:
        due_ms = run(tools.LOAD, "worker-lag", server.address, rate, seconds)["due_ms"]
        return spread(after(due_ms, one.stop()))


def idle(on, language, jobs, until):
    """From submission until the handler starts, or until its submitter hears that it has ended."""

    def ask():
        with on() as store, servers.tickwheel(store) as server, worker(language, server) as one:
            seen = run(tools.LOAD, "worker-idle", server.address, jobs)
            ends = dict(enumerate(seen["completed_ms"])) if until == "completed" else one.stop()
            return spread(after(seen["submitted_ms"], ends))

    return ask


def after(expected_ms, happened_ms):
    """How long after each moment what belongs to it happened. A job that was run twice or never is no result."""
    if len(happened_ms) != len(expected_ms):
        raise ValueError(f"{len(happened_ms)} jobs were started, not {len(expected_ms)}")
    return [happened_ms[number] - moment_ms for number, moment_ms in enumerate(expected_ms)]
