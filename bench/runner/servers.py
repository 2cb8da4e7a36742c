"""Private servers, fresh for every measurement, so that no measurement depends on an earlier one."""

import contextlib
import functools
import itertools
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from . import cpu, tools

START_S_MAX = 20

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Store:
    """A store for jobs, and a directory for what a server keeps beside it."""

    kind: str  # sqlite or postgres
    url: str
    home: str

    @property
    def arguments(self):
        """For `tickwheel bench`."""
        return ["--store", self.url, "--data-dir", self.home, "--keep"]


@dataclass(frozen=True)
class Server:
    address: str
    pid: int


def fresh(kind):
    """A new, empty store of that kind."""

    @contextlib.contextmanager
    def on():
        database = postgres() if kind == "postgres" else contextlib.nullcontext("sqlite")
        with directory() as home, database as url:
            yield Store(kind, url, home)

    return on


@contextlib.contextmanager
def postgres():
    """The URL of an empty database. The checkpoint that earlier measurements made necessary is done first."""
    server = os.environ["TICKWHEEL_TEST_POSTGRES"]
    name = f"bench_{os.getpid()}_{next(_numbers)}"
    psql(server, f"CREATE DATABASE {name}")
    psql(server, "CHECKPOINT")
    first = first_process(server)
    used_before = cpu.of_postgres(first)
    try:
        yield f"{server.rpartition('/')[0]}/{name}"
        cpu.count(cpu.of_postgres(first) - used_before)
    finally:
        psql(server, f"DROP DATABASE {name} WITH (FORCE)")


def psql(url, statement):
    command = ["psql", "--quiet", "--no-psqlrc", "--set=ON_ERROR_STOP=1", url, "--command", statement]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def rows_written(store):
    """How many rows PostgreSQL has inserted, updated and deleted there; SQLite does not count."""
    if store.kind != "postgres":
        return 0
    counted = "SELECT coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0) FROM pg_stat_user_tables"
    command = ["psql", "--quiet", "--no-psqlrc", "--tuples-only", store.url, "--command", counted]
    return int(subprocess.run(command, check=True, capture_output=True).stdout)


def database_pid(store):
    """The first of the server's processes, as an argument for `tickwheel bench`; the embedded store has none."""
    first = database_of(store)
    return ["--database-pid", first] if first else []


def database_of(store):
    """The first of the server's processes, or nothing for the embedded store."""
    return first_process(os.environ["TICKWHEEL_TEST_POSTGRES"]) if store.kind == "postgres" else None


@functools.cache
def first_process(url):
    """The process id of the server, all others of which are its children."""
    child = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'"
    command = ["psql", "--quiet", "--no-psqlrc", "--tuples-only", url, "--command", child]
    pid = int(subprocess.run(command, check=True, capture_output=True).stdout)
    return re.search(r"^PPid:\s*(\d+)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)[1]


@contextlib.contextmanager
def redis(appendfsync):
    """The URL of an empty Redis with its append-only file on."""
    port = free_port()
    with directory() as home:
        command = ["redis-server", "--port", port, "--bind", "127.0.0.1", "--dir", home, "--save", "", "--daemonize", "no"]
        command += ["--appendonly", "yes", "--appendfsync", appendfsync]
        with running(command):
            wait_until(lambda: connects(port), "Redis")
            yield f"redis://127.0.0.1:{port}"


@contextlib.contextmanager
def temporal():
    """The address of an empty development server of Temporal, which keeps everything in a file. It may be asked for its
    list of workflows as often as one likes: that is how the end of a drain is seen."""
    port = free_port()
    with directory() as home:
        command = [tools.TEMPORAL_SERVER, "server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", port]
        command += ["--db-filename", f"{home}/temporal.db", "--log-level", "never"]
        command += ["--sqlite-pragma", "journal_mode=WAL", "--sqlite-pragma", "synchronous=FULL"]
        command += ["--dynamic-config-value", "frontend.namespaceRPS.visibility=10000"]
        with running(command):
            wait_until(lambda: connects(port), "Temporal")
            yield f"127.0.0.1:{port}"


@contextlib.contextmanager
def tickwheel(store):
    """A server on that store."""
    port = free_port()
    command = [tools.TICKWHEEL, "serve", "--listen", f"127.0.0.1:{port}", "--store", store.url, "--data-dir", store.home]
    with running([*command, "--allow-private-targets"], TICKWHEEL_LOG_LEVEL="warn") as process:
        wait_until(lambda: is_ready(port), "tickwheel")
        yield Server(f"127.0.0.1:{port}", process.pid)
        cpu.count(cpu.of_running(process.pid))


@contextlib.contextmanager
def directory():
    """An empty directory on the disk the results speak of."""
    path = tempfile.mkdtemp(dir=tools.DATA)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def running(command, stdout=subprocess.DEVNULL, stderr=None, **environment):
    process = subprocess.Popen(
        list(map(str, command)), stdout=stdout, stderr=stderr, env={**os.environ, **environment}
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def wait_until(condition, what):
    deadline = time.monotonic() + START_S_MAX
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} did not start within {START_S_MAX} s")
        time.sleep(0.02)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def connects(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def is_ready(port):
    with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=1) as answer:
        return answer.status == 200
    return False
