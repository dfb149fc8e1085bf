"""Publish an event of any defined type to a tenant's subscriptions, as the principal `system`.

Without --data and --file, the type's sample is its data. Prints the event's id.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import orjson
from django.core.management.base import BaseCommand, CommandError

from gateway import events
from gateway.events import Origin
from gateway.identity import NAME_RULE, is_name
from gateway.webhooks import PROFILE, subscribable
from webhooks_core import profiles


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("type", choices=subscribable())
        parser.add_argument("--tenant", required=True)
        data = parser.add_mutually_exclusive_group()
        data.add_argument("--data", help="a JSON object")
        data.add_argument("--file", help="a file with one; - is standard input")

    def handle(self, *args: Any, tenant: str, **options: Any) -> None:
        if not is_name(tenant):
            raise CommandError(f"tenant: {NAME_RULE}")
        name, text, file = options["type"], options["data"], options["file"]
        is_sample = text is None and file is None
        data = (
            profiles.get(PROFILE).event_types[name].sample
            if is_sample
            else _data(file or "--data", _read(file) if file else text)
        )
        try:
            event = events.publish(
                origin=Origin.system(tenant), event_type=name, data=data
            )
        except TypeError as error:
            raise CommandError(f"the data is nested too deeply: {error}") from error
        self.stdout.write(event.public_id)


def _data(source: str, text: str) -> dict[str, Any]:
    try:
        data = orjson.loads(text.encode(errors="surrogatepass"))
    except ValueError as error:
        raise CommandError(f"{source}: not JSON: {error}") from error
    if not isinstance(data, dict):
        raise CommandError(f"{source}: must be a JSON object")
    return data


def _read(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{file}: {error}") from error
