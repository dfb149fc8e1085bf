"""Revoke gateway keys by id; no process accepts them after a few seconds."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from gateway import keys
from gateway.models import GatewayKey
from webhooks_core.management.command_line import add_json_argument, format_output


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "ids",
            nargs="+",
            type=int,
            metavar="ID",
            help="the number of a key, as the admin shows it",
        )
        add_json_argument(parser)

    def handle(self, *args: Any, ids: list[int], json: bool, **options: Any) -> None:
        # A number that does not fit the column is no key's.
        rows = GatewayKey.objects.filter(pk__in=[pk for pk in ids if 0 < pk < 2**63])
        pks = set(rows.values_list("pk", flat=True))
        if absent := sorted({*ids} - pks):
            names = ", ".join(map(str, absent))
            raise CommandError(f"there is no key with id {names}; nothing was revoked")
        revoked = keys.revoke([*pks])
        values = {"revoked": revoked}
        self.stdout.write(format_output(values, f"revoked {revoked}", as_json=json))
