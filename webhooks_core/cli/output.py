"""What a command answers: words for people or, with --json, one object on a line for programs.

Progress and notes are for standard error, so that standard output holds the answer alone.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

import orjson


def add_json_argument(parser: ArgumentParser) -> None:
    """Add --json to a command."""
    parser.add_argument("--json", action="store_true", help="for machines")


def format_output(told: Mapping[str, Any], words: str, *, as_json: bool) -> str:
    """Return what is to be printed: `told` as JSON on one line, or the words."""
    return orjson.dumps(told).decode() if as_json else words
