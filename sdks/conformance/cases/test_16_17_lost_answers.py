"""Cases 16 and 17: answers that get lost, and servers that go away."""

import time

import pytest

from cases.common import LEASE_S, NEVER, wait_until
from harness.proxy import Wire
from harness.waiting import eventually

pytestmark = pytest.mark.stores

TWO_LEASES = 2 * LEASE_S


def has_jobs(request):
    return bool((request.answer_json() or {}).get("jobs"))


def test_case_16_a_lost_registration(world):
    worker = world.prepare_worker()
    fault = worker.proxy.swallow("register")
    world.await_polling(worker.start(), within=TWO_LEASES)
    assert len(fault.hits) == 1
    assert len(world.api.workers("worker")) == 1
    world.completed(world.submit("echo"), within=TWO_LEASES)


def test_case_16_a_lost_answer_to_a_poll(world):
    worker = world.worker()
    fault = worker.proxy.swallow("poll", when=has_jobs)
    job = world.submit("sleep", {"for_ms": 100}, retry=NEVER)
    world.completed(job, within=TWO_LEASES)
    assert len(fault.hits) == 1
    assert len(worker.events("start", job)) == 1
    assert world.api.outcomes(job) == ["completed"]
    assert worker.proxy.count("register") == 1


@pytest.mark.parametrize("silently", [False, True], ids=["reset", "silence"])
def test_case_16_a_lost_answer_to_a_heartbeat(world, silently):
    worker = world.worker()
    job = world.submit("sleep", {"for_ms": 6_000}, retry=NEVER)
    worker.await_event("start", job)
    fault = worker.proxy.swallow("heartbeat", silently=silently)
    world.completed(job, within=TWO_LEASES)
    assert len(fault.hits) == 1
    assert world.api.outcomes(job) == ["completed"]
    assert worker.proxy.count("register") == 1
    assert worker.events("cancelled", job) == []


@pytest.mark.parametrize("silently", [False, True], ids=["reset", "silence"])
def test_case_16_a_lost_answer_to_a_report(world, silently):
    worker = world.worker()
    lost = 1 if silently else 2
    fault = worker.proxy.swallow("report", count=lost, silently=silently)
    job = world.submit("echo", {"n": 1}, retry=NEVER)
    eventually("reports to be lost", lambda: len(fault.hits) == lost, within=TWO_LEASES)
    eventually("another one", lambda: worker.proxy.count("report") > lost, within=TWO_LEASES + 1.0)
    assert world.completed(job)["result"] == {"n": 1}
    assert len(worker.events("start", job)) == 1
    assert world.api.outcomes(job) == ["completed"]
    sent = [report.json()["reports"] for report in worker.proxy.of_kind("report")[:lost + 1]]
    assert all(reports == sent[0] for reports in sent)
    world.completed(world.submit("echo"), within=8.0)


@pytest.mark.seconds(8)
def test_case_16_lost_answers_to_log_lines(world):
    worker = world.worker()
    fault = worker.proxy.swallow("logs", count=3)
    job = world.submit("log", {"lines": 30, "bytes": 30, "every_ms": 150}, retry=NEVER)
    world.completed(job, within=TWO_LEASES)
    assert fault.hits, "no lines were sent while it ran"
    messages = [line["message"] for line in world.api.logs(job)]
    assert messages == [f"line {n} ".ljust(30, "x") for n in range(1, 31)]


@pytest.mark.parametrize("part", ["first", "done"])
def test_case_16_lost_answers_to_once(world, part):
    worker = world.worker()
    fault = worker.proxy.swallow("once", when=lambda request: request.path.endswith("/done") == (part == "done"))
    job = world.submit("once", {"key": "letter", "calls": 2}, retry=NEVER)
    ended = world.completed(job, within=TWO_LEASES)
    assert len(fault.hits) == 1
    assert len(worker.events("effect", job)) == 1
    assert ended["result"] == [{"effect": f"{job}:letter"}] * 2


def test_case_16_a_lost_answer_to_a_submission(world):
    proxy = world.proxy()
    fault = proxy.swallow("submit", count=2)
    answer = world.submit_by_program("one", {"type": "echo", "payload": 1, "queue": "mine"}, proxy=proxy, within=20.0)
    assert len(fault.hits) == 2
    assert [job["id"] for job in world.api.list_all("/api/v1/jobs", queue="mine")] == [answer["id"]]


@pytest.mark.seconds(15)
@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_case_17_a_restarted_server(world, how):
    worker = world.worker()
    session = world.api.workers("worker")[0]["id"]
    job = world.submit("sleep", {"for_ms": 6_000}, retry=NEVER)
    worker.await_event("start", job)
    worker.proxy.await_answer("heartbeat")
    away = time.monotonic()
    if how == "killed":
        world.server.kill()
    else:
        assert world.server.terminate() == 0
    wait_until(away + 2.2)  # with its start, it is away for 3 s
    world.server.start()
    ended = world.completed(job)
    assert ended["attempt"] == 1
    assert world.api.outcomes(job) == ["completed"]
    assert len(worker.events("start", job)) == 1
    assert worker.proxy.count("register") == 1
    assert [entry["id"] for entry in world.api.workers("worker")] == [session]
    world.completed(world.submit("echo"), within=10.0)


@pytest.mark.only_postgres
@pytest.mark.seconds(15)
def test_case_17_the_home_node_is_killed(world):
    second = world.start_server()
    proxies = [world.proxy(world.server), world.proxy(second)]
    worker = world.prepare_worker(proxy=proxies[0], server=",".join(proxy.url for proxy in proxies), lease="10s").start()
    eventually("it to poll", lambda: any(proxy.count("poll") for proxy in proxies))
    home = 0 if proxies[0].count("poll") else 1
    job = world.submit("sleep", {"for_ms": 7_000}, retry=NEVER)
    worker.await_event("start", job)
    world.servers[home].kill()
    world.server = world.servers[1 - home]
    ended = world.completed(job, within=30.0)
    assert ended["attempt"] == 1
    assert world.api.outcomes(job) == ["completed"]
    assert sum(proxy.count("register") for proxy in proxies) == 1
    world.completed(world.submit("echo"), within=30.0)


@pytest.mark.only_postgres
@pytest.mark.seconds(20)
def test_case_17_the_store_is_away(bare_world):
    world = bare_world
    wire = Wire(world.database.address)
    world.proxies.append(wire)
    world.add_server(world.database.url_through(wire.port))
    worker = world.worker(lease="30s")
    job = world.submit("sleep", {"for_ms": 4_000}, retry=NEVER)
    worker.await_event("start", job)
    wire.cut()
    time.sleep(8.0)  # away for 8 s; the handler ends meanwhile
    wire.heal()
    ended = world.completed(job, within=20.0)
    assert ended["attempt"] == 1
    assert world.api.outcomes(job) == ["completed"]
    assert worker.proxy.count("register") == 1
    world.completed(world.submit("echo"), within=10.0)
