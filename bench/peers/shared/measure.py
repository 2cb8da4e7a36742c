"""What every peer in Python is asked, so that all are asked alike:

    python peer.py submit JOBS | drain JOBS | lag RATE SECONDS | idle JOBS

A peer has five verbs: `open()` makes its tables, `submit(jobs)` stores jobs (each a payload and, if it is not for now,
the moment it is due in seconds), `work(starts)` starts its workers, which call `starts.note(payload)` for every job
and do nothing else, `unfinished()` counts what is not durably completed, `close()` ends it. A drain is timed from the
moment the workers are up: on PostgreSQL a lock on the peer's `table` holds them back, elsewhere `work` answers when
they were. One JSON object on standard output says what was seen; percentiles are for whoever reads it.
"""

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import RawArray

BATCH_LEN = 500
SUBMITS_IN_FLIGHT = 4  # as many as ours gets
HEAD_START_S = 2.0
PAUSE_S = 0.02
POLL_S = 0.002
FIRST_NUMBER = 10_000_000  # as many digits for every job

SERVER = os.environ["BENCH_SERVER"]
"""The server this run may use, empty."""


class Starts:
    """When each job started; shared with the worker processes a peer may fork."""

    def __init__(self, jobs):
        self._at = RawArray("d", jobs)

    def note(self, payload):
        self._at[payload["n"] - FIRST_NUMBER] = time.time()

    def of(self, number):
        return self._at[number]

    def wait_for_all(self):
        for number in range(len(self._at)):
            while not self._at[number]:
                time.sleep(POLL_S)


def payload(number):
    """A hundred bytes of JSON, and in them which job it is."""
    return {
        "to": "somebody@example.org",
        "template": "welcome",
        "language": "en",
        "number": 1234567890,
        "n": FIRST_NUMBER + number,
    }


def submit_all(peer, jobs, due=lambda number: None, in_flight=1):
    def submit_batch(first):
        numbers = range(first, min(first + BATCH_LEN, jobs))
        peer.submit([(payload(number), due(number)) for number in numbers])

    with ThreadPoolExecutor(in_flight) as pool:
        for _ in pool.map(submit_batch, range(0, jobs, BATCH_LEN)):
            pass


def start_held(peer, starts):
    """Starts the workers, lets them begin when all are up, and answers when that was."""
    if peer.table is None:
        return peer.work(starts)
    pipe = subprocess.PIPE
    lock = subprocess.Popen([os.environ["BENCH_HOLD"], peer.table], stdin=pipe, stdout=pipe, text=True)
    wait_for(lock, "held")
    peer.work(starts)
    wait_for(lock, "asked")
    begun = time.monotonic()
    lock.stdin.write("\n")
    lock.stdin.close()
    return begun


def wait_for(lock, word):
    if (said := lock.stdout.readline().strip()) != word:
        raise RuntimeError(f"the lock said {said!r} and not {word!r}")


def vacuum():
    """What autovacuum has long done to a table in steady use and not yet to one that was filled a second ago. Without it, the
    planner takes a full table for an empty one."""
    if SERVER.startswith("postgres"):
        subprocess.run(["psql", "--quiet", "--no-psqlrc", SERVER, "--command", "VACUUM ANALYZE"], check=True)


def submit(peer, jobs):
    begun = time.monotonic()
    submit_all(peer, jobs, in_flight=SUBMITS_IN_FLIGHT)
    return {"jobs": jobs, "submit_per_s": jobs / (time.monotonic() - begun)}


def drain(peer, jobs):
    starts = Starts(jobs)
    submit_all(peer, jobs)
    vacuum()
    begun = start_held(peer, starts)
    starts.wait_for_all()
    while peer.unfinished():
        time.sleep(POLL_S)
    return {"jobs": jobs, "drain_per_s": jobs / (time.monotonic() - begun)}


def lag(peer, rate, seconds):
    jobs = rate * seconds
    starts = Starts(jobs)
    peer.work(starts)
    first = int((time.time() + HEAD_START_S) * 1000)

    def due(number):
        return (first + number * 1000 // rate) / 1000

    submit_all(peer, jobs, due)
    starts.wait_for_all()
    return {"samples_ms": [(starts.of(number) - due(number)) * 1000 for number in range(jobs)]}


def idle(peer, jobs):
    starts = Starts(jobs)
    peer.work(starts)
    samples_ms = []
    for number in range(jobs):
        time.sleep(PAUSE_S)
        submitted = time.time()
        peer.submit([(payload(number), None)])
        while not starts.of(number):
            time.sleep(POLL_S)
        samples_ms.append((starts.of(number) - submitted) * 1000)
    return {"samples_ms": samples_ms}


MEASURES = {"submit": submit, "drain": drain, "lag": lag, "idle": idle}


def main(peer):
    """Measures what the command line asks for, prints it, and ends the process with whatever the peer left running."""
    measure, *numbers = sys.argv[1:]
    peer.open()
    seen = MEASURES[measure](peer, *map(int, numbers))
    peer.close()
    print(json.dumps(seen), flush=True)
    os._exit(0)
