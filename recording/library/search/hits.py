"""The hits of one recording: where the phrases of a query stand in its texts."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import Any

from recording.library.search import deadline, texts, words
from recording.library.search.texts import Text

MOST_OF_RECORDING = 3
BEFORE, LENGTH = 60, 240  # characters of a snippet: before the first match, and in all
MARK = "**"

BLANK = re.compile(r"[\s\x00-\x1f\x7f]+")

Phrases = Sequence[words.Tokens]
Spans = list[tuple[int, int]]


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


def of_recording(content: Mapping[str, Any], phrases: Phrases) -> list[SearchHit]:
    """Return the best hits of a recording, none if it lacks one of the phrases.

    A phrase stands in one text. Texts with more of the phrases come first, then title, summaries
    and segments in their order. The whole transcript counts where no segment has a phrase.
    """
    # Of single words the index knows where they are.
    longer = [each for each in phrases if len(each) > 1]
    everything = words.folded(texts.joined(content)) if longer else ""
    if words.present(everything, longer) != longer:  # much faster than text by text
        return []
    missing = set(phrases)
    found: list[tuple[int, Text]] = []
    full = 0
    for text in chain(texts.head(content), texts.transcript(content)):
        deadline.check()
        is_whole = text.field == "transcript" and text.speaker is None
        sought = missing if is_whole else phrases
        if count := _count(text.text, sought, missing):
            found.append((count, text))
            full += count == len(phrases)
        if full == MOST_OF_RECORDING:  # no other can be better
            break
    if missing:
        return []
    found.sort(key=lambda each: -each[0])
    return [_hit(content, text, phrases) for _, text in found[:MOST_OF_RECORDING]]


def _count(text: str, phrases: Iterable[words.Tokens], missing: set[Any]) -> int:
    """Return how many phrases stand in a text, and take them from the missing ones."""
    if not (sought := list(phrases)):
        return 0
    present = words.present(words.folded(text), sought)
    missing.difference_update(present)
    return len(present)


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


def snippet(text: str, phrases: Phrases) -> str:
    """Return the part of a text around its first match, in one line, each match as **match**."""
    first, spans = _spans(text, phrases)
    begin = max(first - BEFORE, 0)
    if begin:  # not within a word
        blank = text.find(" ", begin, first)
        begin = blank + 1 if blank >= 0 else begin
    end = begin + LENGTH
    parts, at = ["… "] if begin else [], begin
    for start, stop in spans:
        if at <= start and stop <= end:
            parts += [text[at:start], MARK, text[start:stop], MARK]
            at = stop
    parts.append(text[at:end])
    if end < len(text):
        parts.append(" …")
    return BLANK.sub(" ", "".join(parts)).strip()


def _spans(text: str, phrases: Phrases) -> tuple[int, Spans]:
    """Return where the first match begins in a text that is not folded, and those near it."""
    first = _unfolded_offset(text, words.first(words.folded(text), phrases))
    part = text[first : first + 2 * LENGTH]
    folded = words.folded(part)
    spans = sorted(span for each in phrases for span in words.spans(folded, each))
    # The offset of each character in the folded text; one may become none or several.
    starts = list(accumulate((len(words.folded(each)) for each in part), initial=0))
    whole = (_unfolded(starts, span) for span in spans)
    return first, [(first + start, first + stop) for start, stop in whole]


def _unfolded_offset(text: str, folded_offset: int) -> int:
    """Return the number of the character that has an offset in the folded text."""
    offset = 0
    for step in (words.PIECE, 1):  # far, then exactly
        while (
            size := len(words.folded(text[offset : offset + step]))
        ) <= folded_offset:
            deadline.check()
            folded_offset -= size
            offset += step
    return offset


def _unfolded(starts: Sequence[int], span: tuple[int, int]) -> tuple[int, int]:
    """Return the whole characters of which a folded text's span is made."""
    first = bisect_right(starts, span[0]) - 1
    # With the marks at the end, which became nothing.
    return first, max(bisect_left(starts, span[1]), bisect_right(starts, span[1]) - 1)
