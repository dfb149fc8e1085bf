"""Recordings as Markdown documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from recording.library import event_data, reading
from recording.library.markdown import escaped
from recording.mcp import calls, pages

TEMPLATE = "recording://{audio_id}"
CUT = "\n\n(Cut here: the tools get_summary and get_transcript return the rest.)"


def recording(audio_id: str) -> str:
    """Return a recording as Markdown: details, summaries, then the transcript as far as it fits."""
    row = reading.find(calls.account(), audio_id)
    text = ""
    for part in _parts(event_data.readable(row)):
        text += part[: pages.MAX_CHARACTERS] + "\n\n"
        if len(text) > pages.MAX_CHARACTERS:
            return text[: pages.MAX_CHARACTERS] + CUT
    return text


def _parts(content: Mapping[str, Any]) -> Iterator[str]:
    yield f"# {escaped(content.get('title') or content['audio_id'])}"
    yield f"> {calls.NOTICE}"
    if "recorded_at" in content:
        yield f"Recorded at {content['recorded_at']}"
    for summary in content.get("summaries", []):
        yield f"## Summary: {escaped(summary['label'])}"
        yield summary["content"]
    if "transcript" in content:
        yield "## Transcript"
        yield from _transcript(content["transcript"])


def _transcript(transcript: Mapping[str, Any]) -> Iterator[str]:
    if not transcript.get("segments"):
        yield escaped(transcript["text"][: pages.MAX_CHARACTERS])
    for segment in transcript.get("segments", []):
        minutes, seconds = divmod(int(segment["start"]), 60)
        speaker = escaped(segment["speaker"])
        yield f"**{speaker}** ({minutes}:{seconds:02}): {escaped(segment['text'])}"
