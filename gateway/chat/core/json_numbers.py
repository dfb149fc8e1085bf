"""JSON whose numbers keep their text: orjson, or the slower json where orjson would round."""

from __future__ import annotations

import json
import re
import secrets
from typing import Any, Never, Self

import orjson

from webhooks_core.web.json_values import MAX_VALUES, check_values, without_texts

MAX_DEPTH = 254  # what orjson writes
# A response with embeddings has many values, but its numbers are not kept.
MAX_VALUES_READ = 4 * MAX_VALUES
LONG_NUMBER = b"0" * 19
ZEROS = bytes.maketrans(b"123456789", b"0" * 9)
# Without digits, signs and spaces, only the point and the exponent of a number remain.
DELIMITERS = bytes.maketrans(b":[]{}E", b",,,,,e")
DELETED = b"0123456789+- \t\r\n"
NUMBER = re.compile(rb"-?[0-9][-+.0-9eE]*")
HALF_PAIR = re.compile(r"[\ud800-\udfff]")


class Number(float):
    """A number with the text that it was read from."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> Self:
        number = super().__new__(cls, text)
        number.text = text
        return number


def loads(raw: bytes, most: int = MAX_VALUES) -> Any:
    """Return JSON; dumps() writes its numbers as they are here.

    Raises ValueError, also for more than so many values.
    """
    check_values(raw, most)
    if not may_round(raw):
        return orjson.loads(raw)
    value = _loads_exactly(raw)
    if b"\\u" in raw:
        # Half of a surrogate pair is no text: a ValueError, as from orjson.
        json.dumps(value, ensure_ascii=False).encode()
    return value


def loads_finite(raw: bytes) -> Any:
    """Return JSON as loads() does, but refuse numbers that only some readers can represent.

    Raises orjson.JSONDecodeError; ValueError for more than MAX_VALUES values.
    """
    check_values(raw)
    value = orjson.loads(raw)
    return loads(raw) if may_round(raw) else value


def loads_any(raw: bytes) -> Any:
    """Return JSON as loads() does, with halves of surrogate pairs (RFC 8259, section 8.2)."""
    check_values(raw)
    try:
        return loads(raw)
    except ValueError:
        if b"\\u" not in raw:
            raise
        return _loads_exactly(raw)


def read(raw: bytes) -> Any:
    """Return JSON that is not written again: its numbers may be rounded.

    Raises ValueError, also for more than MAX_VALUES_READ values.
    """
    check_values(raw, MAX_VALUES_READ)
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        # A number may be too large for orjson.
        return loads_any(raw)


def is_json(text: str) -> bool:
    """Return True if a text is JSON, of whatever numbers and halves of surrogate pairs."""
    try:
        read(text.encode("utf-8", "surrogatepass"))
    except ValueError:
        return False
    return True


def _loads_exactly(raw: bytes) -> Any:
    try:
        return json.loads(
            raw.decode(),
            parse_float=Number,
            parse_int=_integer,
            parse_constant=_refuse,
        )
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def dumps(value: Any, *, sort_keys: bool = False) -> bytes:
    """Return compact JSON. Raises TypeError: nested too deeply."""
    option = orjson.OPT_SORT_KEYS if sort_keys else None
    try:
        return orjson.dumps(value, default=_text, option=option)
    except TypeError:
        # orjson writes no half of a surrogate pair. Such a text is written with a mark in
        # place of the half, and the mark replaced by its escape.
        mark = secrets.token_hex(16)
        try:
            marked = _mark_half_pairs(value, mark)
        except RecursionError as error:
            raise TypeError("nested too deeply") from error
        written = orjson.dumps(marked, default=_text, option=option)
        return written.replace(mark.encode(), b"\\u")


def _mark_half_pairs(value: Any, mark: str) -> Any:
    if isinstance(value, str):
        return HALF_PAIR.sub(lambda half: f"{mark}{ord(half[0]):04x}", value)
    if isinstance(value, dict):
        return {
            _mark_half_pairs(name, mark): _mark_half_pairs(item, mark)
            for name, item in value.items()
        }
    if isinstance(value, list):
        return [_mark_half_pairs(item, mark) for item in value]
    return value


def is_too_deep(raw: bytes, value: Any) -> bool:
    """Return True if dumps() could not write a value that was read from this."""
    if raw.count(b"[") + raw.count(b"{") <= MAX_DEPTH:
        return False
    try:
        dumps(value)
    except TypeError:
        return True
    return False


def may_round(raw: bytes) -> bool:
    """Return True if orjson would write a number of this JSON in another way."""
    return _may_lose_digits(raw) and not _keeps_numbers(raw)


def _keeps_numbers(raw: bytes) -> bool:
    """Return True if orjson would write every number as it is here."""
    numbers = b"[" + b",".join(NUMBER.findall(without_texts(raw))) + b"]"
    try:
        return orjson.dumps(orjson.loads(numbers)) == numbers
    except orjson.JSONDecodeError:
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
