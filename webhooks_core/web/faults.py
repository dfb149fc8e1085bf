"""Faults of a file that pydantic has found: their place, and a text that people understand."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # products that read no files do without pydantic
    from pydantic_core import ErrorDetails

Place = tuple[str | int, ...]


def place_and_text(
    fault: ErrorDetails, texts: Mapping[str, str], *, missing: str
) -> tuple[Place, str]:
    """Return where a fault is, and what is wrong there.

    `texts` has those for types of faults, in place of pydantic's; `missing` is the one for a missing
    key, whose place is the mapping that needs it.
    """
    place, text = fault["loc"], texts.get(fault["type"], fault["msg"])
    if fault["type"] == "missing":
        place, text = place[:-1], missing.format(place[-1])
    return place, re.sub(r"^\w+ should", "must", text.removeprefix("Value error, "))


def path_of(place: Place) -> str:
    """Return a place as `models[0].name`."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
    return "".join(steps).removeprefix(".")
