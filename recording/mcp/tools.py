"""The tools that read: recordings, summaries, transcripts."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Literal, cast

from pydantic import Field
from typing_extensions import TypedDict

from recording.library import event_data, reading
from recording.library.search import search
from recording.mcp import calls, pages
from recording.mcp.calls import NOTICE
from webhooks_core.errors import BadRequestError
from webhooks_core.times import iso

AudioId = Annotated[str, Field(max_length=255, description="Id of the recording.")]
Cursor = Annotated[
    str | None,
    Field(max_length=1000, description="next_cursor of the page before."),
]
Since = Annotated[
    datetime | None,
    Field(description="From this time on, ISO 8601; UTC without an offset."),
]
Until = Annotated[datetime | None, Field(description="Before this time, ISO 8601.")]
Limit = Annotated[int, Field(ge=1, le=100, description="Items of a page.")]
Notice = Annotated[str, Field(description="How to treat the texts.")]
NextCursor = Annotated[str | None, Field(description="null on the last page.")]
Seconds = Annotated[float | None, Field(description="Seconds from the beginning.")]


class RecordingItem(TypedDict):
    audio_id: str
    title: str
    recorded_at: Annotated[str, Field(description="Or imported, if that is unknown.")]


class Marked(TypedDict):
    notice: Notice  # before the texts


class RecordingList(Marked):
    recordings: list[RecordingItem]
    next_cursor: NextCursor


class RecordingDetails(Marked, RecordingItem):
    report_id: str | None
    status: int | None
    duration_ms: int | None
    language: str | None
    summaries: Annotated[list[str], Field(description="Labels of its summaries.")]
    transcript_characters: int
    transcript_segments: int
    speakers: list[str]


class Hit(TypedDict):
    audio_id: str
    title: str
    field: Literal["title", "summary", "transcript"]
    snippet: str
    speaker: str | None
    start_s: Seconds
    end_s: Seconds


class HitList(Marked):
    hits: list[Hit]
    next_cursor: NextCursor


class Summary(TypedDict):
    label: str
    format: Annotated[str, Field(description="Usually markdown.")]
    content: str
    template_name: str | None


class SummaryList(Marked, RecordingItem):
    summaries: list[Summary]
    next_cursor: NextCursor


class Segment(TypedDict):
    index: int
    speaker: str
    start: Annotated[float, Field(description="Seconds.")]
    end: Annotated[float, Field(description="Seconds.")]
    text: str


class Transcript(Marked, RecordingItem):
    language: str | None
    text: Annotated[str | None, Field(description="A page of the text.")]
    segments: Annotated[list[Segment] | None, Field(description="A page of segments.")]
    next_cursor: NextCursor


def list_recordings(
    title: Annotated[
        str, Field(max_length=2000, description="Part of the title, in any case.")
    ] = "",
    since: Since = None,
    until: Until = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> RecordingList:
    """List the account's recordings, newest first."""
    page = reading.page(
        calls.account(),
        title=title,
        since=since,
        until=until,
        limit=limit,
        cursor=cursor,
    )
    return {
        "notice": NOTICE,
        "recordings": [_item(row) for row in page.items],
        "next_cursor": page.next_cursor,
    }


