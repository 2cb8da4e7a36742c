"""Settings: arguments first, then `TICKWHEEL_…` in the environment, then defaults. Mistakes are reported together."""

from __future__ import annotations

import math
import os
import random
import re
import socket
import ssl
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from ._durations import Duration, seconds
from .errors import ConfigurationError

T = TypeVar("T")
Label = str | bool | float

DEFAULT_SERVER = "http://127.0.0.1:7180"
LEASE_S_MIN, LEASE_S_MAX = 5.0, 600.0
CAPACITY_MAX = 100_000


class ApiKey:
    """The key that requests carry. One that comes from a file is read anew when the server refuses it."""

    def __init__(self, key: str | None, path: Path | None = None) -> None:
        self._key, self._path = key, path
        self._lock = threading.Lock()

    @property
    def value(self) -> str | None:
        return self._key

    @property
    def path(self) -> Path | None:
        return self._path

    def reload(self) -> bool:
        """Reads the file again. Whether the key has changed."""
        if self._path is None:
            return False
        try:
            key = self._path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            return False
        with self._lock:
            changed = key != self._key and key != ""
            self._key = key or self._key
            return changed


class Addresses:
    """The servers to try: one of them until it does not answer, then the next, from a random one."""

    def __init__(self, urls: Sequence[str]) -> None:
        self.urls = [url.rstrip("/") for url in urls]
        self._index = random.randrange(len(self.urls))  # noqa: S311 - spreads load, guards nothing

    @property
    def current(self) -> str:
        return self.urls[self._index]

    def advance(self, failed: str) -> None:
        """Goes on to the next one, unless somebody else has already left the one that failed."""
        if self.current == failed:
            self._index = (self._index + 1) % len(self.urls)


@dataclass(frozen=True)
class Connection:
    """How to reach the server."""

    addresses: Addresses
    key: ApiKey
    ca_file: str | None = None

    def verify(self) -> ssl.SSLContext | bool:
        """What the HTTP client checks certificates with."""
        if not any(url.startswith("https:") for url in self.addresses.urls):
            return False  # nothing to check, and loading certificates takes 50 ms
        return ssl.create_default_context(cafile=self.ca_file) if self.ca_file else True


@dataclass(frozen=True)
class WorkerSettings:
    """What a worker runs with."""

    connection: Connection
    name: str
    queues: list[str]
    labels: dict[str, Label]
    capacity: int
    lease_s: float | None
    drain_timeout_s: float
    health_port: int | None
    cancel_stage_s: float = 3.0
    parent_pid: int | None = None
    """The supervisor of a worker that is one of several: without it, the worker drains."""
    jobs_max: int | None = None
    """The worker drains after so many jobs, to be replaced."""


@dataclass
class Mistakes:
    """Collects what is wrong, to say it all at once."""

    found: list[str] = field(default_factory=lambda: list[str]())

    def check(self, name: str, value: Any, read: Callable[[Any], T], default: T) -> T:
        try:
            return read(value)
        except (ValueError, TypeError, OSError) as error:
            self.found.append(f"{name}: {error}")
            return default

    def report(self) -> None:
        if self.found:
            raise ConfigurationError(self.found)


def _given(argument: T | None, variable: str, environment: Mapping[str, str]) -> tuple[str, T | str | None]:
    if argument is not None:
        return variable.removeprefix("TICKWHEEL_").lower(), argument
    text = environment.get(variable, "").strip()
    return variable, text or None


def connection(
    server: str | Sequence[str] | None,
    api_key: str | None,
    ca_file: str | None,
    mistakes: Mistakes,
    environment: Mapping[str, str] | None = None,
) -> Connection:
    """How to reach the server, from arguments and the environment."""
    environment = os.environ if environment is None else environment
    name, value = _given(server, "TICKWHEEL_SERVER", environment)
    urls = mistakes.check(name, value or DEFAULT_SERVER, _urls, [DEFAULT_SERVER])
    ca_name, ca = _given(ca_file, "TICKWHEEL_CA_FILE", environment)
    ca = mistakes.check(ca_name, ca, _readable, None)
    return Connection(Addresses(urls), _key(api_key, mistakes, environment), ca)


