"""Create a gateway key for a principal of a tenant, and print it: no command shows it again."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

import orjson
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from gateway import keys
from gateway.identity import KEYS, SCOPES
from webhooks_core.times import iso

ALL = "all"


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", required=True)
        parser.add_argument("--principal", required=True)
        parser.add_argument(
            "--days", type=int, help=f"days until the key expires, 1 to {keys.MAX_DAYS}"
        )
        parser.add_argument("--name", default="", help="a name to show in lists")
        parser.add_argument(
            "--scopes",
            nargs="+",
            choices=(*SCOPES, ALL),
            help=f"what it may do; by default all but {KEYS}, which manages the tenant's "
            "keys over HTTP",
        )
        parser.add_argument("--models", nargs="+", help="the only models that it calls")
        parser.add_argument(
            "--budget",
            nargs=3,
            metavar=("COUNTS", "WINDOW", "LIMIT"),
            help="what its requests may use besides all other budgets: cost month 50",
        )
        parser.add_argument(
            "--json", action="store_true", help="print JSON, with the key's id"
        )

    @transaction.atomic
    def handle(
        self,
        *args: Any,
        scopes: list[str] | None,
        budget: list[str] | None,
        json: bool,
        **options: Any,
    ) -> None:
        names = ("tenant", "principal", "days", "name", "models")
        try:
            created = keys.create(
                scopes=SCOPES if ALL in (scopes or ()) else scopes,
                budget=keys.parse_budget(budget) if budget else None,
                **{name: options[name] for name in names},
            )
        except keys.KeyInputError as error:
            raise CommandError(str(error)) from error
        expires_at = created.key.expires_at
        values = {
            "id": created.key.pk,
            "key": created.text,
            "expires_at": iso(expires_at) if expires_at else None,
        }
        self.stdout.write(orjson.dumps(values).decode() if json else created.text)
