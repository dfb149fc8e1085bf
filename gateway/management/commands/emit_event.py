"""Publish an event of any defined type to a tenant's subscriptions, as the principal `system`.

The data must fit the type's JSON Schema, as subscribers may rely on it; further fields are
passed on. Without --data and --file the type's sample is sent. Prints the event's id.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from gateway import event_schemas, events
from gateway.chat.core import json_numbers
from gateway.events import MAX_DATA_DEPTH, Origin, is_deeper
from gateway.identity import NAME_RULE, is_name
from gateway.webhooks import PROFILE, subscribable
from webhooks_core import profiles
from webhooks_core.management.output import add_json_argument, format_output


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("type", choices=subscribable())
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
                data=events.exactly(data),
            )
            values = {"event_id": event.public_id, "type": event.type}
            # Unprinted, it is not published: who runs the command again wants one event.
            self.stdout.write(
                format_output(values, event.public_id, as_json=options["json"])
            )


def _data(event_type: str, text: str | None, file: str | None) -> Mapping[str, Any]:
    kind = profiles.get(PROFILE).event_types[event_type]
    is_sample = text is None and file is None
    source = "the sample" if is_sample else file or "--data"
    data = kind.sample if is_sample else _read_data(source, text, file)
    if faults := event_schemas.faults(kind, data):
        lines = "\n  ".join([f"{source}: not the data of {event_type}", *faults])
        raise CommandError(f"{lines}\nNothing was published.")
    return data


def _read_data(source: str, text: str | None, file: str | None) -> Mapping[str, Any]:
    try:
        raw = (text or "").encode(errors="surrogatepass")
        data = json_numbers.loads_finite(raw if file is None else _read(file))
    except ValueError as error:
        raise CommandError(f"{source}: not JSON: {error}") from error
    if not isinstance(data, dict):
        raise CommandError(f"{source}: must be a JSON object")
    if is_deeper(data, MAX_DATA_DEPTH):
        raise CommandError(f"{source}: nested deeper than {MAX_DATA_DEPTH} levels")
    return data


def _read(file: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror}") from error
