"""Cases 1 to 5: how a worker starts, what it takes, and how fast."""

import json
import statistics
import time

import pytest

from cases.common import NEVER, most_at_once, now_ms
from harness.api import Refused

KIB_256 = 256 * 1024
SOON_S = 8.0


def refused(program, *words):
    """It ended with 2, soon, and said why, in one line."""
    assert program.exit_code(SOON_S + program.started_at - time.monotonic()) == 2, program.log()
    assert len(program.log_lines(*words)) == 1, program.log()


def test_case_01_waits_for_a_server(bare_world):
    server = bare_world.add_server(bare_world.database and bare_world.database.url, wait=False)
    server.port = 1
    worker = bare_world.prepare_worker().start()
    time.sleep(5.0)  # no server for 5 s
    assert worker.is_running()
    server.start()
    ready = now_ms()
    job = bare_world.submit("echo")
    # Libraries pause for up to 2 s between two tries.
    assert worker.await_event("start", job)["wall_ms"] - ready < 4000


def test_case_01_a_bad_key_ends_it(world):
    worker = world.prepare_worker(api_key="tw_bad")
    worker.proxy.keys = {"tw_good"}
    refused(worker.start(), "this key is not valid")


def test_case_01_an_unknown_protocol_ends_it(world):
    worker = world.prepare_worker()
    info = world.api.get("/api/v1/server") | {"worker_protocol": {"min": 98, "max": 99}}
    worker.proxy.answer("server", 200, info)
    refused(worker.start(), "protocol")


def test_case_01_a_lease_that_the_server_refuses_ends_it(world):
    worker = world.prepare_worker()
    problem = {"status": 422, "code": "lease_out_of_range", "title": "Lease out of range", "detail": "5 s to 10 min",
               "type": "urn:tickwheel:problem:lease_out_of_range"}
    worker.proxy.answer("register", 422, problem)
    refused(worker.start(), "5 s to 10 min")


def test_case_01_bad_options_are_named_together(world):
    worker = world.prepare_worker(capacity="0", lease="banana").start()
    refused(worker, "TICKWHEEL_CAPACITY", "TICKWHEEL_LEASE")


PLANES = "".join(chr(plane * 0x10000 + offset) for plane in range(17) for offset in (0x41, 0x3042, 0xFFFD))
NESTED = json.loads("[" * 60 + "]" * 60)
VALUES = {
    "planes": PLANES,
    "zero": "a\u0000b",
    "controls": "".join(map(chr, range(32))) + "\"\\/\u007f\u2028\u2029",
    "numbers": [2**53, -(2**53), 2**53 - 1, 0, -1, 0.1, 1e300, -1.5e-300],
    "null": None,
    "empty": [{}, [], ""],
    "nested": NESTED,
    "keys": {"": 1, "\u0000": 2, "\U0001F600": 3, "__proto__": 4},
}


def test_case_02_echo_gives_back_what_it_got(world):
    world.worker()
    jobs = {name: world.submit("echo", value) for name, value in (VALUES | {"all": VALUES}).items()}
    for name, job in jobs.items():
        assert world.completed(job)["result"] == (VALUES | {"all": VALUES})[name], name


def test_case_02_sizes(world):
    world.worker()
    largest = "x" * (KIB_256 - 2)
    echoed = world.submit("echo", largest)
    made = world.submit("echo", {"make_bytes": KIB_256})
    too_large = world.submit("echo", {"make_bytes": KIB_256 + 1})
    with pytest.raises(Refused) as refusal:
        world.submit("echo", largest + "x")
    assert refusal.value.status == 413
    assert world.completed(echoed)["result"] == largest
    assert len(world.completed(made)["result"]) == KIB_256 - 2
    job = world.api.ended(too_large)
    assert (job["status"], job["error"]["code"]) == ("failed", "result_too_large")
    assert world.api.outcomes(too_large) == ["failed"]


@pytest.mark.heavy
def test_case_03_a_thousand_jobs(world):
    worker = world.worker(capacity=100)
    before = len(worker.proxy.requests)
    begun = time.monotonic()
    jobs = world.api.submit_many([{"type": "echo", "payload": n} for n in range(1000)])
    world.await_events(1000, "end", jobs, within=20.0)
    took = time.monotonic() - begun
    world.await_completed(jobs)
    starts = worker.events("start")
    assert sorted(event["job_id"] for event in starts) == sorted(jobs)
    assert {event["attempt"] for event in starts} == {1}
    assert took < 20.0
    assert len(worker.proxy.requests) - before < 300


def test_case_04_never_more_than_the_capacity(world):
    worker = world.worker(capacity=5)
    jobs = world.api.submit_many([{"type": "sleep", "payload": {"for_ms": 200}} for _ in range(50)])
    world.await_completed(jobs)
    assert len(worker.events("start")) == 50
    assert most_at_once(worker.events()) == 5


def test_case_04_never_more_of_a_type_than_its_slots(world):
    worker = world.worker(capacity=5, conformance={"sleep_capacity": 2})
    slow = world.api.submit_many([{"type": "sleep", "payload": {"for_ms": 300}} for _ in range(10)])
    quick = world.submit("echo", "beside them")
    world.completed(quick)
    assert len(worker.events("end", type="sleep")) < 10, "a full type held up the others"
    world.await_completed(slow, within=10.0)
    assert most_at_once(worker.events(type="sleep")) == 2


@pytest.mark.seconds(65)
def test_case_05_idle_workers_are_quiet_and_quick(world):
    worker = world.worker()
    before = worker.proxy.count("poll")
    time.sleep(60.0)  # idle for 60 s
    assert worker.proxy.count("poll") - before <= 4
    delays = []
    for _ in range(20):
        submitted = now_ms()
        job = world.submit("echo", retry=NEVER)
        delays.append(worker.await_event("start", job)["wall_ms"] - submitted)
        world.completed(job)
    assert statistics.median(delays) < 250, sorted(delays)
