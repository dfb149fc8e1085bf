"""Say who is told of the catalogue's changes: add, list and remove receivers."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from catalog.conf import option
from catalog.webhooks import EVENT_TYPES, OWNER, PROFILE
from webhooks_core import endpoints, url_access
from webhooks_core.cli.output import add_json_argument, format_output
from webhooks_core.models import Endpoint
from webhooks_core.network.url_policy import UrlRefusedError


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
        shown = actions.add_parser("list", help="shows who is told, and of what")
        remove = actions.add_parser("remove", help="ends what waits for a receiver")
        remove.add_argument("id")
        for one in (add, shown, remove):
            add_json_argument(one)

    def handle(self, *args: Any, action: str, json: bool, **options: Any) -> None:
        if action == "add":
            self.add(options["url"], options["event"], as_json=json)
        elif action == "remove":
            self.remove(options["id"], as_json=json)
        else:
            self.list(as_json=json)

    def list(self, *, as_json: bool) -> None:
        for endpoint in Endpoint.objects.of(PROFILE, OWNER).order_by("pk"):
            events = ", ".join(endpoint.event_types) or "all events"
            words = f"{endpoint.public_id} {endpoint.url} ({events})"
            self.stdout.write(format_output(document(endpoint), words, as_json=as_json))

    def add(self, url: str, event_types: Sequence[str], *, as_json: bool) -> None:
        if not option("CATALOG_EVENTS"):
            raise CommandError("CATALOG_EVENTS is off: nothing would be sent.")
        try:
            url_access.check_url(PROFILE, url)
            created = endpoints.create(
                profile=PROFILE, owner=OWNER, url=url, event_types=event_types
            )
        except UrlRefusedError as error:
            raise CommandError(f"{error}.") from error
        except endpoints.QuotaExceededError as error:
            raise CommandError("There are as many receivers as may be.") from error
        told = document(created.endpoint) | {"secret": created.secret}
        words = f"{created.endpoint.public_id} {created.secret}"
        self.stdout.write(format_output(told, words, as_json=as_json))

    def remove(self, public_id: str, *, as_json: bool) -> None:
        found = Endpoint.objects.of(PROFILE, OWNER).filter(public_id=public_id).first()
        if found is None or not endpoints.delete(found):
            raise CommandError("There is no such receiver.")
        self.stdout.write(
            format_output({"removed": public_id}, "Removed.", as_json=as_json)
        )


def document(endpoint: Endpoint) -> dict[str, Any]:
    """Return what `list` tells, for programs; no event types means all."""
    return {
        "id": endpoint.public_id,
        "url": endpoint.url,
        "event_types": endpoint.event_types,
    }