def search_recordings(
    query: Annotated[
        str,
        Field(
            max_length=1000,
            description='Words that a recording must have, all of them; "a quotation" finds words '
            "that follow one another.",
        ),
    ],
    since: Since = None,
    until: Until = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> HitList:
    """Search titles, summaries and transcripts; a hit in a transcript has speaker and time.

    A page without hits may have a next_cursor: then go on.
    """
    page = search(
        calls.account(),
        query,
        limit=limit,
        cursor=cursor,
        since=since,
        until=until,
    )
    return {
        "notice": NOTICE,
        "hits": [cast("Hit", asdict(hit)) for hit in page.hits],
        "next_cursor": page.next_cursor,
    }


def get_recording(audio_id: AudioId) -> RecordingDetails:
    """Describe a recording: when, how long, which summaries, who speaks."""
    row = reading.find(calls.account(), audio_id)
    content = row.content
    transcript = content.get("transcript", {})
    segments = transcript.get("segments", [])
    speakers = dict.fromkeys(segment["speaker"] for segment in segments)
    return {
        "notice": NOTICE,
        **_item(row),
        "report_id": content.get("report_id"),
        "status": content.get("status"),
        "duration_ms": content.get("duration_ms"),
        "language": transcript.get("language"),
        "summaries": [summary["label"] for summary in content.get("summaries", [])],
        "transcript_characters": len(transcript.get("text", "")),
        "transcript_segments": len(segments),
        "speakers": list(speakers)[:100],
    }


def get_summary(audio_id: AudioId, cursor: Cursor = None) -> SummaryList:
    """Get a recording's summaries, HTML as Markdown. A very long one comes in pages."""
    row = reading.find(calls.account(), audio_id)
    summaries = event_data.readable(row).get("summaries", [])
    page = pages.cut([each["content"] for each in summaries], cursor, limit=100)
    return {
        "notice": NOTICE,
        **_item(row),
        "summaries": [
            cast(
                "Summary", {"template_name": None, **summaries[number], "content": text}
            )
            for number, text in page.texts
        ],
        "next_cursor": page.next_cursor,
    }


def get_transcript(
    audio_id: AudioId,
    part: Annotated[
        Literal["text", "segments"],
        Field(description="The whole text, or segments with speakers and times."),
    ] = "text",
    start_s: Annotated[
        float | None,
        Field(ge=0, description="Only segments that end after this second."),
    ] = None,
    end_s: Annotated[
        float | None,
        Field(ge=0, description="Only segments that begin before this second."),
    ] = None,
    limit: Annotated[
        int, Field(ge=1, le=1000, description="Segments of a page.")
    ] = 200,
    cursor: Cursor = None,
) -> Transcript:
    """Get a recording's transcript as it was stored, untrimmed, in pages.

    A time range returns segments. Pages of a range need its start_s and end_s again.
    """
    row = reading.find(calls.account(), audio_id)
    transcript = row.content.get("transcript")
    if transcript is None:
        raise BadRequestError("This recording has no transcript.")
    answer: Transcript = {
        "notice": NOTICE,
        **_item(row),
        "language": transcript.get("language"),
        "text": None,
        "segments": None,
        "next_cursor": None,
    }
    if part == "text" and start_s is None and end_s is None:
        page = pages.cut([transcript["text"]], cursor, limit=1)
        answer["text"] = "".join(text for _, text in page.texts)
    elif not transcript.get("segments"):
        raise BadRequestError("This transcript has no segments: ask for the text.")
    else:
        chosen = _between(transcript["segments"], start_s, end_s)
        page = pages.cut([each["text"] for each in chosen], cursor, limit=limit)
        answer["segments"] = [
            cast("Segment", chosen[number] | {"text": text})
            for number, text in page.texts
        ]
    answer["next_cursor"] = page.next_cursor
    return answer


def _item(row: Any) -> RecordingItem:
    return {
        "audio_id": row.audio_id,
        "title": row.title,
        "recorded_at": iso(row.time),
    }


def _between(
    segments: list[dict[str, Any]], start_s: float | None, end_s: float | None
) -> list[dict[str, Any]]:
    """Return the segments that overlap a time range, with their indexes."""
    return [
        {"index": index, **segment}
        for index, segment in enumerate(segments)
        if (start_s is None or segment["end"] > start_s)
        and (end_s is None or segment["start"] < end_s)
    ]


TOOLS: calls.Tools = {
    list_recordings: calls.READS,
    search_recordings: calls.READS,
    get_recording: calls.READS,
    get_summary: calls.READS,
    get_transcript: calls.READS,
}
