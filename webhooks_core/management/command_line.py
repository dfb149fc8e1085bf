"""An argument of commands: a number with bounds.

Progress and notes go to standard error, so that standard output holds the result alone. A result
that no command shows again is printed in the transaction that makes it: unprinted, it is undone.
"""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable


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
