"""Recording files: the data of summary.completed as JSON, checked against the event's schema."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from recording.library import positions
from recording.models.recordings import MAX_ID_LENGTH
from recording.webhooks import SUMMARY_COMPLETED_SCHEMA
from webhooks_core.web.json_values import check_values

MAX_BYTES = 64 * 1_048_576
MAX_TITLE_LENGTH = 2000
BOM = b"\xef\xbb\xbf"

CONTROL = re.compile(r"[\x00-\x1f\x7f]")
ISO_8601 = re.compile(
    r"\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d([.,]\d+)?)?(Z|[+-]\d\d(:?\d\d)?)?)?",
    re.ASCII,
)


class DocumentError(ValueError):
    """A file that is not a recording; the message names line, column and field."""


@dataclass(frozen=True, slots=True)
class Document:
    """The content of a file; `ignored` names the fields that the spec does not define."""

    content: dict[str, Any]
    ignored: tuple[str, ...]


class FieldError(Exception):
    """A wrong value; each reader around it adds its step to the path."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.path: deque[str | int] = deque()


# ── Readers: each returns the accepted value or raises FieldError ───────────────────

Reader = Callable[[Any, set[str]], Any]
Rule = tuple[Callable[[Any], object], str]  # a condition, and the reason if it is false


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_time(text: str) -> bool:
    # The library alone accepts other separators and a NUL at the end.
    if not ISO_8601.fullmatch(text):
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _at_most(length: int) -> Rule:
    return (lambda text: len(text) <= length), f"is longer than {length} characters"


TYPES: dict[str, Rule] = {
    "string": ((lambda value: isinstance(value, str)), "must be a string"),
    "integer": (_is_integer, "must be an integer of at most 64 bits"),
    "number": (_is_number, "must be a number"),
    "boolean": ((lambda value: isinstance(value, bool)), "must be true or false"),
}
IDENTIFIER: tuple[Rule, ...] = (
    _at_most(MAX_ID_LENGTH),
    (bool, "must not be empty"),
    ((lambda text: not CONTROL.search(text)), "must not hold control characters"),
)
# What a field must fulfil in addition to its type in the event's schema, by path.
RULES: dict[str, tuple[Rule, ...]] = {
    "audio_id": IDENTIFIER,
    "report_id": IDENTIFIER,
    "title": (_at_most(MAX_TITLE_LENGTH),),
    "duration_ms": ((lambda value: value >= 0, "must not be negative"),),
    "recorded_at": (_at_most(64), (_is_time, "must be an ISO 8601 time")),
    "transcript.language": (_at_most(MAX_ID_LENGTH),),
}
OPTIONAL = {"transcript.truncated"}  # the event always has it, a file need not


def _reader(schema: Mapping[str, Any], path: str = "") -> Reader:
    """Return the reader of a schema; `path` leads to it, without indexes."""
    match schema["type"]:
        case "object":
            return _object(schema, path)
        case "array":
            return _array(_reader(schema["items"], path))
        case type_:
            return _value(TYPES[type_], *RULES.get(path, ()))


def _value(*rules: Rule) -> Reader:
    def read(value: Any, _: set[str]) -> Any:
        for is_valid, reason in rules:
            if not is_valid(value):
                raise FieldError(reason)
        return value

    return read


def _array(read_item: Reader) -> Reader:
    def read(value: Any, ignored: set[str]) -> list[Any]:
        if not isinstance(value, list):
            raise FieldError("must be an array")
        items: list[Any] = []
        try:
            for item in value:
                items.append(read_item(item, ignored))  # noqa: PERF401 - its length is the index
        except FieldError as error:
            error.path.appendleft(len(items))
            raise
        return items

    return read


def _object(schema: Mapping[str, Any], path: str) -> Reader:
    prefix = f"{path}." if path else ""
    required = [name for name in schema["required"] if prefix + name not in OPTIONAL]
    readers = {
        name: _reader(field, prefix + name)
        for name, field in schema["properties"].items()
    }

    def read(value: Any, ignored: set[str]) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise FieldError("must be an object")
        for name in required:
            if name not in value:
                raise FieldError(f"lacks the field {name}")
        ignored.update(prefix + name for name in value.keys() - readers.keys())
        content = {}
        try:
            for name, read_field in readers.items():
                if name in value:
                    content[name] = read_field(value[name], ignored)
        except FieldError as error:
            error.path.appendleft(name)
            raise
        return content

    return read


read_recording = _reader(SUMMARY_COMPLETED_SCHEMA)


# ── The file ────────────────────────────────────────────────────────────────────────


def read(raw: bytes) -> Document:
    """Return the content of a recording file. Raises DocumentError.

    Texts are kept to the letter, NUL included; fields that the spec does not define are left
    out and named in `ignored`.
    """
    text = _decoded(raw)
    value = _parsed(text)
    ignored: set[str] = set()
    try:
        content = read_recording(value, ignored)
    except FieldError as error:
        path = tuple(error.path)
        place = _place(*positions.locate(text, path))
        field = positions.name(path) or "the recording"
        raise DocumentError(f"{place}: {field} {error}") from error
    return Document(content, tuple(sorted(ignored)))


def _decoded(raw: bytes) -> str:
    if len(raw) > MAX_BYTES:
        raise DocumentError(f"the file is larger than {MAX_BYTES} bytes")
    try:
        check_values(raw)
    except ValueError as error:
        raise DocumentError(f"the file has {error}") from error
    raw = raw.removeprefix(BOM)
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        before = raw[: error.start].decode()
        place = _place(*positions.line_and_column(before, len(before)))
        raise DocumentError(f"{place}: the file is not UTF-8") from error


def _parsed(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        place = _place(error.lineno, error.colno)
        raise DocumentError(f"{place}: not JSON: {error.msg}") from error


def _place(line: int, column: int) -> str:
    return f"line {line}, column {column}"
