from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tickwheel import Client, ConfigurationError, JobType, Worker
from tickwheel._settings import Addresses, ApiKey, Mistakes, worker_settings


def settings(environment: dict[str, str] | None = None, **given: Any) -> Any:
    names = [
        "server",
        "api_key",
        "ca_file",
        "name",
        "queues",
        "labels",
        "capacity",
        "lease",
        "drain_timeout",
        "health_port",
    ]
    mistakes = Mistakes()
    found = worker_settings(**{**dict.fromkeys(names), **given}, mistakes=mistakes, environment=environment or {})
    mistakes.report()
    return found


def test_the_environment_is_read_and_arguments_win() -> None:
    environment = {
        "TICKWHEEL_SERVER": "http://a:1, http://b:2/",
        "TICKWHEEL_API_KEY": "tw_x",
        "TICKWHEEL_WORKER_NAME": "mailer",
        "TICKWHEEL_QUEUES": "mail, default",
        "TICKWHEEL_LABELS": "gpu=true,memory=16,zone=eu-1",
        "TICKWHEEL_CAPACITY": "20",
        "TICKWHEEL_LEASE": "30s",
        "TICKWHEEL_DRAIN_TIMEOUT": "1s",
        "TICKWHEEL_HEALTH_PORT": "8080",
    }
    found = settings(environment, capacity=3)
    assert found.connection.addresses.urls == ["http://a:1", "http://b:2"]
    assert found.connection.key.value == "tw_x"
    assert (found.name, found.queues, found.capacity) == ("mailer", ["mail", "default"], 3)
    assert found.labels == {"gpu": True, "memory": 16.0, "zone": "eu-1"}
    assert (found.lease_s, found.drain_timeout_s, found.health_port) == (30.0, 1.0, 8080)


def test_defaults() -> None:
    found = settings()
    assert found.connection.addresses.urls == ["http://127.0.0.1:7180"]
    assert (found.capacity, found.lease_s, found.drain_timeout_s, found.health_port) == (10, None, 25.0, None)


def test_all_mistakes_are_reported_together_by_their_variables() -> None:
    bad = {"CAPACITY": "0", "LEASE": "banana", "SERVER": "ftp://x", "LABELS": "x", "HEALTH_PORT": "99999"}
    bad["API_KEY"], bad["API_KEY_FILE"] = "a", "b"
    with pytest.raises(ConfigurationError) as error:
        settings({f"TICKWHEEL_{name}": value for name, value in bad.items()})
    for name in bad:
        assert f"TICKWHEEL_{name}" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_worker_without_handlers_is_a_mistake() -> None:
    with pytest.raises(ConfigurationError, match="no handlers"):
        Worker().settings()


def test_a_key_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text("one\n")
    key = ApiKey("one", path)
    assert not key.reload()
    path.write_text("two\n")
    assert key.reload()
    assert key.value == "two"
    path.unlink()
    assert not key.reload()
    assert key.value == "two"


def test_a_bad_address_of_a_client_is_a_mistake() -> None:
    with pytest.raises(ConfigurationError, match="is not an address"):
        Client("localhost:7180")


def test_addresses_are_tried_in_turn() -> None:
    addresses = Addresses(["http://a", "http://b"])
    first = addresses.current
    addresses.advance(first)
    second = addresses.current
    assert {first, second} == {"http://a", "http://b"}
    addresses.advance(first)  # late news about the one that was left already
    assert addresses.current == second


def test_queues_are_those_of_the_job_types_unless_given() -> None:
    worker = Worker()
    worker.handler(JobType("a", dict, queue="mail"))(lambda payload: None)
    worker.handler(JobType("b", dict))(lambda payload: None)
    assert worker.queues_of_types() == ["default", "mail"]
