"""How many values JSON holds: known before anything is made of them. Pure.

Each value costs about 100 bytes when JSON is read, and orjson reserves 256 for each member of
a list that it writes. It ends the process when such an allocation fails.
"""

from __future__ import annotations

MAX_VALUES = 1_000_000


def values_in(raw: bytes) -> int:
    """Return at least how many values JSON has but one; marks within its texts count, too."""
    return raw.count(b",") + raw.count(b"[") + raw.count(b"{")


def check_values(raw: bytes, most: int = MAX_VALUES) -> None:
    """Raise ValueError for too many values."""
    if len(raw) <= most or values_in(raw) <= most:
        return
    if values_in(without_texts(raw, most)) > most:
        raise _too_many(most)


def without_texts(raw: bytes, most: int = MAX_VALUES) -> bytes:
    """Return JSON without its texts. Raises ValueError: too many of them for so many values."""
    plain = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    if plain.count(b'"') > 4 * (most + 1):  # a name and a text for each value
        raise _too_many(most)
    return b"".join(plain.split(b'"')[::2])


def _too_many(most: int) -> ValueError:
    return ValueError(f"more than {most} values")
