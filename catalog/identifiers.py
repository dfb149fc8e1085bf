"""Primary keys from GraphQL IDs: a malformed id counts as absent and is never an error."""

from __future__ import annotations

import re

ID = re.compile(r"[1-9][0-9]{0,18}", re.ASCII)
ABSENT = 0  # keys start at 1
LARGEST_32 = 2**31 - 1
LARGEST_64 = 2**63 - 1


def primary_key(value: str | int | None, *, largest: int = LARGEST_64) -> int:
    """Return the key that an ID or Int names, or ABSENT when no row can have it."""
    if value is None or not ID.fullmatch(text := str(value)):
        return ABSENT
    return key if (key := int(text)) <= largest else ABSENT
