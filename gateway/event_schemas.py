"""The JSON Schemas of event types: what is wrong with data. A schema is compiled once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

import orjson

from gateway.chat.core import json_numbers
from webhooks_core.profiles import EventType
from webhooks_core.web.faults import path_of

if TYPE_CHECKING:
    import jsonschema_rs

MAX_FAULTS, MAX_FAULT = 20, 200
# By name, with the type that it was compiled from.
_compiled: dict[str, tuple[EventType, jsonschema_rs.Validator]] = {}


def compiled(schema: Mapping[str, Any]) -> jsonschema_rs.Validator:
    """Return the validator of a schema, by default of draft 2020-12. Raises ValueError.

    A pattern costs in proportion to the text, so it has no look-around and no back-reference. A
    reference leads into the schema itself: nothing is fetched.
    """
    import jsonschema_rs  # a tenth of a process's start, and most need no schema

    try:
        return jsonschema_rs.validator_for(
            dict(schema),
            validate_formats=True,
            pattern_options=jsonschema_rs.RegexOptions(),
            offline=True,
        )
    except jsonschema_rs.ValidationError as error:
        place = path_of(tuple(error.instance_path))
        text = f"{place}: {error.message}" if place else error.message
        raise ValueError(f"is no JSON Schema: {text[:MAX_FAULT]}") from error


def faults(event_type: EventType, data: Any) -> list[str]:
    """Return how data differs from the schema of its type: each fault with its place."""
    return sorted(_faults(event_type, data))


def first_fault(event_type: EventType, data: Any) -> str:
    """Return one difference between data and the schema of its type; "" if it fits."""
    return next(_faults(event_type, data), "")


def _faults(event_type: EventType, data: Any) -> Iterator[str]:
    for error in _errors(event_type, data):
        step = path_of(tuple(error.instance_path))
        dot = "." if step and not step.startswith("[") else ""
        yield f"data{dot}{step}: {error.message}"[:MAX_FAULT]


def _errors(event_type: EventType, data: Any) -> list[jsonschema_rs.ValidationError]:
    if not event_type.schema:
        return []
    validator = _validator(event_type)
    try:
        return _first_errors(validator, data)
    except ValueError:
        # It knows no numbers that keep their text.
        return _first_errors(validator, orjson.loads(json_numbers.dumps(data)))


def _first_errors(
    validator: jsonschema_rs.Validator, data: Any
) -> list[jsonschema_rs.ValidationError]:
    # Valid data, which most is, needs no list of errors.
    if validator.is_valid(data):
        return []
    return list(islice(validator.iter_errors(data), MAX_FAULTS))


def _validator(event_type: EventType) -> jsonschema_rs.Validator:
    known = _compiled.get(event_type.name)
    if known is None or known[0] is not event_type:
        known = _compiled[event_type.name] = event_type, compiled(event_type.schema)
    return known[1]
