"""The result of a command: text or, with --json, one object on a line.

Progress and notes go to standard error, so that standard output holds the result alone.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from django.core.management.base import BaseCommand


def add_json_argument(parser: ArgumentParser) -> None:
    """Add --json to a command."""
    parser.add_argument(
        "--json",
        action="store_true",
        help="print JSON: an object, or a list of objects",
    )


def format_output(data: Mapping[str, Any], text: str, *, as_json: bool) -> str:
    """Return what is to be printed: the data as JSON on one line, or the text."""
    return orjson.dumps(data).decode() if as_json else text


def write_list(
    command: BaseCommand, rows: Sequence[Mapping[str, Any]], *, as_json: bool, noun: str
) -> None:
    """Write rows as one JSON array, or as lines with tabs under a line of headings.

    In the lines a time that is None is `never`. Without rows, a note on standard error says so.
    """
    if as_json:
        command.stdout.write(orjson.dumps(rows, option=orjson.OPT_INDENT_2).decode())
        return
    if not rows:
        command.stderr.write(f"There are no {noun}.", str)
        return
    headings = (name.removesuffix("_at").replace("_", " ") for name in rows[0])
    command.stdout.write("\t".join(headings))
    for row in rows:
        command.stdout.write("\t".join(map(_cell, row.values())))


def _cell(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "all"
    return "never" if value is None else str(value)
