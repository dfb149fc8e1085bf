"""Say who is told of the catalogue's changes: add, list and remove receivers."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from catalog.options import option
from catalog.webhooks import EVENT_TYPES, OWNER, PROFILE
from webhooks_core import endpoints, reaching
from webhooks_core.models import Endpoint
from webhooks_core.targets import TargetError


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        add = actions.add_parser("add", help="prints the receiver's secret, once")
        add.add_argument("url")
        add.add_argument(
            "--event",
            action="append",
            default=[],
            choices=sorted(EVENT_TYPES),
            help="may be given several times; none means all",
        )
        actions.add_parser("list")
        remove = actions.add_parser("remove")
        remove.add_argument("id")

    def handle(self, *args: Any, action: str, **options: Any) -> None:
        if not option("CATALOG_EVENTS"):
            raise CommandError("CATALOG_EVENTS is off: nothing would be sent.")
        if action == "add":
            self.add(options["url"], options["event"])
        elif action == "remove":
            self.remove(options["id"])
        else:
            for endpoint in Endpoint.objects.of(PROFILE, OWNER).order_by("pk"):
                events = ", ".join(endpoint.event_types) or "all events"
                self.stdout.write(f"{endpoint.public_id} {endpoint.url} ({events})")

    def add(self, url: str, event_types: list[str]) -> None:
        try:
            reaching.check_url(PROFILE, url)
            created = endpoints.create(
                profile=PROFILE, owner=OWNER, url=url, event_types=event_types
            )
        except TargetError as error:
            raise CommandError(f"{error}.") from error
        except endpoints.QuotaExceededError as error:
            raise CommandError("There are as many receivers as may be.") from error
        self.stdout.write(f"{created.endpoint.public_id} {created.secret}")

    def remove(self, public_id: str) -> None:
        found = Endpoint.objects.of(PROFILE, OWNER).filter(public_id=public_id).first()
        if found is None or not endpoints.delete(found):
            raise CommandError("There is no such receiver.")
        self.stdout.write("Removed.")
