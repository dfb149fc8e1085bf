"""The arguments of a subscription: which recordings it is about, and how much of each it gets."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from recording.library import event_data
from recording.mcp import faults
from recording.mcp.events.errors import InvalidParamsError

# The whole occurrence (SEP-3415, "Delivery profile"), and what it has besides its `data`.
MAX_BYTES = 256 * 1024
ENVELOPE_BYTES = 1024
OMITTED = "omitted"
# PostgreSQL stores no NUL in JSON.
TEXT = "^[^\\x00-\\x1f\\x7f]*$"


class Filters(BaseModel):
    """What a subscription may ask for; `events/list` shows this schema."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    title_contains: Annotated[
        str,
        Field(
            min_length=1,
            max_length=200,
            pattern=TEXT,
            description="Only recordings whose title contains this text, in any letter case.",
        ),
    ] = ""
    label: Annotated[
        str,
        Field(
            min_length=1,
            max_length=200,
            pattern=TEXT,
            description="Only recordings that have a summary of this name.",
        ),
    ] = ""
    min_duration_ms: Annotated[
        int,
        Field(
            ge=0,
            le=2**53 - 1,
            description="Only recordings that are at least so many milliseconds long.",
        ),
    ] = 0
    include_transcript: Annotated[
        bool,
        Field(
            description="Send the transcript too. Without it a payload is small:"
            " get_transcript reads the transcript.",
        ),
    ] = False


def input_schema() -> dict[str, Any]:
    """Return the JSON Schema of the arguments."""
    schema = Filters.model_json_schema()
    properties = {
        name: {
            key: value
            for key, value in field.items()
            # The empty text means "any", and may not be sent.
            if key != "title" and (key, value) != ("default", "")
        }
        for name, field in schema["properties"].items()
    }
    return {"type": "object", "properties": properties, "additionalProperties": False}


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of one subscription, as they were sent and as they are meant."""

    sent: Mapping[str, Any]
    filters: Filters

    @classmethod
    def read(cls, sent: Mapping[str, Any]) -> Arguments:
        """Raises InvalidParamsError."""
        try:
            return cls(sent, Filters.model_validate(dict(sent)))
        except ValidationError as error:
            raise InvalidParamsError(
                f"arguments: {faults.describe(error)}. events/list shows what may be sent."
            ) from error

    @property
    def canonical(self) -> bytes:
        """Return the same bytes for equal arguments."""
        return orjson.dumps(dict(self.sent), option=orjson.OPT_SORT_KEYS)

    def digest(self, *parts: str) -> str:
        """Return a digest of these arguments and the other parts of a key."""
        text = orjson.dumps(parts) + self.canonical
        return hashlib.sha256(text).hexdigest()

    def match(self, data: Mapping[str, Any]) -> bool:
        """Return True if the payload of summary.completed is about what was asked for."""
        filters = self.filters
        wanted = _folded(filters.title_contains)
        labels = [summary["label"] for summary in data.get("summaries", [])]
        return (
            wanted in _folded(data.get("title", ""))
            and (not filters.label or filters.label in labels)
            and data.get("duration_ms", 0) >= filters.min_duration_ms
        )

    def shape(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a subscription gets of a payload, cut to fit into an occurrence."""
        wanted = dict(data)
        if not self.filters.include_transcript:
            wanted.pop("transcript", None)
        return _fitted(wanted)


def _folded(text: str) -> str:
    """Return a text in lower case; letters with accents are one character, as people type them."""
    return unicodedata.normalize("NFC", text.casefold())


def _fitted(data: dict[str, Any]) -> dict[str, Any]:
    """Return a payload of at most MAX_BYTES: the transcript is cut first, then goes what is largest.

    `omitted` names what is missing.
    """
    room = MAX_BYTES - ENVELOPE_BYTES
    if _size(data) <= room:
        return data
    data = event_data.trimmed(data, target=room)
    omitted: list[str] = []
    for name in ("transcript", "summaries", "title"):
        if _size(data) <= room:
            break
        if data.pop(name, None) is not None:
            omitted.append(name)
            data[OMITTED] = omitted
    return data


def _size(data: Mapping[str, Any]) -> int:
    return len(orjson.dumps(data))
