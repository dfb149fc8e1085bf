"""Public ids, as the APIs write them."""

from __future__ import annotations

import re
import secrets
import time
from datetime import UTC, datetime

# RFC 4648 section 7, in lower case: unlike base64, its order is the order of the bits.
ALPHABET = "0123456789abcdefghijklmnopqrstuv"
LENGTH = 26
RANDOM_BITS = 74


def public_id(prefix: str, *, at: datetime | None = None) -> str:
    """Return an unguessable id such as `evt_0d1k…` that sorts by its creation time, now or `at`.

    After the prefix come 26 characters: 56 bits of microseconds, then 74 random bits.
    """
    micros = int(at.timestamp() * 1_000_000) if at else time.time_ns() // 1000
    number = (micros << RANDOM_BITS) | secrets.randbits(RANDOM_BITS)
    shifts = range(5 * (LENGTH - 1), -1, -5)
    return prefix + "".join(ALPHABET[number >> shift & 31] for shift in shifts)


def is_id(text: str, prefix: str) -> bool:
    """Return True if a text has the form of a public id."""
    return re.fullmatch(f"{prefix}[{ALPHABET}]{{{LENGTH}}}", text) is not None


def created_at(public_id: str) -> datetime:
    """Return when an id was made. Raises ValueError for what is no id."""
    number = 0
    for character in public_id[-LENGTH:]:
        number = number << 5 | ALPHABET.index(character)
    return datetime.fromtimestamp((number >> RANDOM_BITS) / 1_000_000, UTC)
