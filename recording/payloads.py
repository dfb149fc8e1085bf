"""The `data` of summary.completed: HTML summaries as Markdown, the whole near 1 MiB."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from recording import markdown
from recording.webhooks import SUMMARY_COMPLETED, envelope
from webhooks_core.profiles import EventContext

# The size of a whole body, in bytes, that is aimed at (recording, "Payload size").
TARGET = 1_048_576

TRANSCRIPT_FIELDS = ("language", "text", "truncated", "segments")

# Of the JSON escapes and of UTF-8, the longest unit that a cut can fall into.
LONGEST_UNIT = 6

_EMPTY = EventContext(
    id="evt_" + "0" * 26,
    type=SUMMARY_COMPLETED,
    owner="",
    created_at="2026-11-21T03:20:00.000000Z",
    data={},
    metadata={},
)
ENVELOPE_SIZE = len(orjson.dumps(envelope(_EMPTY))) - len("{}")


def build(content: Mapping[str, Any], *, target: int = TARGET) -> dict[str, Any]:
    """Return the payload of a recording's content, trimmed to fit a body of `target` bytes.

    First the transcript's segments go, then the end of its text. Summaries are never cut:
    when they alone are over the target, so is the body.
    """
    data = dict(content)
    if "summaries" in data:
        data["summaries"] = [converted(summary) for summary in data["summaries"]]
    if "transcript" in data:
        data["transcript"] = _marked(data["transcript"])
        data["transcript"] = _trimmed(data, room=target - ENVELOPE_SIZE)
    return data


def _marked(transcript: Mapping[str, Any]) -> dict[str, Any]:
    """Return a transcript that says whether it is truncated, its fields in the spec's order."""
    marked = {"truncated": False, **transcript}
    return {name: marked[name] for name in TRANSCRIPT_FIELDS if name in marked}


def _trimmed(data: Mapping[str, Any], *, room: int) -> dict[str, Any]:
    """Return the transcript of `data`, so that `data` as JSON has at most `room` bytes."""
    transcript = dict(data["transcript"])
    if _fits(data, transcript, room):
        return transcript
    transcript.pop("segments", None)
    if _fits(data, transcript, room):
        return transcript
    whole = transcript["text"]
    if not whole:
        return transcript
    cut = transcript | {"text": "", "truncated": True}
    text = prefix(whole, size=room - _size(data, cut))
    # `true` is a byte shorter than `false`: what did not fit whole might fit now.
    return cut | {"text": whole[:-1] if text == whole else text}


def _size(data: Mapping[str, Any], transcript: Mapping[str, Any]) -> int:
    return len(orjson.dumps({**data, "transcript": transcript}))


def _fits(data: Mapping[str, Any], transcript: Mapping[str, Any], room: int) -> bool:
    return _size(data, transcript) <= room


def prefix(text: str, *, size: int) -> str:
    """Return the longest beginning of a text that takes at most `size` bytes inside JSON."""
    encoded = orjson.dumps(text)[1:-1]
    most = min(size, len(encoded))
    for end in range(most, max(most - LONGEST_UNIT, 0), -1):
        try:
            return str(orjson.loads(b'"' + encoded[:end] + b'"'))
        except orjson.JSONDecodeError:
            continue  # inside a character or an escape: one byte less
    return ""


def converted(summary: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an HTML summary as Markdown; any other, and what fails to convert, unchanged."""
    if summary["format"] != "html":
        return summary
    content = markdown.from_html(summary["content"])
    if content is None:
        return summary
    return {**summary, "content": content, "format": "markdown"}
