"""Public ids, as the APIs write them."""

from __future__ import annotations

import secrets
import time

# RFC 4648 section 7, in lower case: unlike base64, its order is the order of the bits.
ALPHABET = "0123456789abcdefghijklmnopqrstuv"
LENGTH = 26
RANDOM_BITS = 74


def public_id(prefix: str) -> str:
    """Return an unguessable id such as `evt_0d1k…` that sorts by its creation time.

    After the prefix come 26 characters: 56 bits of microseconds, then 74 random bits.
    """
    number = (time.time_ns() // 1000 << RANDOM_BITS) | secrets.randbits(RANDOM_BITS)
    shifts = range(5 * (LENGTH - 1), -1, -5)
    return prefix + "".join(ALPHABET[number >> shift & 31] for shift in shifts)
