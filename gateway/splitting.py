"""Splitting a text into chunks: pure, lossless, in linear time."""

from __future__ import annotations

from collections.abc import Iterator

MAX_CHARACTERS = 2000
# Where a chunk may end, best first: before a heading, after a paragraph, line, sentence, word.
BREAKS = (("\n#", 1), ("\n\n", 2), ("\n", 1), (". ", 2), (" ", 1))


def split(text: str, *, maximum: int = MAX_CHARACTERS) -> Iterator[str]:
    """Yield the chunks of a text; joined, they are the text.

    Each has at most `maximum` characters and ends at the best break in its second half.
    """
    start = 0
    while len(text) - start > maximum:
        end = _end(text, start, start + maximum)
        yield text[start:end]
        start = end
    if start < len(text):
        yield text[start:]


def _end(text: str, start: int, limit: int) -> int:
    middle = (start + limit) // 2
    for mark, kept in BREAKS:
        position = text.rfind(mark, middle, limit)
        if position != -1:
            return min(position + kept, limit)
    return limit
