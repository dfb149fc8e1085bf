"""Revoke gateway keys by id; within seconds no process accepts them any more."""

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
            "ids", nargs="+", type=int, metavar="ID", help="as list_gateway_keys shows"
        )

    def handle(self, *args: Any, ids: list[int], **options: Any) -> None:
        # What does not fit the column cannot be a key.
        possible = [number for number in ids if 0 < number < 2**63]
        rows = GatewayKey.objects.filter(pk__in=possible)
        if absent := set(ids) - set(rows.values_list("pk", flat=True)):
            names = ", ".join(map(str, sorted(absent)))
            raise CommandError(f"there is no key with id {names}; nothing was revoked")
        self.stdout.write(f"revoked {keys.revoke(possible)}")
