"""What only shows in a process of its own: signals, death, a held lock, children."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_server import FakeServer

HERE = Path(__file__).parent


class Program:
    def __init__(self, fake: FakeServer, *arguments: str, **environment: str) -> None:
        variables = {**os.environ, "TICKWHEEL_SERVER": fake.url, "PYTHONPATH": str(HERE), **environment}
        command = list(arguments) or [str(HERE / "program.py")]
        self.process = subprocess.Popen(
            [sys.executable, *command], env=variables, stderr=subprocess.PIPE, text=True, cwd=HERE
        )

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def wait(self, within: float = 15.0) -> int:
        return self.process.wait(within)

    def log(self) -> str:
        assert self.process.stderr is not None
        return self.process.stderr.read()


@pytest.fixture
def programs() -> Iterator[list[Program]]:
    started: list[Program] = []
    yield started
    for program in started:
        program.process.kill()
        program.process.wait()
        assert program.process.stderr is not None
        program.process.stderr.close()


@pytest.fixture
def start(fake: FakeServer, programs: list[Program]) -> Any:
    def begin(*arguments: str, **environment: str) -> Program:
        program = Program(fake, *arguments, **environment)
        programs.append(program)
        return program

    return begin


def children_of(pid: int) -> list[tuple[int, str]]:
    found: list[tuple[int, str]] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
                if int(stat.rpartition(")")[2].split()[1]) == pid:
                    found.append((int(entry.name), (entry / "cmdline").read_text().replace("\0", " ")))
            except (OSError, ValueError, IndexError):
                continue
    return found


def is_alive(pid: int) -> bool:
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def running(fake: FakeServer, count: int = 1) -> None:
    """So many attempts run, and the heartbeater knows of them."""
    fake.wait(lambda: any(beat.get("held") == count for beat in fake.calls("heartbeat")), 15.0)


def test_a_killed_worker_is_left_as_crashed_within_a_second(fake: FakeServer, start: Any) -> None:
    program = start()
    for _ in range(50):
        fake.submit("sleep", 60.0)
    running(fake, 50)
    (heartbeater,) = [pid for pid, command in children_of(program.process.pid) if "_heartbeater" in command]
    program.signal(signal.SIGKILL)
    killed = time.monotonic()
    fake.wait(lambda: fake.left, 1.0)
    assert time.monotonic() - killed < 1.0
    assert fake.left[0][1] == "crashed"
    assert len(fake.queue) == 50
    while is_alive(heartbeater):
        assert time.monotonic() - killed < 2.0
        time.sleep(0.02)


def test_a_forked_child_does_not_hide_that_its_parent_died(fake: FakeServer, start: Any) -> None:
    program = start()
    child = fake.report_of(fake.submit("fork"))["result"]
    try:
        program.signal(signal.SIGKILL)
        fake.wait(lambda: fake.left, 2.0)
        assert fake.left[0][1] == "crashed"
    finally:
        os.kill(child, signal.SIGKILL)


def test_a_stopped_worker_falls_silent_and_starts_anew(fake: FakeServer, start: Any) -> None:
    program = start()
    job = fake.submit("sleep", 60.0)
    running(fake)
    program.signal(signal.SIGSTOP)
    time.sleep(1.5)  # a heartbeat may be on its way
    beats = len(fake.calls("heartbeat"))
    time.sleep(1.5)
    assert len(fake.calls("heartbeat")) == beats, "it is alive for somebody who is not"
    fake.forget_sessions()
    program.signal(signal.SIGCONT)
    woken = time.monotonic()
    assert fake.report_of(fake.submit("echo", 1))["result"] == 1
    assert time.monotonic() - woken < 2.5
    assert not [report for report in fake.reports if report["job_id"] == job]


def test_a_handler_that_holds_the_lock_does_not_stop_the_heartbeats(fake: FakeServer, start: Any) -> None:
    fake.lease, fake.interval = "1500ms", "500ms"
    program = start()
    fake.wait(lambda: fake.calls("heartbeat"))
    job = fake.submit("hold_the_lock", 4.0)
    fake.token_of(job)
    time.sleep(0.5)
    begun = len(fake.calls("heartbeat"))
    time.sleep(3.0)
    during = fake.calls("heartbeat")[begun:]
    assert len(during) >= 4
    assert any("held" not in beat for beat in during), "nobody could tell how many"
    assert fake.report_of(job)["outcome"] == "completed"
    assert len(fake.calls("register")) == 1
    program.signal(signal.SIGTERM)
    assert program.wait() == 0
    assert "main loop blocked" in (text := program.log())
    assert "hold_the_lock" in text


def test_a_heartbeater_that_dies_is_replaced(fake: FakeServer, start: Any) -> None:
    program = start()
    job = fake.submit("sleep", 3.0)
    running(fake)
    (heartbeater,) = [pid for pid, command in children_of(program.process.pid) if "_heartbeater" in command]
    os.kill(heartbeater, signal.SIGTERM)  # which it ignores
    os.kill(heartbeater, signal.SIGKILL)
    beats = len(fake.calls("heartbeat"))
    fake.wait(lambda: any(beat.get("held") == 1 for beat in fake.calls("heartbeat")[beats:]), 4.0)
    assert fake.report_of(job)["outcome"] == "completed"
    assert not fake.left
    assert len(fake.calls("register")) == 1


def test_the_first_signal_drains_and_the_second_hurries(fake: FakeServer, start: Any) -> None:
    program = start()
    done, cancelled = fake.submit("sleep", 3.0), fake.submit("sleep", 60.0)
    running(fake, 2)
    program.signal(signal.SIGTERM)
    assert fake.report_of(done)["outcome"] == "completed"
    assert program.process.poll() is None
    program.signal(signal.SIGTERM)
    assert program.wait(4.0) == 0
    assert fake.report_of(cancelled)["outcome"] == "released"
    assert fake.left[0][1] == "drained"


def test_the_third_signal_ends_it(fake: FakeServer, start: Any) -> None:
    program = start()
    fake.submit("ignore", 60.0)
    running(fake)
    for _ in range(3):
        program.signal(signal.SIGINT)
        time.sleep(0.2)
    assert program.wait() == 130
    fake.wait(lambda: fake.left)


def test_a_handler_that_ignores_everything_does_not_keep_the_process(fake: FakeServer, start: Any) -> None:
    program = start(TICKWHEEL_DRAIN_TIMEOUT="100ms")
    fake.submit("ignore", 60.0)
    running(fake)
    program.signal(signal.SIGTERM)
    assert program.wait(6.0) == 0
    assert len(fake.queue) == 1, "what was left goes back"


def test_bad_options_end_it_with_2_and_one_line(fake: FakeServer, start: Any) -> None:
    program = start(TICKWHEEL_HEALTH_PORT="-1", TICKWHEEL_LEASE="banana")
    assert program.wait() == 2
    lines = [line for line in program.log().splitlines() if "TICKWHEEL_" in line]
    assert len(lines) == 1
    assert "TICKWHEEL_HEALTH_PORT" in lines[0]
    assert "TICKWHEEL_LEASE" in lines[0]


def test_sys_exit_in_a_task_of_a_handler_does_not_end_the_worker(fake: FakeServer, start: Any) -> None:
    start()
    assert fake.report_of(fake.submit("exit_in_a_task"))["result"] == "lives on, True"
    assert fake.report_of(fake.submit("echo", 1))["result"] == 1


def test_isolated_handlers_run_in_children_of_their_own(fake: FakeServer, start: Any) -> None:
    program = start()
    job = fake.submit("isolated", {"how": "where"})
    report = fake.report_of(job, 10.0)
    assert report["outcome"] == "completed", report
    result = report["result"]
    assert result["pid"] == result["lifespan"] != program.process.pid
    assert result["once"] == f"{job}:k"
    assert [line["message"] for line in fake.logs[job]] == ["from the child"]
    again = fake.report_of(fake.submit("isolated", {"how": "where"}))["result"]
    assert again["pid"] == result["pid"], "a child is used again"
    died = fake.report_of(fake.submit("isolated", {"how": "die"}))
    assert died["error"]["code"] == "process_died"
    assert "exit code 7" in died["error"]["message"]
    raised = fake.report_of(fake.submit("isolated", {"how": "raise"}), 10.0)
    assert (raised["error"]["code"], raised["error"]["type"]) == ("value_error", "ValueError")
    program.signal(signal.SIGTERM)
    assert program.wait() == 0
    assert not is_alive(result["pid"])


@pytest.mark.parametrize("how", ["clean", "stubborn"])
def test_an_isolated_handler_can_be_ended(fake: FakeServer, start: Any, how: str) -> None:
    program = start()
    fake.report_of(fake.submit("isolated", {"how": "none"}), 10.0)
    job = fake.submit("isolated", {"how": how})
    running(fake)
    time.sleep(0.3)
    asked = time.monotonic()
    fake.cancel(job)
    assert fake.report_of(job)["outcome"] == "cancelled"
    took = time.monotonic() - asked
    if how == "clean":
        assert took < 0.5
        assert fake.logs[job][-1]["message"] == "cleaned up: requested"
    else:
        assert 0.4 < took < 2.0, "SIGKILL after the grace"
    assert program.process.poll() is None


def test_children_end_with_a_worker_that_was_killed(fake: FakeServer, start: Any) -> None:
    program = start()
    child = fake.report_of(fake.submit("isolated", {"how": "where"}), 10.0)["result"]["pid"]
    program.signal(signal.SIGKILL)
    until = time.monotonic() + 2.0
    while is_alive(child):
        assert time.monotonic() < until
        time.sleep(0.02)


def test_several_processes(fake: FakeServer, start: Any) -> None:
    arguments = ["-m", "tickwheel", "worker", "several:worker", "--processes", "2", "--jobs-max", "3"]
    fake.requeue = True
    program = start(*arguments)
    fake.wait(lambda: len(fake.sessions) == 2, 20.0)
    jobs = [fake.submit("pid") for _ in range(10)]
    fake.wait(lambda: sum("result" in report for report in fake.reports) == len(jobs), 20.0)
    pids = {report["result"] for report in fake.reports if "result" in report}
    assert len(pids) >= 3, "a process is replaced after three jobs or a few more"
    fake.wait(lambda: len(fake.sessions) == 2, 20.0)
    program.signal(signal.SIGTERM)
    assert program.wait() == 0
    assert not fake.sessions


def test_processes_end_with_their_supervisor(fake: FakeServer, start: Any) -> None:
    program = start("-m", "tickwheel", "worker", "several:worker", "--processes", "2")
    fake.wait(lambda: len(fake.sessions) == 2, 20.0)
    program.signal(signal.SIGKILL)
    fake.wait(lambda: not fake.sessions, 5.0)
    assert {reason for _, reason in fake.left} == {"drained"}


@pytest.mark.parametrize("target", ["several", "several:nothing", "missing:worker"])
def test_a_wrong_target_ends_with_2(fake: FakeServer, start: Any, target: str) -> None:
    program = start("-m", "tickwheel", "worker", target)
    assert program.wait() == 2
    assert "tickwheel:" in program.log()
