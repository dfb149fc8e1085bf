"""Cut long texts into pages: no answer has more than a model can read at once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from webhooks_core.errors import BadRequestError

# In one answer.
MAX_CHARACTERS = 100_000
CURSOR = re.compile(r"(\d{1,9})\.(\d{1,9})", re.ASCII)


@dataclass(frozen=True, slots=True)
class TextPage:
    """Texts with their numbers, the first and the last perhaps cut, and where the next begins."""

    texts: list[tuple[int, str]]
    next_cursor: str | None


def cut(texts: Sequence[str], cursor: str | None, *, limit: int) -> TextPage:
    """Return at most `limit` texts from a cursor on. Raises BadRequestError."""
    number, start = _read(cursor)
    room, page = MAX_CHARACTERS, list[tuple[int, str]]()
    while number < len(texts) and len(page) < limit:
        part = texts[number][start : start + room]
        page.append((number, part))
        room -= len(part)
        start += len(part)
        if start < len(texts[number]):
            return TextPage(page, f"{number}.{start}")
        number, start = number + 1, 0
        if not room:
            break
    return TextPage(page, f"{number}.0" if number < len(texts) else None)


def _read(cursor: str | None) -> tuple[int, int]:
    match = CURSOR.fullmatch("0.0" if cursor is None else cursor)
    if match is None:
        raise BadRequestError("cursor is not one that this tool returned.")
    return int(match[1]), int(match[2])
