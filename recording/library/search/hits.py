"""The hits of one recording: where the phrases of a query stand in its texts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from recording.library.search import words
from recording.library.search.limits import check_time

MOST_OF_RECORDING = 3
BEFORE, LENGTH = 60, 240  # characters of a snippet: before the first match, and in all
MARK = "**"

BLANK = re.compile(r"[\s\x00-\x1f\x7f]+")

Phrases = Sequence[words.Tokens]


class Text(NamedTuple):
    """A title, a summary as Markdown, a transcript or one of its segments (times in seconds)."""

    field: str  # "title", "summary" or "transcript"
    text: str
    speaker: str | None = None
    start_s: float | None = None
    end_s: float | None = None


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A text that matches; `field` is title, summary or transcript, times are in seconds.

    `speaker`, `start_s` and `end_s` are those of a transcript's segment, else None.
    """

    audio_id: str
    title: str
    field: str
    snippet: str
    speaker: str | None
    start_s: float | None
    end_s: float | None


def texts(content: Mapping[str, Any]) -> Iterator[Text]:
    """Return the texts of readable content that a search looks at, the whole transcript last."""
    yield Text("title", content.get("title", ""))
    for summary in content.get("summaries", []):
        yield Text("summary", summary["content"])
    if transcript := content.get("transcript"):
        for each in transcript.get("segments", []):
            times = each["speaker"], each["start"], each["end"]
            yield Text("transcript", each["text"], *times)
        yield Text("transcript", transcript["text"])


def of_recording(content: Mapping[str, Any], phrases: Phrases) -> list[SearchHit]:
    """Return the best hits of a recording, none if it lacks one of the phrases.

    A phrase stands in one text. Texts with more of the phrases come first, then title, summaries
    and segments in their order. The whole transcript counts where no segment has a phrase.
    """
    # Of single words the index knows where they are.
    longer = [each for each in phrases if len(each) > 1]
    everything = "\n".join(each.text for each in texts(content)) if longer else ""
    if words.present(words.folded(everything), longer) != longer:
        return []  # much faster than text by text
    missing = set(phrases)
    found: list[tuple[int, Text]] = []
    full = 0
    for text in texts(content):
        check_time()
        is_whole = text.field == "transcript" and text.speaker is None
        sought = list(missing) if is_whole else phrases
        present = words.present(words.folded(text.text), sought) if sought else []
        missing.difference_update(present)
        if present:
            found.append((len(present), text))
            full += len(present) == len(phrases)
        if full == MOST_OF_RECORDING:  # no other can be better
            break
    if missing:
        return []
    found.sort(key=lambda each: -each[0])
    return [_hit(content, text, phrases) for _, text in found[:MOST_OF_RECORDING]]


def _hit(content: Mapping[str, Any], text: Text, phrases: Phrases) -> SearchHit:
    return SearchHit(
        audio_id=content["audio_id"],
        title=content.get("title", ""),
        field=text.field,
        snippet=snippet(text.text, phrases),
        speaker=text.speaker,
        start_s=text.start_s,
        end_s=text.end_s,
    )


def snippet(text: str, phrases: Iterable[words.Tokens]) -> str:
    """Return the part of a text around its first match, in one line, each match as **match**."""
    phrases = list(phrases)
    first, _ = next(words.spans(text, phrases), (0, 0))
    begin = max(first - BEFORE, 0)
    if begin:  # not within a word
        blank = text.find(" ", begin, first)
        begin = blank + 1 if blank >= 0 else begin
    # Longer, so that no word that is cut looks like another.
    part = text[begin : begin + 2 * LENGTH]
    parts, at = ["… "] if begin else [], 0
    for start, stop in sorted(words.spans(part, phrases)):
        if at <= start and stop <= LENGTH:
            parts += [part[at:start], MARK, part[start:stop], MARK]
            at = stop
    parts.append(part[at:LENGTH])
    if begin + LENGTH < len(text):
        parts.append(" …")
    return BLANK.sub(" ", "".join(parts)).strip()
