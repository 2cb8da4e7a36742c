from __future__ import annotations

import enum
from dataclasses import dataclass, field
from datetime import datetime, timezone
from decimal import Decimal
from typing import Annotated, Any, Literal, NewType, Optional, TypedDict
from uuid import UUID

import msgspec
import pydantic
import pytest
from typing_extensions import NotRequired

from tickwheel._codec import Mismatch, UnsupportedType, codec_for, encode


class Colour(enum.Enum):
    RED = "red"


UserId = NewType("UserId", int)


@dataclass
class Inner:
    n: int


@dataclass
class Outer:
    text: str
    inner: Inner
    many: list[Inner] = field(default_factory=lambda: list[Inner]())
    maybe: int | None = None
    colour: Colour = Colour.RED
    at: datetime | None = None
    tree: dict[str, Tree] = field(default_factory=lambda: dict[str, Tree]())


@dataclass
class Tree:
    children: list[Tree]


class Movie(TypedDict):
    name: str
    year: NotRequired[int]


class Struct(msgspec.Struct):
    to: str


class Model(pydantic.BaseModel):
    to: str
    n: int = 1


@dataclass
class Positive:
    n: int

    def __post_init__(self) -> None:
        if self.n < 0:
            raise ValueError("must not be negative")


def test_a_dataclass_goes_both_ways() -> None:
    codec = codec_for(Outer)
    at = datetime(2026, 11, 18, tzinfo=timezone.utc)
    value = Outer("é\u0000", Inner(2**53), [Inner(1)], 7, Colour.RED, at, {"a": Tree([Tree([])])})
    assert codec.read(codec.write(value)) == value


@pytest.mark.parametrize(
    ("annotation", "data", "value"),
    [
        (Any, {"any": [1]}, {"any": [1]}),
        (int, 3, 3),
        (float, 3, 3.0),
        (Movie, {"name": "M"}, {"name": "M"}),
        (tuple[int, str], [1, "a"], (1, "a")),
        (tuple[int, ...], [1, 2], (1, 2)),
        (Literal["a", 1], 1, 1),
        (UserId, 5, 5),
        (Annotated[int, "unit"], 5, 5),
        (UUID, "0193e3a6-0000-7000-8000-000000000000", UUID("0193e3a6-0000-7000-8000-000000000000")),
        (Decimal, "1.10", Decimal("1.10")),
        (Model, {"to": "a"}, Model(to="a")),
        (list[Struct], [{"to": "a"}], [Struct(to="a")]),
        (dict[str, int | None], {"a": None}, {"a": None}),
        (None, None, None),
        (datetime, "2026-11-18T04:00:00.123Z", datetime(2026, 11, 18, 4, 0, 0, 123000, tzinfo=timezone.utc)),
    ],
)
def test_types_are_read_and_written(annotation: Any, data: Any, value: Any) -> None:
    codec = codec_for(annotation)
    assert codec.read(data) == value
    assert codec.read(codec.write(value)) == value


@pytest.mark.parametrize(
    ("annotation", "data", "pointer"),
    [
        (int, True, ""),
        (int, 1.0, ""),
        (str, 1, ""),
        (Outer, {"text": "a"}, "/inner"),
        (Outer, {"text": "a", "inner": {"n": "x"}}, "/inner/n"),
        (Outer, {"text": "a", "inner": {"n": 1}, "many": [{"n": 1}, {"n": None}]}, "/many/1/n"),
        (Movie, {"year": 1}, "/name"),
        (Model, {"to": 5}, "/to"),
        (Struct, {"to": 5}, "/to"),
        (tuple[int, str], [1], ""),
        (Literal["a"], "b", ""),
        (Colour, "blue", ""),
        (Positive, {"n": -1}, ""),
        (Optional[Inner], {"n": "x"}, "/n"),
        (datetime, "yesterday", ""),
    ],
)
def test_what_is_not_of_the_type_is_refused_with_its_place(annotation: Any, data: Any, pointer: str) -> None:
    with pytest.raises(Mismatch) as mismatch:
        codec_for(annotation).read(data)
    assert mismatch.value.pointer == pointer


def test_a_field_that_the_type_does_not_have_is_ignored() -> None:
    assert codec_for(Inner).read({"n": 1, "newer": True}) == Inner(1)


@pytest.mark.parametrize(
    "annotation", [object().__class__, bytes, set[int], dict[int, str], complex, type("Plain", (), {})]
)
def test_a_type_that_cannot_be_read_is_refused_at_once(annotation: Any) -> None:
    if annotation is object:
        assert codec_for(annotation).read(1) == 1  # anything goes
        return
    with pytest.raises(UnsupportedType):
        codec_for(annotation)


@pytest.mark.parametrize("value", [float("nan"), "\ud800", object(), {1: 2}, b"bytes"])
def test_what_json_cannot_say_is_refused(value: Any) -> None:
    with pytest.raises(Mismatch):
        encode(codec_for(Any).write(value))


def test_sixty_levels_are_fine_and_seventy_are_not() -> None:
    def nested(levels: int) -> Any:
        value: Any = 1
        for _ in range(levels):
            value = [value]
        return value

    assert encode(nested(60)) == b"[" * 60 + b"1" + b"]" * 60
    with pytest.raises(Mismatch, match="deeper"):
        encode(nested(70))
