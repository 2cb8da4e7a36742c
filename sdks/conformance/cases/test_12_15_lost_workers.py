"""Cases 12 to 15: workers that die, freeze, or cannot reach the server."""

import http.client
import signal
import threading
import time

import pytest

from cases.common import LEASE_S, NEVER, now_ms, wait_until
from harness.waiting import eventually
from harness.world import free_port

pytestmark = pytest.mark.stores


@pytest.mark.seconds(12)
def test_case_12_a_killed_worker(world, library):
    worker = world.worker(capacity=50)
    jobs = world.api.submit_many([{"type": "sleep", "payload": {"for_ms": 60_000}, "retry": NEVER} for _ in range(50)])
    world.await_events(50, "start", jobs)
    elsewhere = world.worker("elsewhere", capacity=50)
    killed = now_ms()
    worker.kill()
    # Python's heartbeater outlives the main process and says so; the others fall silent for a lease.
    within = 3.0 if library == "python" else LEASE_S + 5.0
    starts = world.await_events(50, "start", jobs, within=within + 3.0, programs=[elsewhere])
    assert max(event["wall_ms"] for event in starts) - killed < within * 1000
    assert {event["attempt"] for event in starts} == {2}
    for job in jobs[:5]:
        assert world.api.attempts(job)[0]["outcome"] == "lost"
    assert {world.api.job(job)["retries"] for job in jobs} == {0}


@pytest.mark.seconds(20)
def test_case_13_a_frozen_worker(world):
    worker = world.worker(queues="default,mine")
    # One would end while it is frozen, the other is still running when it thaws.
    short = world.submit("sleep", {"for_ms": 8_000}, retry=NEVER)
    long = world.submit("sleep", {"for_ms": 60_000}, retry=NEVER)
    for job in (short, long):
        worker.await_event("start", job)
    elsewhere = world.worker("elsewhere")
    frozen = time.monotonic()
    worker.signal(signal.SIGSTOP)
    try:
        for job in (short, long):
            elsewhere.await_event("start", job, within=frozen + 2 * LEASE_S - time.monotonic())
        wait_until(frozen + 2 * LEASE_S)
    finally:
        worker.signal(signal.SIGCONT)
    thawed = time.monotonic()
    eventually("a new session", lambda: worker.proxy.count("register", since=thawed), within=5.0)
    assert worker.await_event("cancelled", long, within=5.0)["reason"] == "lease_lost"
    mine = world.submit("echo", queue="mine")
    worker.await_event("start", mine, within=8.0)
    assert world.completed(short)["attempt"] == 2
    assert world.api.outcomes(short) == ["lost", "completed"]
    assert world.api.outcomes(long) == ["lost", None]
    assert [world.api.job(job)["retries"] for job in (short, long)] == [0, 0]


@pytest.mark.seconds(18)
@pytest.mark.parametrize("fault", ["cut", "freeze"])
def test_case_14_a_short_cut_of_the_network(world, fault):
    worker = world.worker(lease="10s")
    short = world.submit("sleep", {"for_ms": 4_000}, retry=NEVER)
    long = world.submit("sleep", {"for_ms": 14_000}, retry=NEVER)
    worker.await_event("start", short)
    worker.await_event("start", long)
    # Right after a heartbeat, so that half a lease is really half a lease.
    worker.proxy.await_answer("heartbeat")
    getattr(worker.proxy, fault)()
    time.sleep(5.0)
    worker.proxy.heal()
    for job in (short, long):
        assert world.completed(job)["attempt"] == 1
        assert world.api.outcomes(job) == ["completed"]
        assert len(worker.events("start", job)) == 1
        assert worker.events("cancelled", job) == []
    assert worker.proxy.count("register") == 1


def health(port, path="/healthz"):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except OSError:
        return None
    finally:
        connection.close()


class HealthLog(threading.Thread):
    """The statuses of a health endpoint, in order, without repeats."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port, self.statuses, self.stopped = port, [], False
        self.start()

    def run(self):
        while not self.stopped:
            status = health(self.port)
            if status is not None and self.statuses[-1:] != [status]:
                self.statuses.append(status)
            time.sleep(0.1)


@pytest.mark.seconds(25)
@pytest.mark.parametrize("fault", ["cut", "freeze"])
def test_case_15_a_long_cut_of_the_network(world, fault):
    port = free_port()
    worker = world.worker(queues="default,mine", health_port=port)
    job = world.submit("sleep", {"for_ms": 60_000}, retry=NEVER)
    worker.await_event("start", job)
    world.worker("elsewhere")
    eventually("good health", lambda: health(port) == 200, within=8.0)
    watched = HealthLog(port)
    begun, begun_ms = time.monotonic(), now_ms()
    getattr(worker.proxy, fault)()
    event = worker.await_event("cancelled", job, within=LEASE_S + 1.0)
    assert event["reason"] == "lease_lost"
    assert event["wall_ms"] - begun_ms < LEASE_S * 1000
    eventually("the job to run elsewhere", lambda: len(world.events("start", job)) == 2, within=LEASE_S + 5.0)
    wait_until(begun + 3 * LEASE_S)
    worker.proxy.heal()
    mine = world.submit("echo", queue="mine")
    worker.await_event("start", mine, within=12.0)
    assert worker.proxy.count("register") == 2
    assert world.api.attempts(job)[0]["outcome"] in ("lost", "released")
    assert len(world.api.attempts(job)) == 2
    assert world.api.job(job)["retries"] == 0
    eventually("good health", lambda: health(port) == 200, within=8.0)
    time.sleep(0.3)
    watched.stopped = True
    assert watched.statuses == [200, 503, 200]
    assert worker.log_lines("lease")


@pytest.mark.seconds(30)
def test_case_15_a_handler_that_goes_on(world):
    worker = world.worker(conformance={"on_lease_lost": "continue"})
    job = world.submit("sleep", {"for_ms": 12_000}, retry=NEVER)
    worker.await_event("start", job)
    elsewhere = world.worker("elsewhere")
    worker.proxy.cut()
    cut = time.monotonic()
    elsewhere.await_event("start", job, within=LEASE_S + 5.0)
    worker.await_event("end", job, within=14.0)
    wait_until(cut + 3 * LEASE_S)
    worker.proxy.heal()
    eventually("a line about a stale report", lambda: worker.log_lines("stale"), within=12.0)
    assert worker.events("cancelled", job) == []
    ended = world.completed(job)
    assert (ended["attempt"], ended["retries"]) == (2, 0)
    assert [attempt["outcome"] for attempt in world.api.attempts(job)] == ["lost", "completed"]
