"""Whether data fits the JSON Schema of its event type."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker

from gateway.webhooks import EVENT_TYPES

MAX_TOLD = 200


def _is_time(value: object) -> bool:
    """Raises ValueError for a text that is no time at all."""
    return not isinstance(value, str) or bool(datetime.fromisoformat(value).tzinfo)


FORMATS = FormatChecker(formats=())
FORMATS.checks("date-time", raises=ValueError)(_is_time)


def faults(event_type: str, data: Mapping[str, Any]) -> list[str]:
    """Return what keeps data from being that of an event type, each fault with its place."""
    schema = EVENT_TYPES[event_type].schema
    found = Draft202012Validator(schema, format_checker=FORMATS).iter_errors(data)
    return sorted(f"{it.json_path}: {it.message}"[:MAX_TOLD] for it in found)
