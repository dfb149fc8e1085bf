"""Send failed deliveries again: one by its id, or all of an endpoint since a time."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from django.utils.dateparse import parse_datetime, parse_duration

from webhooks_core import replays
from webhooks_core.models import Delivery, Endpoint
from webhooks_core.replays import NotSubscribedError, Replay


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument(
            "--delivery", metavar="ID", help="this delivery, whatever became of it"
        )
        what.add_argument(
            "--endpoint", metavar="ID", help="all that failed for this endpoint"
        )
        parser.add_argument(
            "--since",
            metavar="TIME",
            default="1 00:00:00",
            help="a time (2026-11-21T08:00Z) or how long ago (`2 00:00:00` is two days; "
            "default: one day)",
        )
        parser.add_argument(
            "--per-second",
            type=float,
            default=50,
            metavar="N",
            help="the pace (default: 50)",
        )
        parser.add_argument("--dry-run", action="store_true", help="only count")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            if options["delivery"]:
                self._one(options["delivery"], dry_run=options["dry_run"])
            else:
                self._all(**options)
        except NotSubscribedError as error:
            raise CommandError(
                "the endpoint is deleted, disabled or inactive: nothing could be sent"
            ) from error

    def _one(self, public_id: str, *, dry_run: bool) -> None:
        found = Delivery.objects.select_related("endpoint").filter(public_id=public_id)
        if (delivery := found.first()) is None:
            raise CommandError(f"there is no delivery {public_id}")
        if dry_run:
            self.stdout.write("1 delivery would be sent again")
            return
        self.stdout.write(f"queued as {replays.replay(delivery).public_id}")

    def _all(self, **options: Any) -> None:
        endpoint = Endpoint.objects.filter(public_id=options["endpoint"]).first()
        if endpoint is None:
            raise CommandError(f"there is no endpoint {options['endpoint']}")
        if options["per_second"] <= 0:
            raise CommandError("--per-second must be above 0")
        since = _since(options["since"])
        count = replays.failed_since(endpoint, since).count()
        self.stdout.write(
            f"{count} failed deliveries since {since:%Y-%m-%d %H:%M:%S} UTC"
        )
        if options["dry_run"] or not count:
            return
        replays.replay_failed(
            endpoint,
            since=since,
            per_second=options["per_second"],
            on_progress=self._progress,
        )

    def _progress(self, done: Replay) -> None:
        self.stdout.write(f"{done.queued} of {done.total} queued")


def _since(text: str) -> Any:
    try:
        if ago := parse_duration(text):
            return timezone.now() - abs(ago)
        if at := parse_datetime(text):
            return at if at.tzinfo else timezone.make_aware(at)
    except (ValueError, OverflowError):
        pass
    raise CommandError(f"--since: {text!r} is neither a time nor a duration")
