"""Publish an event of any defined type to a tenant's subscriptions, as the principal `system`.

The data must fit the type's JSON Schema, as subscribers may rely on it; further fields are
passed on. Without --data and --file the type's sample is sent. Prints the event's id.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction
from jsonschema import Draft202012Validator, FormatChecker

from gateway import events
from gateway.chat.core import json_numbers
from gateway.events import MAX_DATA_DEPTH, Origin, is_deeper
from gateway.identity import NAME_RULE, is_name
from gateway.webhooks import EVENT_TYPES, SUBSCRIBABLE
from webhooks_core.management.output import add_json_argument, format_output

MAX_FAULT = 200


def _is_time(value: object) -> bool:
    """Raises ValueError for a text that is no time at all."""
    return not isinstance(value, str) or bool(datetime.fromisoformat(value).tzinfo)


FORMATS = FormatChecker(formats=())
FORMATS.checks("date-time", raises=ValueError)(_is_time)


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("type", choices=SUBSCRIBABLE)
        parser.add_argument("--tenant", required=True)
        data = parser.add_mutually_exclusive_group()
        data.add_argument("--data", help="a JSON object")
        data.add_argument(
            "--file", help="a file with a JSON object; - is standard input"
        )
        add_json_argument(parser)

    def handle(self, *args: Any, tenant: str, **options: Any) -> None:
        if not is_name(tenant):
            raise CommandError(f"tenant: {NAME_RULE}")
        data = _data(options["type"], options["data"], options["file"])
        with transaction.atomic():
            event = events.publish(
                origin=Origin.system(tenant),
                event_type=options["type"],
                data={name: _written(value) for name, value in data.items()},
            )
        values = {"event_id": event.public_id, "type": event.type}
        self.stdout.write(
            format_output(values, event.public_id, as_json=options["json"])
        )


def _written(value: Any) -> orjson.Fragment:
    """Return a value as it was given: its integers may be larger than those of orjson."""
    return orjson.Fragment(json_numbers.dumps(value))


def _data(event_type: str, text: str | None, file: str | None) -> Mapping[str, Any]:
    if text is None and file is None:
        return EVENT_TYPES[event_type].sample
    source = file or "--data"
    try:
        raw = (text or "").encode(errors="surrogatepass")
        data = json_numbers.loads_finite(raw if file is None else _read(file))
    except ValueError as error:
        raise CommandError(f"{source}: not JSON: {error}") from error
    if not isinstance(data, dict):
        raise CommandError(f"{source}: must be a JSON object")
    if is_deeper(data, MAX_DATA_DEPTH):
        raise CommandError(f"{source}: nested deeper than {MAX_DATA_DEPTH} levels")
    if faults := _faults(event_type, data):
        lines = "\n  ".join([f"{source}: not the data of {event_type}", *faults])
        raise CommandError(f"{lines}\nNothing was published.")
    return data


def _faults(event_type: str, data: Mapping[str, Any]) -> list[str]:
    """Return how data differs from the schema of its event type, each fault with its place."""
    schema = EVENT_TYPES[event_type].schema
    errors = Draft202012Validator(schema, format_checker=FORMATS).iter_errors(data)
    return sorted(f"{error.json_path}: {error.message}"[:MAX_FAULT] for error in errors)


def _read(file: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror}") from error
