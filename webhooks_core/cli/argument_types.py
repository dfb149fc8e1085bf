"""Numbers on the command line: within bounds, or one clear line and exit status 2."""

from __future__ import annotations

import math
from argparse import ArgumentTypeError
from collections.abc import Callable


def integer_between(least: int, most: int = 10**9) -> Callable[[str], int]:
    """Return a reader of whole numbers from `least` to `most`."""

    def read(text: str) -> int:
        digits = text.removeprefix("-")
        is_number = digits.isascii() and digits.isdigit() and len(digits) <= 10
        if is_number and least <= int(text) <= most:
            return int(text)
        raise ArgumentTypeError(
            f"{text!r} is not a whole number from {least} to {most}"
        )

    return read


def seconds(least: float, most: float) -> Callable[[str], float]:
    """Return a reader of seconds from `least` to `most`."""
    return _number(least, most, "number of seconds")


def rate(least: float, most: float) -> Callable[[str], float]:
    """Return a reader of so many a second, from `least` to `most`."""
    return _number(least, most, "number")


def _number(least: float, most: float, what: str) -> Callable[[str], float]:
    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if least <= value <= most:
            return value
        raise ArgumentTypeError(f"{text!r} is not a {what} from {least:g} to {most:g}")

    return read
