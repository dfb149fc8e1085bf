"""Give a webhook endpoint a new signing secret and print it; it is shown only this once."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from webhooks_core.changes import COMMAND
from webhooks_core.errors import ApiError
from webhooks_core.management.command_line import integer_between
from webhooks_core.models import Endpoint
from webhooks_core.owners import repairs

LONGEST_H = repairs.LONGEST_OVERLAP // timedelta(hours=1)


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("id", help="an endpoint or subscription: ep_… or whsub_…")
        parser.add_argument(
            "--overlap",
            type=integer_between(0, LONGEST_H),
            default=0,
            metavar="HOURS",
            help="how long the old secret signs beside the new one, where the product signs "
            "with several (default: %(default)s, the old one ends now)",
        )

    def handle(self, *args: Any, overlap: int, **options: Any) -> None:
        endpoint = Endpoint.objects.filter(
            public_id=options["id"], deleted_at=None
        ).first()
        if endpoint is None:
            raise CommandError(f"there is no endpoint {options['id']}")
        try:
            rotated = repairs.rotate(
                endpoint, overlap=timedelta(hours=overlap), by=COMMAND
            )
        except ApiError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(rotated.secret)
