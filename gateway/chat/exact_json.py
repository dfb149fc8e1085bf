"""JSON whose numbers keep their text: orjson, or the slower json where orjson would round."""

from __future__ import annotations

import json
from typing import Any, Never, Self

import orjson

MAX_DEPTH = 254  # what orjson writes
LONG_NUMBER = b"0" * 19
ZEROS = bytes.maketrans(b"123456789", b"0" * 9)
# Without digits, signs and spaces, only the point and the exponent of a number remain.
DELIMITERS = bytes.maketrans(b":[]{}E", b",,,,,e")
DELETED = b"0123456789+- \t\r\n"


class Number(float):
    """A number with the text that it was read from."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> Self:
        number = super().__new__(cls, text)
        number.text = text
        return number


def loads(raw: bytes) -> Any:
    """Return JSON; dumps() writes its numbers as they are here. Raises ValueError."""
    if not _may_lose_digits(raw):
        return orjson.loads(raw)
    text = raw.decode()
    try:
        value = json.loads(
            text, parse_float=Number, parse_int=_integer, parse_constant=_refuse
        )
        if b"\\u" in raw:
            # Half of a surrogate pair is no text: a ValueError, as from orjson.
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    return value


def read(raw: bytes) -> Any:
    """Return JSON that is not written again: its numbers may be rounded.

    Raises ValueError.
    """
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        # A number may be too large for orjson.
        return loads(raw)


def dumps(value: Any) -> bytes:
    """Return compact JSON. Raises TypeError: nested too deeply."""
    return orjson.dumps(value, default=_text)


def is_too_deep(raw: bytes, value: Any) -> bool:
    """Return True if dumps() could not write a value that was read from this."""
    if raw.count(b"[") + raw.count(b"{") <= MAX_DEPTH:
        return False
    try:
        dumps(value)
    except TypeError:
        return True
    return False


def _may_lose_digits(raw: bytes) -> bool:
    """Return True if there may be a fraction, an exponent or an integer above 64 bits."""
    shape = raw.translate(DELIMITERS, DELETED)
    return (
        b",.," in shape
        or b",e," in shape
        or b",.e," in shape
        or LONG_NUMBER in raw.translate(ZEROS)
    )


def _integer(text: str) -> int | Number:
    return int(text) if len(text) < len(LONG_NUMBER) else Number(text)


def _refuse(text: str) -> Never:
    raise ValueError(f"{text} is not JSON")


def _text(value: Any) -> orjson.Fragment:
    if isinstance(value, Number):
        return orjson.Fragment(value.text)
    raise TypeError(type(value).__name__)
