"""Revoke gateway keys by id; no process accepts them after a few seconds."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from gateway import keys
from gateway.models import GatewayKey
from webhooks_core.management.bearer_tokens import with_ids
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
        rows = with_ids(GatewayKey.objects.all(), ids, noun="key")
        revoked = keys.revoke(rows.values_list("pk", flat=True))
        values = {"revoked": revoked}
        self.stdout.write(format_output(values, f"revoked {revoked}", as_json=json))
