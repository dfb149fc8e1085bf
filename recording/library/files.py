"""Recording files: the data of summary.completed as JSON, checked against the event's schema."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson
from pydantic import ValidationError
from pydantic_core import ErrorDetails, SchemaValidator, core_schema

from recording.models.recordings import MAX_ID_LENGTH
from recording.webhooks import SUMMARY_COMPLETED_SCHEMA
from webhooks_core.web.faults import path_of, place_and_text
from webhooks_core.web.json_values import check_values

MAX_BYTES = 64 * 1_048_576
MAX_TITLE_LENGTH = 2000
BOM = b"\xef\xbb\xbf"

ISO_8601 = re.compile(
    r"\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d([.,]\d+)?)?(Z|[+-]\d\d(:?\d\d)?)?)?",
    re.ASCII,
)


class RecordingFileError(ValueError):
    """A file that is not a recording; the message names the field, or line and column."""


@dataclass(frozen=True, slots=True)
class RecordingFile:
    """The content of a file; `ignored` names the fields that the spec does not define."""

    content: dict[str, Any]
    ignored: tuple[str, ...]


def _time(text: str) -> str:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        text = ""
    # The library alone accepts other separators and a NUL at the end.
    if not ISO_8601.fullmatch(text):
        raise ValueError("must be an ISO 8601 time")
    return text


STRING = core_schema.str_schema(strict=True)
IDENTIFIER = core_schema.str_schema(
    strict=True, min_length=1, max_length=MAX_ID_LENGTH, pattern=r"^[^\x00-\x1f\x7f]*$"
)
TYPES: dict[str, core_schema.CoreSchema] = {
    "string": STRING,
    "integer": core_schema.int_schema(strict=True),
    "number": core_schema.union_schema(
        [core_schema.int_schema(strict=True), core_schema.float_schema(strict=True)],
        mode="left_to_right",
        custom_error_type="number_type",
        custom_error_message="must be a number",
    ),
    "boolean": core_schema.bool_schema(strict=True),
}
# Fields of which a file must fulfil more than their type in the event's schema, by path.
FIELDS: dict[str, core_schema.CoreSchema] = {
    "audio_id": IDENTIFIER,
    "report_id": IDENTIFIER,
    "title": core_schema.str_schema(strict=True, max_length=MAX_TITLE_LENGTH),
    "duration_ms": core_schema.int_schema(strict=True, ge=0),
    "recorded_at": core_schema.no_info_after_validator_function(_time, STRING),
    "transcript.language": core_schema.str_schema(
        strict=True, max_length=MAX_ID_LENGTH
    ),
}
OPTIONAL = {"transcript.truncated"}  # the event always has it, a file need not
TEXTS = {
    "bool_type": "must be true or false",
    "dict_type": "must be an object",
    "int_type": "must be an integer of at most 64 bits",
    "list_type": "must be an array",
    "string_type": "must be a string",
}


def _validator(schema: Mapping[str, Any], path: str = "") -> core_schema.CoreSchema:
    """Return what validates a part of the event's schema; `path` has no indexes."""
    match schema["type"]:
        case "object":
            return _mapping(schema, f"{path}." if path else "")
        case "array":
            items = _validator(schema["items"], path)
            return core_schema.list_schema(items, fail_fast=True)
        case kind:
            return FIELDS.get(path, TYPES[kind])


def _mapping(schema: Mapping[str, Any], prefix: str) -> core_schema.CoreSchema:
    required = {name for name in schema["required"] if prefix + name not in OPTIONAL}
    return core_schema.typed_dict_schema(
        {
            name: core_schema.typed_dict_field(
                _validator(field, prefix + name), required=name in required
            )
            for name, field in schema["properties"].items()
        }
    )


RECORDING = SchemaValidator(_validator(SUMMARY_COMPLETED_SCHEMA))


def read(raw: bytes) -> RecordingFile:
    """Return the content of a recording file. Raises RecordingFileError.

    Texts are kept to the letter, NUL included; fields that the spec does not define are left
    out and named in `ignored`.
    """
    return _checked(_parsed(_decoded(raw)))


def read_all(raw: bytes) -> list[RecordingFile]:
    """Return the recordings of a file: one, an array of them, or one on each line (JSON Lines).

    Raises RecordingFileError, which names the number of the recording or its line.
    """
    text = _decoded(raw)
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1)]
    lines = [(number, line) for number, line in lines if line.strip()]
    if len(lines) > 1 and _is_whole(lines[0][1]):
        return [_one(line, f"line {number}: ") for number, line in lines]
    value = _parsed(text)
    if not isinstance(value, list):
        return [_checked(value)]
    if not value:
        raise RecordingFileError("the file has no recording")
    return [_checked(item, f"recording {n}: ") for n, item in enumerate(value, 1)]


def _is_whole(line: str) -> bool:
    """Return True if a line is an object by itself: then each of them is one."""
    try:
        return isinstance(orjson.loads(line), dict)
    except orjson.JSONDecodeError:
        return False


def _one(line: str, place: str) -> RecordingFile:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        text = f"{place}column {error.colno}: not JSON: {error.msg}"
        raise RecordingFileError(text) from error
    return _checked(value, place)


def _checked(value: Any, place: str = "") -> RecordingFile:
    try:
        content = RECORDING.validate_python(value)
    except ValidationError as errors:
        raise RecordingFileError(place + _fault(errors.errors()[0])) from None
    return RecordingFile(content, tuple(sorted({*_unknown(value, content)})))


def _fault(error: ErrorDetails) -> str:
    place, text = place_and_text(error, TEXTS, missing="lacks the field {}")
    return f"{path_of(place) or 'the recording'} {text}"


def _unknown(value: Any, content: Any, prefix: str = "") -> Iterator[str]:
    """Yield the paths, without indexes, of what a file has and its content has not."""
    if isinstance(content, dict):
        for name, field in value.items():
            if name not in content:
                yield prefix + name
            elif isinstance(field, dict | list):
                yield from _unknown(field, content[name], f"{prefix}{name}.")
    else:
        for item, known in zip(value, content, strict=True):
            yield from _unknown(item, known, prefix)


def _decoded(raw: bytes) -> str:
    if len(raw) > MAX_BYTES:
        raise RecordingFileError(f"the file is larger than {MAX_BYTES} bytes")
    try:
        check_values(raw)
    except ValueError as error:
        raise RecordingFileError(f"the file has {error}") from error
    raw = raw.removeprefix(BOM)
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        before = raw[: error.start].decode()
        place = _place(before.count("\n") + 1, len(before) - before.rfind("\n"))
        raise RecordingFileError(f"{place}: the file is not UTF-8") from error


def _parsed(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        place = _place(error.lineno, error.colno)
        raise RecordingFileError(f"{place}: not JSON: {error.msg}") from error


def _place(line: int, column: int) -> str:
    return f"line {line}, column {column}"