def _key(api_key: str | None, mistakes: Mistakes, environment: Mapping[str, str]) -> ApiKey:
    path = environment.get("TICKWHEEL_API_KEY_FILE", "").strip()
    key = environment.get("TICKWHEEL_API_KEY", "").strip()
    if api_key is not None:
        return mistakes.check("api_key", api_key, lambda text: ApiKey(_header_text(text)), ApiKey(None))
    if key and path:
        mistakes.found.append("TICKWHEEL_API_KEY and TICKWHEEL_API_KEY_FILE: set one of them")
    if key:
        return mistakes.check("TICKWHEEL_API_KEY", key, lambda text: ApiKey(_header_text(text)), ApiKey(None))
    if not path:
        return ApiKey(None)
    read = mistakes.check("TICKWHEEL_API_KEY_FILE", path, _key_from, None)
    return ApiKey(read, Path(path))


def _key_from(path: str) -> str | None:
    key = Path(path).read_text(encoding="utf-8").strip()
    if not key:
        raise ValueError(f"{path} is empty")
    return _header_text(key)


def _header_text(text: str) -> str:
    if not re.fullmatch(r"[\x21-\x7e]+", text):
        raise ValueError("a key has only visible ASCII characters")
    return text


def _urls(value: Any) -> list[str]:
    urls = [text.strip() for text in value.split(",")] if isinstance(value, str) else list(value)
    if not urls:
        raise ValueError("at least one address is needed")
    for url in urls:
        parts = urlsplit(str(url))
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is not an address such as {DEFAULT_SERVER}")
        if parts.port is not None and parts.port == 0:
            raise ValueError(f"{url!r} has no usable port")
    return urls


def _readable(path: Any) -> str | None:
    if path is None:
        return None
    ssl.create_default_context(cafile=str(path))
    return str(path)


def _queues(value: Any) -> list[str]:
    queues = [name.strip() for name in value.split(",")] if isinstance(value, str) else list(value)
    if not all(isinstance(name, str) and name for name in queues):
        raise ValueError("the names of queues are separated by commas")
    return queues


def _labels(value: Any) -> dict[str, Label]:
    if isinstance(value, str):
        pairs = [pair.partition("=") for pair in value.split(",") if pair.strip()]
        if not all(name.strip() and equals for name, equals, _ in pairs):
            raise ValueError("labels are written as name=value,name=value")
        return {name.strip(): _label(text.strip()) for name, _, text in pairs}
    labels: dict[str, Any] = dict(value)
    if not all(isinstance(label, (str, bool, int, float)) for label in labels.values()):
        raise ValueError("a label is a text, a number, true or false")
    return labels


def _label(text: str) -> Label:
    if text in ("true", "false"):
        return text == "true"
    try:
        number = float(text)
    except ValueError:
        return text
    return number if math.isfinite(number) else text


def whole_number(low: int, high: int) -> Callable[[Any], int]:
    """A reader of whole numbers in a range."""

    def read(value: Any) -> int:
        number = int(value)
        if isinstance(value, (bool, float)) or not low <= number <= high:
            raise ValueError(f"must be a whole number from {low} to {high}, not {value!r}")
        return number

    return read


def _lease(value: Any) -> float:
    lease_s = seconds(value)
    if not LEASE_S_MIN <= lease_s <= LEASE_S_MAX:
        raise ValueError(f"must be from 5s to 10m, not {value!r}")
    return lease_s


def worker_settings(
    *,
    server: str | Sequence[str] | None,
    api_key: str | None,
    ca_file: str | None,
    name: str | None,
    queues: Sequence[str] | None,
    labels: Mapping[str, Label] | None,
    capacity: int | None,
    lease: Duration | None,
    drain_timeout: Duration | None,
    health_port: int | None,
    mistakes: Mistakes,
    environment: Mapping[str, str] | None = None,
) -> WorkerSettings:
    """Everything a worker runs with, from arguments and the environment."""
    env = os.environ if environment is None else environment

    def setting(argument: Any, variable: str, read: Callable[[Any], T], default: T) -> T:
        label, value = _given(argument, f"TICKWHEEL_{variable}", env)
        return default if value is None else mistakes.check(label, value, read, default)

    return WorkerSettings(
        connection=connection(server, api_key, ca_file, mistakes, env),
        name=setting(name, "WORKER_NAME", str, socket.gethostname() or "worker"),
        queues=setting(queues, "QUEUES", _queues, []),
        labels=setting(labels, "LABELS", _labels, {}),
        capacity=setting(capacity, "CAPACITY", whole_number(1, CAPACITY_MAX), 10),
        lease_s=setting(lease, "LEASE", _lease, None),
        drain_timeout_s=setting(drain_timeout, "DRAIN_TIMEOUT", seconds, 25.0),
        health_port=setting(health_port, "HEALTH_PORT", whole_number(0, 65535), None),
    )
