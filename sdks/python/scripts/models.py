"""Writes src/tickwheel/models.py from docs/reference/openapi.json; with --check, only says whether it is up to date.

Only the types that the library answers with are taken, and those that they refer to.
"""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
DOCUMENT = ROOT / "docs/reference/openapi.json"
TARGET = ROOT / "sdks/python/src/tickwheel/models.py"
WANTED = ["Job", "Attempt", "LogLine", "Why", "Schedule", "NextFire", "Workflow", "WorkflowRun"]

# Definitions that go back to the server as they came stay JSON.
AS_JSON = {"Backfill", "SubmitJob", "SubmitWorkflow", "AnsweredTarget", "Retry", "Missed"}
# Strings of a special form, and what they are here.
AS_TYPE = {"Time": "datetime", "Span": "str"}

HEADER = '''"""What the server answers with, as frozen dataclasses.

Made by scripts/models.py from docs/reference/openapi.json; do not edit. A field that the server leaves out is None.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

'''


class Generator:
    """Turns schemas into Python, each after those it refers to."""

    def __init__(self, schemas: dict[str, Any]) -> None:
        self._schemas = schemas
        self._done: dict[str, str] = {}
        self._names: list[str] = []

    def module(self, wanted: list[str]) -> str:
        for name in wanted:
            self._define(name)
        exported = ", ".join(f'"{name}"' for name in sorted(self._names))
        listing = textwrap.fill(exported, 110, initial_indent="    ", subsequent_indent="    ")
        return HEADER + f"__all__ = [\n{listing},\n]\n\n\n" + "\n\n".join(self._done.values())

    def _define(self, name: str) -> None:
        if name in self._done:
            return
        schema = self._schemas[name]
        if "enum" in schema:
            values = ", ".join(f'"{value}"' for value in schema["enum"])
            line = f"{name} = Literal[{values}]"
            if len(line) > 120:
                listing = textwrap.fill(values, 110, initial_indent="    ", subsequent_indent="    ")
                line = f"{name} = Literal[\n{listing},\n]"
            self._done[name] = f'{line}\n"""{_sentence(schema)}"""\n'
        else:
            self._done[name] = ""  # holds its place, in case it refers to itself
            text = self._dataclass(name, schema)
            del self._done[name]
            self._done[name] = text
        self._names.append(name)

    def _dataclass(self, name: str, schema: dict[str, Any]) -> str:
        required = set(schema.get("required", []))
        properties = schema["properties"]
        first = [self._field(key, properties[key], True) for key in properties if key in required]
        second = [self._field(key, properties[key], False) for key in properties if key not in required]
        return f'@dataclass(frozen=True)\nclass {name}:\n    """{_sentence(schema)}"""\n\n' + "".join(first + second)

    def _field(self, name: str, schema: dict[str, Any], required: bool) -> str:
        annotation, nullable = self._annotation(schema)
        if annotation == "Any":
            default = "" if required else " = None"
        elif required and not nullable:
            default = ""
        else:
            annotation, default = f"{annotation} | None", " = None"
        if not required and annotation.startswith("list["):
            annotation = annotation.removesuffix(" | None")
            default = f" = field(default_factory=lambda: {annotation}())"
        sentence = _sentence(schema)
        described = "".join(f"    # {line}\n" for line in textwrap.wrap(sentence, 114)) if sentence else ""
        return f"{described}    {name}: {annotation}{default}\n"

    def _annotation(self, schema: dict[str, Any]) -> tuple[str, bool]:
        if "$ref" in schema:
            return self._reference(schema["$ref"].rsplit("/", 1)[1]), False
        if "oneOf" in schema:
            others = [option for option in schema["oneOf"] if option.get("type") != "null"]
            assert len(others) == 1, schema
            return self._annotation(others[0])[0], True
        kind = schema.get("type")
        if kind is None:
            return "Any", False
        if isinstance(kind, list):
            (other,) = [option for option in kind if option != "null"]
            return self._annotation({**schema, "type": other})[0], True
        if kind == "array":
            return f"list[{self._annotation(schema['items'])[0]}]", False
        return {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "object": "dict[str, Any]"}[
            kind
        ], False

    def _reference(self, name: str) -> str:
        if name in AS_TYPE:
            return AS_TYPE[name]
        schema = self._schemas[name]
        if name in AS_JSON:
            return "dict[str, Any]"
        if "enum" not in schema and schema.get("type") == "string":
            return "str"
        if schema.get("type") == "object" and "properties" not in schema:
            return "dict[str, Any]"
        self._define(name)
        return name


def _sentence(schema: dict[str, Any]) -> str:
    text = schema.get("description") or ""
    if not text and "oneOf" in schema:
        text = next((option["description"] for option in schema["oneOf"] if "description" in option), "")
    sentence = " ".join(text.split()).split(". ")[0].rstrip(".")
    return f"{sentence}." if sentence else ""


def main() -> int:
    document = json.loads(DOCUMENT.read_text(encoding="utf-8"))
    text = Generator(document["components"]["schemas"]).module(WANTED)
    if sys.argv[1:] == ["--check"]:
        if TARGET.exists() and TARGET.read_text(encoding="utf-8") == text:
            return 0
        print("src/tickwheel/models.py is not what scripts/models.py makes of openapi.json: run it", file=sys.stderr)
        return 1
    TARGET.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
