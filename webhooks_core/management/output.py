"""The result of a command: text or, with --json, one object on a line.

Progress and notes go to standard error, so that standard output holds the result alone. A result
that no command shows again is printed in the transaction that makes it: unprinted, it is undone.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

import orjson
from django.core.management.base import BaseCommand

from webhooks_core.management.printable import printable, printable_json


def add_json_argument(parser: ArgumentParser) -> None:
    """Add --json to a command."""
    parser.add_argument(
        "--json",
        action="store_true",
        help="print JSON: an object, or a list of objects",
    )


class JSONCommand(BaseCommand):
    """A command whose only option is --json."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_json_argument(parser)


def format_output(data: Mapping[str, Any], text: str, *, as_json: bool) -> str:
    """Return what is to be printed: the data as JSON on one line, or the text; no control character."""
    if as_json:
        return printable_json(orjson.dumps(data).decode())
    return printable(text, keep="\n\t")


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: `1 model`, `1,200 models`."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"
