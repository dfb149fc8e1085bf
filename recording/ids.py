"""Ids of rows, as requests name them."""

from __future__ import annotations

LONGEST = 18  # digits; every number of so many fits the column


def row_id(text: str) -> int:
    """Return the id that a text from a request is; 0, which no row has, for any other text."""
    is_id = text.isascii() and text.isdecimal() and len(text) <= LONGEST
    return int(text) if is_id else 0
