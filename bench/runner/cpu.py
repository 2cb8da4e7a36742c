"""Processor time of our processes and of the PostgreSQL server: builds are also compared by what they cost."""

import os
import resource
import subprocess
import time
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
# As in the kernel's numbers of clocks: the time that all threads of a process together have run.
PROCESS_CLOCK = 2

_used_s = 0.0


def used_s():
    """Processor seconds counted so far: our processes, and the server while it had a database for them."""
    return _used_s


def count(seconds):
    global _used_s
    _used_s += seconds


def of_ended_children():
    """Processor time of all processes that this one has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def of_running(pid):
    """Exact processor time of a running process: the kernel has a processor clock for each, numbered after it."""
    return time.clock_gettime((~pid << 3) | PROCESS_CLOCK)


def with_ended_children(pid):
    """Processor time of a running process and the children it has waited for, to a hundredth of a second."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    # utime, stime, cutime and cstime are the 14th to 17th field; the first two stand before the parenthesis.
    return sum(map(int, fields[11:15])) / TICKS


def of_postgres(pid):
    """Processor time of a server: its first process with the ended sessions, and the open sessions."""
    children = subprocess.run(["pgrep", "--parent", str(pid)], capture_output=True, text=True).stdout.split()
    seconds = with_ended_children(pid)
    for child in children:
        try:
            seconds += with_ended_children(child)
        except OSError:
            pass  # it has ended meanwhile; the server's own time has it from now on
    return seconds


def part_while(pid, database_pid, seconds):
    """The part of a core, in percent, that a process and a PostgreSQL server take over this time."""
    taken = lambda: of_running(pid) + (of_postgres(database_pid) if database_pid else 0)
    before, begun = taken(), time.monotonic()
    time.sleep(seconds)
    return 100 * (taken() - before) / (time.monotonic() - begun)
