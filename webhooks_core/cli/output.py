"""The result of a command: text or, with --json, one object on a line.

Progress and notes go to standard error, so that standard output holds the result alone.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

import orjson


def add_json_argument(parser: ArgumentParser) -> None:
    """Add --json to a command."""
    parser.add_argument(
        "--json", action="store_true", help="print a JSON object on one line"
    )


def format_output(data: Mapping[str, Any], text: str, *, as_json: bool) -> str:
    """Return what is to be printed: the data as JSON on one line, or the text."""
    return orjson.dumps(data).decode() if as_json else text
