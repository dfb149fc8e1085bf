"""The `data` of summary.completed: HTML summaries as Markdown, the body near 1 MiB."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from recording.library import markdown
from recording.models import Recording
from recording.webhooks import SUMMARY_COMPLETED
from webhooks_core.profiles import EventContext, plain_envelope

# The target size of a body in bytes (recording, "Payload size").
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
ENVELOPE_SIZE = len(orjson.dumps(plain_envelope(_EMPTY))) - len("{}")


def trimmed(content: Mapping[str, Any], *, target: int = TARGET) -> dict[str, Any]:
    """Return the payload of content whose summaries are Markdown, to fit a body of `target` bytes.

    First the transcript loses its segments, then the end of its text. Summaries are never
    cut: if they alone exceed the target, so does the body.
    """
    data = dict(content)
    if "transcript" in data:
        data["transcript"] = _with_truncated(data["transcript"])
        data["transcript"] = _trimmed(data, room=target - ENVELOPE_SIZE)
    return data


def _with_truncated(transcript: Mapping[str, Any]) -> dict[str, Any]:
    """Return a transcript with `truncated`, its fields in the spec's order."""
    fields = {"truncated": False, **transcript}
    return {name: fields[name] for name in TRANSCRIPT_FIELDS if name in fields}


def _trimmed(data: Mapping[str, Any], *, room: int) -> dict[str, Any]:
    """Return the transcript of `data`, so that `data` as JSON has at most `room` bytes."""
    transcript = dict(data["transcript"])
    if _size(data, transcript) <= room:
        return transcript
    transcript.pop("segments", None)
    text = transcript["text"]
    if not text or _size(data, transcript) <= room:
        return transcript
    cut = transcript | {"text": "", "truncated": True}
    kept = prefix(text, size=room - _size(data, cut))
    # `true` is a byte shorter than `false`: the whole text might fit now.
    return cut | {"text": text[:-1] if kept == text else kept}


def _size(data: Mapping[str, Any], transcript: Mapping[str, Any]) -> int:
    return len(orjson.dumps({**data, "transcript": transcript}))


def prefix(text: str, *, size: int) -> str:
    """Return the longest prefix of a text that takes at most `size` bytes inside JSON."""
    encoded = orjson.dumps(text)[1:-1]
    most = min(size, len(encoded))
    for end in range(most, max(most - LONGEST_UNIT, 0), -1):
        try:
            return str(orjson.loads(b'"' + encoded[:end] + b'"'))
        except orjson.JSONDecodeError:
            continue  # inside a character or an escape: one byte less
    return ""


def readable(recording: Recording) -> dict[str, Any]:
    """Return a recording's content with its summaries as Markdown, converted by its import."""
    content = recording.content
    if recording.summaries is None:  # none is HTML
        return content
    return content | {"summaries": orjson.loads(recording.summaries)}


def has_html(content: Mapping[str, Any]) -> bool:
    """Return True if a summary is HTML."""
    return any(each["format"] == "html" for each in content.get("summaries", []))


def with_markdown(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return a recording's content with its HTML summaries as Markdown."""
    data = dict(content)
    if "summaries" in data:
        data["summaries"] = [as_markdown(summary) for summary in data["summaries"]]
    return data


def as_markdown(summary: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an HTML summary as Markdown; any other, or one that fails to convert, unchanged."""
    if summary["format"] != "html":
        return summary
    content = markdown.from_html(summary["content"])
    if content is None:
        return summary
    return {**summary, "content": content, "format": "markdown"}
