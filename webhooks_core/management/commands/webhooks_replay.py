"""Send failed deliveries again: one by its id, or all since a time, of one endpoint or of all."""

from __future__ import annotations

import re
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db.models import Count, QuerySet
from django.utils import timezone
from django.utils.dateparse import parse_datetime, parse_duration

from webhooks_core.management.argument_types import number_between
from webhooks_core.management.endpoint_command import narrowed
from webhooks_core.management.output import add_json_argument, format_output
from webhooks_core.models import Delivery, Endpoint
from webhooks_core.models.lookups import among
from webhooks_core.owners import changes, failures, replays
from webhooks_core.owners.replays import NotSubscribedError
from webhooks_core.times import iso

UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
AGO = re.compile(r"([0-9]{1,6})([mhdw])")


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        subject = parser.add_mutually_exclusive_group(required=True)
        subject.add_argument(
            "--delivery", metavar="ID", help="this delivery, with any status"
        )
        subject.add_argument(
            "--endpoint", metavar="ID", help="all failed deliveries of this endpoint"
        )
        subject.add_argument(
            "--failed",
            action="store_true",
            help="all failed deliveries of all endpoints",
        )
        parser.add_argument(
            "--owner", help="with --failed: of this owner alone (a tenant, a user name)"
        )
        parser.add_argument(
            "--since",
            metavar="TIME",
            default="1d",
            help="a time (2026-11-21T08:00Z) or how long ago (30m, 12h, 2d; default: 1d)",
        )
        parser.add_argument(
            "--per-second",
            type=number_between(0.01, 100_000),
            default=50.0,
            metavar="N",
            help="how many to queue per second (default: 50)",
        )
        parser.add_argument(
            "--dry-run",
            action="store_true",
            help="send nothing; show how many failed, and the last error of each",
        )
        add_json_argument(parser)

    def handle(self, *args: Any, json: bool, **options: Any) -> None:
        try:
            if options["delivery"] is not None:
                data, text = _one(options["delivery"], dry_run=options["dry_run"])
            else:
                data, text = self._all(**options)
        except NotSubscribedError as error:
            raise CommandError(
                "nothing can be sent: the endpoint is deleted, disabled or inactive, or the "
                "event was removed for its age"
            ) from error
        self.stdout.write(format_output(data, text, as_json=json))

    def _all(self, **options: Any) -> tuple[dict[str, Any], str]:
        since = _since(options["since"])
        failed = {
            row: replays.failed_since(row, since) for row in _chosen(since, options)
        }
        count = sum(rows.count() for rows in failed.values())
        data = {"found": count, "queued": 0, "since": iso(since)}
        text = f"{count} failed deliveries since {since:%Y-%m-%d %H:%M:%S} UTC"
        if len(failed) != 1:
            text += f" to {len(failed)} endpoints"
        if options["dry_run"]:
            errors = _count_errors(failed.values())
            lines = [f"{number:>12,} {error}" for error, number in errors.items()]
            more = _count_arrived(list(failed), since)
            lines += (
                [f"{more:>12,} failed at first, and arrived already"] if more else []
            )
            return data | {"errors": errors}, "\n".join([text, *lines])
        if count:
            data["queued"] = self._queue(list(failed), since, options)
        return data, f"{text}, {data['queued']} queued"

    def _queue(
        self, endpoints: Sequence[Endpoint], since: datetime, options: dict[str, Any]
    ) -> int:
        """Queue what failed; of several endpoints, leave out those that receive nothing."""
        sent = failures.send_again(
            endpoints,
            since=since,
            by=changes.COMMAND,
            per_second=options["per_second"],
            on_progress=self._progress,
        )
        if sent.left_out and not options["failed"]:
            raise NotSubscribedError
        for endpoint in sent.left_out:
            text = f"left out: {endpoint} of {endpoint.owner} is disabled, inactive or deleted"
            self.stderr.write(text, str)
        return sent.total

    def _progress(self, queued: int, total: int) -> None:
        # On standard error, beside the result, but without the colour of an error.
        self.stderr.write(f"{queued} of {total} queued", str)


def _one(public_id: str, *, dry_run: bool) -> tuple[dict[str, Any], str]:
    rows = Delivery.objects.select_related("endpoint").filter(public_id=public_id)
    if (delivery := rows.first()) is None:
        raise CommandError(f"there is no delivery {public_id}")
    if dry_run:
        errors = {delivery.last_error: 1} if delivery.last_error else {}
        data = {"found": 1, "queued": 0, "delivery_id": None, "errors": errors}
        text = "1 delivery would be sent again"
        return data, "; last error: ".join([text, *errors])
    queued = replays.resend(delivery, by=changes.COMMAND).public_id
    return {"found": 1, "queued": 1, "delivery_id": queued}, f"queued as {queued}"


def _chosen(since: datetime, options: Mapping[str, Any]) -> list[Endpoint]:
    """Return the endpoint of this id, or those with a failed delivery since a time."""
    if not options["failed"]:
        endpoint = Endpoint.objects.filter(public_id=options["endpoint"]).first()
        if endpoint is None:
            raise CommandError(f"there is no endpoint {options['endpoint']}")
        return [endpoint]
    rows = failures.endpoints_of(since)
    return list(narrowed(rows, options["owner"]).order_by("pk"))


def _count_errors(failed: Iterable[QuerySet[Delivery]]) -> dict[str, int]:
    """Return how many deliveries have each last error, the most frequent first."""
    errors: Counter[str] = Counter()
    for deliveries in failed:
        rows = deliveries.order_by().values("last_error").annotate(number=Count("pk"))
        errors.update(dict(rows.values_list("last_error", "number")))
    return dict(sorted(errors.items(), key=lambda item: (-item[1], item[0])))


def _count_arrived(endpoints: Sequence[Endpoint], since: datetime) -> int:
    """Count the failed deliveries whose event arrived in another way."""
    pks = [endpoint.pk for endpoint in endpoints]
    return failures.arrived(since).filter(among(pks, of="endpoint_id")).count()


def _since(text: str) -> datetime:
    try:
        if match := AGO.fullmatch(text):
            return timezone.now() - timedelta(**{UNITS[match[2]]: int(match[1])})
        if ago := parse_duration(text):
            return timezone.now() - abs(ago)
        if at := parse_datetime(text):
            aware = at if at.tzinfo else timezone.make_aware(at)
            return aware.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise CommandError(f"--since: {text!r} is neither a time nor a duration")
