"""Recording files: the data of summary.completed as JSON, checked field by field."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, NotRequired

import orjson
from pydantic import (
    AfterValidator,
    BeforeValidator,
    FailFast,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
)
from pydantic_core import ErrorDetails
from typing_extensions import TypedDict  # pydantic needs it before Python 3.12

from recording.models.recordings import MAX_ID_LENGTH
from webhooks_core.web.json_values import check_values

MAX_BYTES = 64 * 1_048_576
ISO_8601 = re.compile(
    r"\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d([.,]\d+)?)?(Z|[+-]\d\d(:?\d\d)?)?)?",
    re.ASCII,
)


class RecordingFileError(ValueError):
    """A file that is not a recording; the message names the field, or line and column."""


def _time(text: str) -> str:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        text = ""
    # The library alone accepts other separators and a NUL at the end.
    if not ISO_8601.fullmatch(text):
        raise ValueError("must be an ISO 8601 time")
    return text


def _number(value: object) -> object:
    if type(value) not in {int, float}:
        raise ValueError("must be a number")
    return value


Number = Annotated[Any, BeforeValidator(_number)]  # 0 stays 0 and is not 0.0
Name = Annotated[str, Field(max_length=MAX_ID_LENGTH)]
Identifier = Annotated[
    str,
    StringConstraints(
        min_length=1, max_length=MAX_ID_LENGTH, pattern=r"^[^\x00-\x1f\x7f]*$"
    ),
]


class Segment(TypedDict):
    speaker: str
    start: Number
    end: Number
    text: str


class Transcript(TypedDict):
    language: NotRequired[Name]
    text: str
    truncated: NotRequired[bool]  # the event always has it, a file need not
    segments: NotRequired[Annotated[list[Segment], FailFast()]]


class Summary(TypedDict):
    label: str
    content: str
    format: str
    template_name: NotRequired[str]


class Content(TypedDict):
    """recording, "data of summary.completed"; texts are kept to the letter, NUL included."""

    audio_id: Identifier
    report_id: NotRequired[Identifier]
    status: NotRequired[int]
    title: NotRequired[Annotated[str, Field(max_length=2000)]]
    duration_ms: NotRequired[Annotated[int, Field(ge=0)]]
    recorded_at: NotRequired[Annotated[str, AfterValidator(_time)]]
    transcript: NotRequired[Transcript]
    summaries: NotRequired[Annotated[list[Summary], FailFast()]]


CONTENT = TypeAdapter(Content)
TEXTS = {
    "bool_type": "must be true or false",
    "dict_type": "must be an object",
    "int_type": "must be an integer of at most 64 bits",
    "list_type": "must be an array",
    "string_type": "must be a string",
}


@dataclass(frozen=True, slots=True)
class RecordingFile:
    """The content of a file; `ignored` names its fields that the spec does not define."""

    content: dict[str, Any]
    ignored: tuple[str, ...]


def read(raw: bytes) -> RecordingFile:
    """Return the content of a recording file. Raises RecordingFileError."""
    value = _parsed(raw)
    try:
        content: Any = CONTENT.validate_python(value, strict=True)
    except ValidationError as errors:
        raise RecordingFileError(_text_of(errors.errors()[0])) from None
    return RecordingFile(content, tuple(sorted(value.keys() - content.keys())))


def _parsed(raw: bytes) -> Any:
    if len(raw) > MAX_BYTES:
        raise RecordingFileError(f"the file is larger than {MAX_BYTES} bytes")
    try:
        check_values(raw)
    except ValueError as error:
        raise RecordingFileError(f"the file has {error}") from error
    try:
        return orjson.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        text = f"the file is not UTF-8 at byte {error.start}"
        raise RecordingFileError(text) from error
    except orjson.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise RecordingFileError(f"{place}: not JSON: {error.msg}") from error


def _text_of(fault: ErrorDetails) -> str:
    """Return where a fault is, as `summaries[0].label`, and what is wrong there."""
    place, text = fault["loc"], TEXTS.get(fault["type"], fault["msg"])
    if fault["type"] == "missing":
        place, text = place[:-1], f"lacks the field {place[-1]}"
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
    path = "".join(steps).removeprefix(".") or "the recording"
    return f"{path} " + re.sub(r"^\w+ should|^Value error, must", "must", text)
