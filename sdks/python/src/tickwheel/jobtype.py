"""The contract of a kind of work: a value that both sides import.

A `JobType` has a name, the types of payload and result, and defaults for submitting. It never refers to a handler, so
that whoever submits does not import what executes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, TypedDict, TypeVar, cast, overload

from ._codec import Codec, Mismatch, codec_for, encode, to_json
from ._durations import Duration, to_wire
from .errors import InvalidPayload, InvalidResult
from .models import Delivery, Priority

if TYPE_CHECKING:
    from typing_extensions import Unpack

P = TypeVar("P")
R = TypeVar("R")
Q = TypeVar("Q")

PAYLOAD_BYTES_MAX = 256 * 1024


class Unique(TypedDict, total=False):
    """Which jobs count as the same job, and for how long."""

    by: Sequence[str]
    within: Duration
    on_duplicate: str


class Retry(TypedDict, total=False):
    """How often and how soon a failed job is tried again."""

    max_retries: int
    backoff: str
    initial_delay: Duration
    max_delay: Duration
    jitter: float
    delays: Sequence[Duration]
    non_retryable: Sequence[str]


class TaskOptions(TypedDict, total=False):
    """What may be said about a job beside its type and payload, also if it is a task of a workflow."""

    queue: str
    priority: Priority
    max_retries: int
    retry: Retry
    timeout: Duration
    delivery: Delivery
    tags: Sequence[str]
    metadata: Mapping[str, Any]
    requires: Mapping[str, Any]
    concurrency_key: str
    concurrency_limit: int
    on_limit: str
    callback_url: str
    created_by: str
    target: Mapping[str, Any]


class JobOptions(TaskOptions, total=False):
    """What may be said about a job beside its type and payload."""

    delay: Duration
    execute_at: datetime | str
    depends_on: Sequence[str]
    unique: Unique
    idempotency_key: str


_DURATIONS = {"delay", "timeout", "initial_delay", "max_delay", "within"}


def options_to_wire(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as the server reads them. `max_retries` is short for that field of `retry`."""
    wire = {name: _to_wire(name, value) for name, value in options.items() if value is not None}
    if "max_retries" in wire:
        wire["retry"] = {"max_retries": wire.pop("max_retries"), **wire.get("retry", {})}
    return wire


def _to_wire(name: str, value: Any) -> Any:
    if name in _DURATIONS:
        return to_wire(value)
    if name == "delays":
        return [to_wire(delay) for delay in value]
    if name in ("retry", "unique"):
        return {inner: _to_wire(inner, entry) for inner, entry in value.items() if entry is not None}
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError(f"{name} has no time zone: {value}")
        return value.isoformat()
    return to_json(value)


@dataclass(frozen=True)
class NewJob(Generic[P, R]):
    """A job to submit: its type, its payload as JSON, and its options as the server reads them."""

    type: JobType[P, R]
    payload: Any
    options: Mapping[str, Any]

    def to_wire(self) -> dict[str, Any]:
        """The request body."""
        wire: dict[str, Any] = {"type": self.type.name, **self.options}
        if self.payload is not None:
            wire["payload"] = self.payload
        return wire


class JobType(Generic[P, R]):
    """A kind of work: its name, the types of its payload and result, and defaults for submitting."""

    @overload
    def __init__(self, name: str, payload: type[P], result: type[R], **defaults: Unpack[JobOptions]) -> None: ...
    @overload
    def __init__(self: JobType[Q, Any], name: str, payload: type[Q], **defaults: Unpack[JobOptions]) -> None: ...
    @overload
    def __init__(
        self: JobType[Any, Any], name: str, payload: object = ..., result: object = ..., **defaults: Unpack[JobOptions]
    ) -> None: ...
    def __init__(self, name: str, payload: Any = Any, result: Any = Any, **defaults: Any) -> None:
        if not name:
            raise ValueError("a job type needs a name")
        self.name = name
        self._payload, self._result = codec_for(payload), codec_for(result)
        _known_options(defaults)
        self.defaults: Mapping[str, Any] = options_to_wire(defaults)

    def new(self, payload: P, **options: Unpack[JobOptions]) -> NewJob[P, R]:
        """A job of this type, checked but not submitted."""
        _known_options(options)
        return NewJob(self, self._checked(payload), self._merged(options_to_wire(options)))

    def read_payload(self, data: Any) -> P:
        """The payload that this JSON stands for. Raises `InvalidPayload`."""
        return cast("P", _read(self._payload, data, InvalidPayload))

    def read_result(self, data: Any) -> R:
        """The result that this JSON stands for. Raises `InvalidResult`."""
        return cast("R", _read(self._result, data, InvalidResult))

    def write_result(self, value: R) -> bytes:
        """The JSON of a result. Raises `InvalidResult`."""
        try:
            return encode(self._result.write(value))
        except Mismatch as mismatch:
            raise InvalidResult(str(mismatch)) from mismatch

    def _checked(self, payload: P) -> Any:
        try:
            data = self._payload.write(payload)
            length = len(encode(data))
        except Mismatch as mismatch:
            raise InvalidPayload(f"{self.name}: {mismatch}") from mismatch
        if length > PAYLOAD_BYTES_MAX:
            raise InvalidPayload(f"{self.name}: the payload has {length} bytes, more than {PAYLOAD_BYTES_MAX}")
        return data

    def _merged(self, options: dict[str, Any]) -> dict[str, Any]:
        merged = {**self.defaults, **options}
        if "retry" in self.defaults and "retry" in options:
            merged["retry"] = {**self.defaults["retry"], **options["retry"]}
        if "delay" in options:
            merged.pop("execute_at", None)
        if "execute_at" in options:
            merged.pop("delay", None)
        return merged

    def __repr__(self) -> str:
        return f"JobType({self.name!r})"


def _known_options(options: Mapping[str, Any]) -> None:
    unknown = sorted(set(options) - set(JobOptions.__optional_keys__))
    if unknown:
        raise TypeError(f"unknown option: {', '.join(unknown)}")


def _read(codec: Codec, data: Any, error: type[ValueError]) -> Any:
    try:
        return codec.read(data)
    except Mismatch as mismatch:
        raise error(str(mismatch)) from mismatch
