"""Resend one delivery, or all that failed or was missed by an endpoint since a time."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from django.utils.dateparse import parse_datetime, parse_duration

from webhooks_core.changes import COMMAND
from webhooks_core.errors import ApiError
from webhooks_core.models import Delivery, Endpoint
from webhooks_core.owners import resending
from webhooks_core.owners.resending import Selection


def since(text: str) -> datetime:
    """Return a time, given as one (`2026-11-21T08:00Z`) or as a duration before now (`P1D`)."""
    try:
        if ago := parse_duration(text):
            return timezone.now() - abs(ago)
        if at := parse_datetime(text):
            return at if at.tzinfo else timezone.make_aware(at)
    except (ValueError, OverflowError):
        pass
    raise ArgumentTypeError(f"{text!r} is neither a time nor a duration such as P2D")


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("id", help="a delivery, or an endpoint: ep_… or whsub_…")
        parser.add_argument(
            "--since",
            type=since,
            default="P1D",
            metavar="TIME",
            help="2026-11-21T08:00Z, or how long ago: PT30M, P2D (default: %(default)s)",
        )
        parser.add_argument(
            "--missed",
            action="store_true",
            help="not what failed, but what was published while the endpoint was disabled",
        )
        parser.add_argument("--dry-run", action="store_true", help="only count")

    def handle(self, *args: Any, **options: Any) -> None:
        public_id = options["id"]
        rows = Delivery.objects.select_related("endpoint")
        try:
            if endpoint := Endpoint.objects.filter(public_id=public_id).first():
                text = _resend_since(endpoint, **options)
            elif delivery := rows.filter(public_id=public_id).first():
                text = f"queued as {resending.resend(delivery, by=COMMAND).public_id}"
            else:
                raise CommandError(f"there is no delivery or endpoint {public_id}")
        except ApiError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(text)


def _resend_since(
    endpoint: Endpoint, *, since: datetime, missed: bool, dry_run: bool, **_: Any
) -> str:
    selection = Selection.MISSED if missed else Selection.FAILED
    if dry_run:
        count = resending.count(endpoint, selection, since=since)
        return f"{count} would be sent again"
    total = 0
    while count := resending.resend_since(endpoint, selection, since=since, by=COMMAND):
        total += count
    return f"{total} queued"
