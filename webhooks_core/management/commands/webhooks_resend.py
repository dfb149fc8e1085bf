"""Resend: one delivery by its id, or all that failed or was missed by an endpoint since a time."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from django.utils.dateparse import parse_datetime, parse_duration

from webhooks_core.changes import COMMAND
from webhooks_core.models import Delivery, Endpoint
from webhooks_core.owners import resending
from webhooks_core.owners.repairs import RefusedError
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
        subject = parser.add_mutually_exclusive_group(required=True)
        subject.add_argument("--delivery", metavar="ID", help="this one, of any status")
        subject.add_argument("--endpoint", metavar="ID", help="all that failed for it")
        parser.add_argument(
            "--since",
            type=since,
            default="P1D",
            metavar="TIME",
            help="2026-11-21T08:00Z, or how long ago: PT30M, P2D (default: %(default)s)",
        )
        parser.add_argument(
            "--missed",
            dest="selection",
            action="store_const",
            const=Selection.MISSED,
            default=Selection.FAILED,
            help="not what failed, but what was published while it was disabled",
        )
        parser.add_argument("--dry-run", action="store_true", help="only count")

    def handle(self, *args: Any, delivery: str | None, **options: Any) -> None:
        try:
            text = _one(delivery) if delivery is not None else _all(**options)
        except RefusedError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(text)


def _one(public_id: str) -> str:
    rows = Delivery.objects.select_related("endpoint")
    if (delivery := rows.filter(public_id=public_id).first()) is None:
        raise CommandError(f"there is no delivery {public_id}")
    return f"queued as {resending.resend(delivery, by=COMMAND).public_id}"


def _all(
    *, endpoint: str, selection: Selection, since: datetime, dry_run: bool, **_: Any
) -> str:
    row = Endpoint.objects.filter(public_id=endpoint).first()
    if row is None:
        raise CommandError(f"there is no endpoint {endpoint}")
    if dry_run:
        return f"{resending.count(row, selection, since=since)} would be sent again"
    total = 0
    while count := resending.resend_since(row, selection, since=since, by=COMMAND):
        total += count
    return f"{total} queued"
