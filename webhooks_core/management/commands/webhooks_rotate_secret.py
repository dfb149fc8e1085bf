"""Give a webhook endpoint a new signing secret and print it; it is shown only this once."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from webhooks_core import changes, endpoints
from webhooks_core.models import Endpoint

MAX_HOURS = 720.0


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("id", help="an endpoint or subscription: ep_… or whsub_…")
        parser.add_argument(
            "--overlap",
            type=float,
            default=0.0,
            metavar="HOURS",
            help="how long the old secret signs beside the new one; only for products "
            "that sign with several secrets (default: %(default)g, the old one ends now)",
        )

    @transaction.atomic
    def handle(
        self,
        *args: Any,
        id: str,  # noqa: A002 - the argument's name
        overlap: float,
        **options: Any,
    ) -> None:
        if not 0 <= overlap <= MAX_HOURS:
            raise CommandError(f"--overlap must be between 0 and {MAX_HOURS:g} hours")
        endpoint = Endpoint.objects.filter(public_id=id, deleted_at=None).first()
        if endpoint is None:
            raise CommandError(f"there is no endpoint {id}")
        if endpoint.static_key is not None:
            raise CommandError(
                f"{id} is declared in the configuration; change it there"
            )
        if overlap and not endpoints.may_overlap(endpoint):
            self.stderr.write(
                f"{endpoint.profile} signs with one secret: the old one ends now, "
                "and --overlap has no effect."
            )
        secret = endpoints.rotate_secret(
            endpoint, overlap=timedelta(hours=overlap), by=changes.COMMAND
        )
        self.stdout.write(secret)
