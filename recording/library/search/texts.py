"""The texts of a recording that a search looks at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Text:
    """A title, a summary as Markdown, a transcript or one of its segments (times in seconds)."""

    field: str  # "title", "summary" or "transcript"
    text: str
    speaker: str | None = None
    start_s: float | None = None
    end_s: float | None = None


def head(content: Mapping[str, Any]) -> Iterator[Text]:
    """Return title and summaries of readable content."""
    yield Text("title", content.get("title", ""))
    for summary in content.get("summaries", []):
        yield Text("summary", summary["content"])


def transcript(content: Mapping[str, Any]) -> Iterator[Text]:
    """Return the segments, then the whole text."""
    if "transcript" not in content:
        return
    for each in content["transcript"].get("segments", []):
        yield Text(
            "transcript", each["text"], each["speaker"], each["start"], each["end"]
        )
    yield Text("transcript", content["transcript"]["text"])


def joined(content: Mapping[str, Any]) -> str:
    """Return all these texts as one; a phrase may also stand where two of them meet."""
    transcript = content.get("transcript", {"text": ""})
    segments = (each["text"] for each in transcript.get("segments", []))
    parts = (each.text for each in head(content))
    return "\n".join((*parts, *segments, transcript["text"]))
