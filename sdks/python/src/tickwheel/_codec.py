"""Reads JSON into the types of a contract and writes it back.

`codec_for(type)` looks at a type once and refuses what it could not read later, so that a mistake shows when a job type
is defined and not when its first job arrives. Dataclasses, TypedDicts, enums and the usual containers are read
strictly: a string is no number, `true` is no integer. A field that the type does not have is ignored, because the other
side may be newer. pydantic models and msgspec structs read and write themselves.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import math
import sys
import types
import typing
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Literal, TypeVar, Union, cast

T = TypeVar("T")
Reader = Callable[[Any, str], Any]

JSON_DEPTH_MAX = 64


class Mismatch(ValueError):
    """The data is not of the type. `pointer` says where."""

    def __init__(self, pointer: str, problem: str) -> None:
        super().__init__(f"{pointer or '/'}: {problem}")
        self.pointer, self.problem = pointer, problem


class UnsupportedType(TypeError):
    """No reader can be made for this type."""


class Codec:
    """Reads and writes the values of one type."""

    def __init__(self, annotation: Any, *, lenient: bool = False) -> None:
        self._reader = _Builder(lenient).reader(annotation)

    def read(self, data: Any) -> Any:
        """The value that this JSON stands for. Raises `Mismatch`."""
        return self._reader(data, "")

    def write(self, value: Any) -> Any:
        """The JSON of a value, after checking that it can be read again as this type. Raises `Mismatch`."""
        data = to_json(value)
        self._reader(data, "")
        return data


def codec_for(annotation: Any, *, lenient: bool = False) -> Codec:
    """The codec of a type. `lenient` takes any string for a literal: the server may know more of them than we do."""
    return Codec(annotation, lenient=lenient)


def encode(data: Any) -> bytes:
    """JSON as bytes. Raises `Mismatch` for what no JSON can say: NaN, half a character, a nesting that is too deep."""
    try:
        if _depth(data) > JSON_DEPTH_MAX:
            raise Mismatch("", f"nested deeper than {JSON_DEPTH_MAX} levels")
        return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (ValueError, TypeError, RecursionError) as error:
        if isinstance(error, Mismatch):
            raise
        raise Mismatch("", f"not JSON: {error}") from error


def to_json(value: Any, pointer: str = "") -> Any:
    """The JSON that stands for a value. Raises `Mismatch` for a value that has none."""
    if value is None or isinstance(value, (str, bool, int)):
        return value.value if isinstance(value, enum.Enum) else value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise Mismatch(pointer, "not a finite number")
        return value
    if isinstance(value, Mapping):
        return _mapping_to_json(cast("Any", value), pointer)
    if isinstance(value, (list, tuple)):
        items = cast("Sequence[Any]", value)
        return [to_json(item, f"{pointer}/{index}") for index, item in enumerate(items)]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        return {field.name: to_json(getattr(value, field.name), f"{pointer}/{field.name}") for field in fields}
    if isinstance(value, enum.Enum):
        return to_json(value.value, pointer)
    if isinstance(value, (datetime, date)):
        return value.isoformat()
    if isinstance(value, (uuid.UUID, Decimal)):
        return str(value)
    return _foreign_to_json(value, pointer)


def _mapping_to_json(value: Mapping[Any, Any], pointer: str) -> dict[str, Any]:
    written: dict[str, Any] = {}
    for key, item in value.items():
        if not isinstance(key, str):
            raise Mismatch(pointer, f"the key {key!r} is not a string")
        written[key] = to_json(item, f"{pointer}/{key}")
    return written


def _foreign_to_json(value: Any, pointer: str) -> Any:
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json")
    msgspec = sys.modules.get("msgspec")
    if msgspec is not None and isinstance(value, msgspec.Struct):
        return msgspec.to_builtins(value)
    raise Mismatch(pointer, f"a {type(value).__name__} is not JSON")


def _depth(data: Any) -> int:
    deepest = 0
    level: list[Any] = [data]
    while True:
        containers: list[Any] = [item for item in level if isinstance(item, (dict, list))]
        if not containers or deepest > JSON_DEPTH_MAX:
            return deepest
        deepest += 1
        level = [inner for item in containers for inner in _inside(item)]


def _inside(container: Any) -> Iterable[Any]:
    values: Callable[[], Iterable[Any]] | None = getattr(container, "values", None)
    return container if values is None else values()


_NAMES: dict[type, str] = {
    type(None): "null",
    bool: "a boolean",
    int: "an integer",
    float: "a number",
    str: "a string",
    list: "an array",
    dict: "an object",
}


def _found(data: Any) -> str:
    name: str = type(data).__name__
    return next((words for kind, words in _NAMES.items() if kind.__name__ == name), name)


def _expect(data: Any, pointer: str, kind: type) -> None:
    if type(data) is not kind:
        raise Mismatch(pointer, f"expected {_NAMES[kind]}, found {_found(data)}")


class _Builder:
    """Makes readers. Types that contain themselves are read through `_known`."""

    def __init__(self, lenient: bool) -> None:
        self._lenient = lenient
        self._known: dict[Any, Reader] = {}

    def reader(self, annotation: Any) -> Reader:
        origin = typing.get_origin(annotation)
        if origin is not None:
            return self._of_generic(annotation, origin, typing.get_args(annotation))
        if annotation is Any or annotation is object:
            return lambda data, _: data
        if annotation is None:
            return _plain(type(None))
        simple = _SIMPLE.get(annotation) if isinstance(annotation, type) else None
        if simple is not None:
            return simple
        supertype: Any = getattr(annotation, "__supertype__", None)
        if supertype is not None:
            return self.reader(supertype)
        if isinstance(annotation, type):
            return self._of_class(cast("type[Any]", annotation))
        raise UnsupportedType(f"{annotation!r} is not a type that can be read from JSON")

    def _of_generic(self, annotation: Any, origin: Any, args: tuple[Any, ...]) -> Reader:
        if getattr(origin, "__name__", "") == "Annotated" or hasattr(annotation, "__metadata__"):
            return self.reader(args[0])
        if getattr(origin, "_name", "") in {"Required", "NotRequired", "ReadOnly"}:
            return self.reader(args[0])
        if origin is Union or origin is getattr(types, "UnionType", None):
            read = _union([self.reader(arg) for arg in args if arg is not type(None)], annotation)
            return _optional(read) if type(None) in args else read
        if origin is Literal:
            return (lambda data, _: data) if self._lenient else _literal(args)
        if origin is list or origin in (typing.get_origin(Sequence[int]),):
            return _list(self.reader(args[0]))
        if origin is tuple:
            if len(args) == 2 and args[1] is Ellipsis:
                items = _list(self.reader(args[0]))
                return lambda data, pointer: tuple(items(data, pointer))
            return _tuple([self.reader(arg) for arg in args])
        if origin is dict or origin in (typing.get_origin(Mapping[str, int]),):
            if args[0] is not str:
                raise UnsupportedType(f"{annotation!r}: the keys of a JSON object are strings")
            return _dict(self.reader(args[1]))
        raise UnsupportedType(f"{annotation!r} is not a type that can be read from JSON")

    def _of_class(self, cls: type[Any]) -> Reader:
        if cls in self._known:
            return self._known[cls]
        self._known[cls] = lambda data, pointer: self._known[cls](data, pointer)
        self._known[cls] = self._make(cls)
        return self._known[cls]

    def _make(self, cls: Any) -> Reader:
        if issubclass(cls, enum.Enum):
            return _enum(cls)
        if hasattr(cls, "model_validate"):
            return _pydantic(cls)
        if dataclasses.is_dataclass(cls):
            return self._dataclass(cls)
        if typing.is_typeddict(cls) or hasattr(cls, "__required_keys__"):
            return self._typed_dict(cls)
        msgspec = sys.modules.get("msgspec")
        if msgspec is not None and issubclass(cls, msgspec.Struct):
            return _msgspec(cls, msgspec)
        raise UnsupportedType(
            f"{cls.__qualname__} cannot be read from JSON; use a dataclass, a TypedDict, a pydantic model or a"
            " msgspec.Struct"
        )

    def _dataclass(self, cls: Any) -> Reader:
        hints = _hints(cls)
        fields = [field for field in dataclasses.fields(cls) if field.init]
        readers = {field.name: self.reader(hints[field.name]) for field in fields}
        required = {
            field.name
            for field in fields
            if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        }
        members = _members(readers, required)

        def read(data: Any, pointer: str) -> Any:
            values = members(data, pointer)
            try:
                return cls(**values)
            except (ValueError, TypeError) as error:  # its own __post_init__ refused them
                raise Mismatch(pointer, str(error)) from error

        return read

    def _typed_dict(self, cls: Any) -> Reader:
        hints = _hints(cls)
        readers = {name: self.reader(hint) for name, hint in hints.items()}
        # Where annotations are strings, the class itself does not know which keys are marked.
        marks = {name: getattr(typing.get_origin(hint), "_name", "") for name, hint in hints.items()}
        required = {name for name in cls.__required_keys__ if marks[name] != "NotRequired"}
        return _members(readers, required | {name for name, mark in marks.items() if mark == "Required"})


def _hints(cls: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(cls, include_extras=True)
    except NameError as error:
        raise UnsupportedType(f"{cls.__qualname__}: {error}; its types must be known where it is defined") from error


def _members(readers: dict[str, Reader], required: set[str]) -> Callable[[Any, str], dict[str, Any]]:
    def read(data: Any, pointer: str) -> dict[str, Any]:
        _expect(data, pointer, dict)
        values: dict[str, Any] = {}
        for name, reader in readers.items():
            if name in data:
                values[name] = reader(data[name], f"{pointer}/{name}")
            elif name in required:
                raise Mismatch(f"{pointer}/{name}", "is missing")
        return values

    return read


def _plain(kind: type) -> Reader:
    def read(data: Any, pointer: str) -> Any:
        if type(data) is not kind:
            _expect(data, pointer, kind)
        return data

    return read


def _float(data: Any, pointer: str) -> float:
    if type(data) is int:
        return float(data)
    _expect(data, pointer, float)
    return cast("float", data)


def _text(make: Callable[[str], Any], what: str) -> Reader:
    def read(data: Any, pointer: str) -> Any:
        _expect(data, pointer, str)
        try:
            return make(data)
        except (ValueError, ArithmeticError):
            raise Mismatch(pointer, f"expected {what}, found {data!r}"[:200]) from None

    return read


def _moment(text: str) -> datetime:
    # Python 3.10 reads neither Z nor a fraction of other than three or six digits.
    body = text[:-1] + "+00:00" if text.endswith(("Z", "z")) else text
    return datetime.fromisoformat(body)


_SIMPLE: dict[type, Reader] = {
    type(None): _plain(type(None)),
    bool: _plain(bool),
    int: _plain(int),
    str: _plain(str),
    float: _float,
    list: _plain(list),
    dict: _plain(dict),
    datetime: _text(_moment, "a time"),
    date: _text(date.fromisoformat, "a date"),
    uuid.UUID: _text(uuid.UUID, "a UUID"),
    Decimal: _text(Decimal, "a decimal number as a string"),
}


def _list(item: Reader) -> Reader:
    def read(data: Any, pointer: str) -> list[Any]:
        _expect(data, pointer, list)
        return [item(entry, f"{pointer}/{index}") for index, entry in enumerate(data)]

    return read


def _tuple(items: list[Reader]) -> Reader:
    def read(data: Any, pointer: str) -> tuple[Any, ...]:
        _expect(data, pointer, list)
        if len(data) != len(items):
            raise Mismatch(pointer, f"expected {len(items)} entries, found {len(data)}")
        return tuple(
            item(entry, f"{pointer}/{index}") for index, (item, entry) in enumerate(zip(items, data, strict=True))
        )

    return read


def _dict(value: Reader) -> Reader:
    def read(data: Any, pointer: str) -> dict[str, Any]:
        _expect(data, pointer, dict)
        return {key: value(entry, f"{pointer}/{key}") for key, entry in data.items()}

    return read


def _optional(reader: Reader) -> Reader:
    # Most of what may be missing is: no other type is tried for it, and no error is made that nobody sees.
    return lambda data, pointer: None if data is None else reader(data, pointer)


def _union(readers: list[Reader], annotation: Any) -> Reader:
    def read(data: Any, pointer: str) -> Any:
        deepest: Mismatch | None = None
        for reader in readers:
            try:
                return reader(data, pointer)
            except Mismatch as mismatch:
                if deepest is None or len(mismatch.pointer) > len(deepest.pointer):
                    deepest = mismatch
        if deepest is not None and deepest.pointer != pointer:
            raise deepest
        raise Mismatch(pointer, f"expected {annotation}, found {_found(data)}")

    return read


def _literal(values: tuple[Any, ...]) -> Reader:
    def read(data: Any, pointer: str) -> Any:
        for value in values:
            if type(value) is type(data) and value == data:
                return value
        raise Mismatch(pointer, f"expected one of {', '.join(map(repr, values))}")

    return read


def _enum(cls: type[enum.Enum]) -> Reader:
    def read(data: Any, pointer: str) -> Any:
        for member in cls:
            if type(member.value) is type(data) and member.value == data:
                return member
        raise Mismatch(pointer, f"expected one of {', '.join(repr(member.value) for member in cls)}")

    return read


def _pydantic(cls: Any) -> Reader:
    def read(data: Any, pointer: str) -> Any:
        try:
            return cls.model_validate(data)
        except ValueError as error:
            errors: Callable[[], Any] | None = getattr(error, "errors", None)
            details: list[Any] = errors() if errors is not None else list[Any]()
            if not details:
                raise Mismatch(pointer, str(error)) from error
            where = "".join(f"/{part}" for part in details[0]["loc"])
            raise Mismatch(pointer + where, str(details[0]["msg"])) from error

    return read


def _msgspec(cls: Any, msgspec: Any) -> Reader:
    def read(data: Any, pointer: str) -> Any:
        try:
            return msgspec.convert(data, cls)
        except msgspec.ValidationError as error:
            message, _, where = str(error).partition(" - at `$")
            raise Mismatch(pointer + where.rstrip("`").replace(".", "/"), message) from error

    return read
