"""What commands read and print: numbers with bounds, JSON, text without control characters.

Progress and notes go to standard error, so that standard output holds the result alone. A result
that no command shows again is printed in the transaction that makes it: unprinted, it is undone.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Mapping
from typing import Any

import orjson


def integer_between(least: int, most: int = 10**9) -> Callable[[str], int]:
    """Return an argument type: a whole number from `least` to `most`."""

    def read(text: str) -> int:
        digits = text.removeprefix("-")
        is_number = digits.isascii() and digits.isdigit() and len(digits) <= 10
        if is_number and least <= int(text) <= most:
            return int(text)
        raise ArgumentTypeError(
            f"{text!r} is not a whole number from {least} to {most}"
        )

    return read


def printable(text: str, *, keep: str = "") -> str:
    """Return a text with every unprintable character as an escape, but those to keep."""
    return _replaced(text, keep, lambda c: c.encode("unicode_escape").decode())


def printable_json(document: str) -> str:
    """Return the same JSON document with every unprintable character as an escape of JSON."""
    return _replaced(document, "\n", lambda c: json.dumps(c)[1:-1])


def _replaced(text: str, keep: str, escape: Callable[[str], str]) -> str:
    if text.isascii() and text.isprintable():
        return text
    text = text.encode("utf-8", "backslashreplace").decode()  # half a surrogate pair
    return "".join(c if c.isprintable() or c in keep else escape(c) for c in text)


def add_json_argument(parser: ArgumentParser) -> None:
    """Add --json to a command."""
    parser.add_argument(
        "--json",
        action="store_true",
        help="print JSON: an object, or a list of objects",
    )


def format_output(data: Mapping[str, Any], text: str, *, as_json: bool) -> str:
    """Return what is to be printed: the data as JSON on one line, or the text; no control character."""
    if as_json:
        return printable_json(orjson.dumps(data).decode())
    return printable(text, keep="\n\t")
