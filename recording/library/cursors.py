"""Cursors: where the next page of a list begins, as a text that a client returns unread."""

from __future__ import annotations

import base64
from datetime import datetime
from typing import Any

import orjson

from recording.library.times import utc
from webhooks_core.times import iso


def write(*values: datetime | int) -> str:
    """Return the cursor of these values."""
    key = orjson.dumps([iso(v) if isinstance(v, datetime) else v for v in values])
    return base64.urlsafe_b64encode(key).decode().rstrip("=")


def read(cursor: str, *kinds: type) -> list[Any]:
    """Return the values of a cursor, which any client may have forged. Raises ValueError.

    Each is of its kind: a time in UTC, or a number that a column of the database can hold.
    """
    padded = cursor.encode() + b"=" * (-len(cursor) % 4)
    match orjson.loads(base64.b64decode(padded, b"-_", validate=True)):
        case [*values]:
            pairs = zip(values, kinds, strict=True)
            return [_read(value, kind) for value, kind in pairs]
    raise ValueError("no list")


def _read(value: object, kind: type) -> datetime | int:
    if kind is datetime and isinstance(value, str):
        try:
            return utc(datetime.fromisoformat(value))
        except OverflowError as error:
            raise ValueError("not in the calendar") from error
    if kind is int and type(value) is int and 0 <= value < 2**63:
        return value
    raise ValueError(f"not a {kind.__name__}")
