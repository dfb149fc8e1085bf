"""Revoke gateway keys by id; no process accepts them after a few seconds."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from gateway import keys
from gateway.models import GatewayKey


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

    def handle(self, *args: Any, ids: list[int], **options: Any) -> None:
        # A number that does not fit the column is no key's.
        rows = GatewayKey.objects.filter(pk__in=[pk for pk in ids if 0 < pk < 2**63])
        known = list(rows.values_list("pk", flat=True))
        self.stdout.write(f"revoked {keys.revoke(known)}")
        if unknown := sorted({*ids} - {*known}):
            raise CommandError(f"there is no key {', '.join(map(str, unknown))}")
