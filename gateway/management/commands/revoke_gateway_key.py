"""Revoke gateway keys by id; no process accepts them after a few seconds."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from gateway import keys
from gateway.models import GatewayKey
from webhooks_core.management.output import add_json_argument, format_output


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "ids",
            nargs="+",
            type=int,
            metavar="ID",
            help="an id from list_gateway_keys",
        )
        add_json_argument(parser)

    def handle(self, *args: Any, ids: list[int], json: bool, **options: Any) -> None:
        # What does not fit the column cannot be a key.
        possible = [number for number in ids if 0 < number < 2**63]
        rows = GatewayKey.objects.filter(pk__in=possible)
        if absent := set(ids) - set(rows.values_list("pk", flat=True)):
            names = ", ".join(map(str, sorted(absent)))
            raise CommandError(f"there is no key with id {names}; nothing was revoked")
        revoked = keys.revoke(possible)
        values = {"revoked": revoked}
        self.stdout.write(format_output(values, f"revoked {revoked}", as_json=json))
