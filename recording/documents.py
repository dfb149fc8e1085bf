"""Recording files: the spec's "data of summary.completed" as JSON, checked field by field."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from recording import positions
from recording.models.recordings import MAX_ID_LENGTH
from recording.positions import Path

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
    """What a file says; `ignored` names the fields that the spec does not know."""

    content: dict[str, Any]
    ignored: tuple[str, ...]


class FieldError(Exception):
    """The value at a path is wrong."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(reason)
        self.path, self.reason = path, reason


# ── Readers: each returns an accepted value or raises FieldError ────────────────────

Reader = Callable[[Any, Path, set[str]], Any]


def _text(*, at_most: int | None = None) -> Reader:
    def read(value: Any, path: Path, _: set[str]) -> str:
        if not isinstance(value, str):
            raise FieldError(path, "must be a string")
        if at_most is not None and len(value) > at_most:
            raise FieldError(path, f"is longer than {at_most} characters")
        return value

    return read


def _identifier(value: Any, path: Path, ignored: set[str]) -> str:
    text: str = _text(at_most=MAX_ID_LENGTH)(value, path, ignored)
    if not text:
        raise FieldError(path, "must not be empty")
    if CONTROL.search(text):
        raise FieldError(path, "must not hold control characters")
    return text


def _integer(value: Any, path: Path, _: set[str]) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise FieldError(path, "must be an integer of at most 64 bits")
    return value


def _milliseconds(value: Any, path: Path, ignored: set[str]) -> int:
    if _integer(value, path, ignored) < 0:
        raise FieldError(path, "must not be negative")
    return int(value)


def _number(value: Any, path: Path, _: set[str]) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise FieldError(path, "must be a number")
    return value


def _boolean(value: Any, path: Path, _: set[str]) -> bool:
    if not isinstance(value, bool):
        raise FieldError(path, "must be true or false")
    return value


def _time(value: Any, path: Path, ignored: set[str]) -> str:
    text: str = _text(at_most=64)(value, path, ignored)
    # The library alone accepts other separators and a NUL at the end.
    if not ISO_8601.fullmatch(text) or not _exists(text):
        raise FieldError(path, "must be an ISO 8601 time")
    return text


def _exists(time: str) -> bool:
    """Tell whether a well-formed time is in the calendar and on the clock."""
    try:
        datetime.fromisoformat(time)
    except ValueError:
        return False
    return True


def _array(item: Reader) -> Reader:
    def read(value: Any, path: Path, ignored: set[str]) -> list[Any]:
        if not isinstance(value, list):
            raise FieldError(path, "must be an array")
        return [item(one, (*path, at), ignored) for at, one in enumerate(value)]

    return read


def _object(required: str, **fields: Reader) -> Reader:
    """Read the fields in the order given; `required` names some of them, space-separated."""
    needed = required.split()

    def read(value: Any, path: Path, ignored: set[str]) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise FieldError(path, "must be an object")
        for name in needed:
            if name not in value:
                raise FieldError(path, f"lacks the field {name}")
        ignored.update(_unknown(value, fields, path))
        return {
            name: reader(value[name], (*path, name), ignored)
            for name, reader in fields.items()
            if name in value
        }

    return read


def _unknown(
    value: Mapping[str, Any], fields: Mapping[str, Reader], path: Path
) -> set[str]:
    # Without the indexes: one name for the same field of a thousand segments.
    where = tuple(part for part in path if isinstance(part, str))
    return {positions.name((*where, name)) for name in value.keys() - fields.keys()}


RECORDING = _object(
    "audio_id",
    audio_id=_identifier,
    report_id=_identifier,
    status=_integer,
    title=_text(at_most=MAX_TITLE_LENGTH),
    duration_ms=_milliseconds,
    recorded_at=_time,
    transcript=_object(
        "text",
        language=_text(at_most=MAX_ID_LENGTH),
        text=_text(),
        truncated=_boolean,
        segments=_array(
            _object(
                "speaker start end text",
                speaker=_text(),
                start=_number,
                end=_number,
                text=_text(),
            )
        ),
    ),
    summaries=_array(
        _object(
            "label content format",
            label=_text(),
            content=_text(),
            format=_text(),
            template_name=_text(),
        )
    ),
)


# ── The file ────────────────────────────────────────────────────────────────────────


def read(raw: bytes) -> Document:
    """Return what a recording file says. Raises DocumentError.

    Texts are kept to the letter, NUL included; fields that the spec does not know are left
    out and named in `ignored`.
    """
    text = _decoded(raw)
    value = _parsed(text)
    ignored: set[str] = set()
    try:
        content = RECORDING(value, (), ignored)
    except FieldError as error:
        place = _place(*positions.locate(text, error.path))
        field = positions.name(error.path) or "the recording"
        raise DocumentError(f"{place}: {field} {error.reason}") from error
    return Document(content, tuple(sorted(ignored)))


def _decoded(raw: bytes) -> str:
    if len(raw) > MAX_BYTES:
        raise DocumentError(f"the file is larger than {MAX_BYTES} bytes")
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
