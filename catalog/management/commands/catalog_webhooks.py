"""Add, list and remove the receivers of the catalog's events."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from catalog.conf import option
from catalog.webhooks import EVENT_TYPES, OWNER, PROFILE
from webhooks_core import endpoints
from webhooks_core.management.output import add_json_argument, format_output, write_list
from webhooks_core.models import Endpoint
from webhooks_core.network.url_policy import UrlRefusedError


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        add = actions.add_parser(
            "add", help="add a receiver and print its secret, once"
        )
        add.add_argument("url")
        add.add_argument(
            "--event",
            action="append",
            default=[],
            choices=sorted(EVENT_TYPES),
            help="an event type (repeatable; default: all)",
        )
        list_ = actions.add_parser("list", help="list each receiver and its events")
        remove = actions.add_parser(
            "remove", help="remove a receiver; its pending deliveries fail"
        )
        remove.add_argument("id")
        for action in (add, list_, remove):
            add_json_argument(action)

    def handle(self, *args: Any, action: str, **options: Any) -> None:
        {"add": self.add, "list": self.list, "remove": self.remove}[action](options)

    def add(self, options: dict[str, Any]) -> None:
        if not option("CATALOG_EVENTS"):
            raise CommandError("CATALOG_EVENTS is off: nothing would be sent.")
        url = options["url"]
        try:
            endpoints.check_url(PROFILE, url)
            created = endpoints.create(
                profile=PROFILE, owner=OWNER, url=url, event_types=options["event"]
            )
        except UrlRefusedError as error:
            raise CommandError(f"{error}.") from error
        except endpoints.QuotaExceededError as error:
            raise CommandError("There are as many receivers as may be.") from error
        document = described(created.endpoint) | {"secret": created.secret}
        self.print(document, f"{created.endpoint.public_id} {created.secret}", options)

    def list(self, options: dict[str, Any]) -> None:
        rows = Endpoint.objects.of(PROFILE, OWNER).order_by("pk")
        listed = [described(endpoint) for endpoint in rows]
        write_list(self, listed, as_json=options["json"], noun="receivers")

    def remove(self, options: dict[str, Any]) -> None:
        endpoints_of_owner = Endpoint.objects.of(PROFILE, OWNER)
        endpoint = endpoints_of_owner.filter(public_id=options["id"]).first()
        if endpoint is None or not endpoints.delete(endpoint):
            raise CommandError("There is no such receiver.")
        self.print({"removed": options["id"]}, "Removed.", options)

    def print(
        self, document: dict[str, Any], text: str, options: dict[str, Any]
    ) -> None:
        self.stdout.write(format_output(document, text, as_json=options["json"]))


def described(endpoint: Endpoint) -> dict[str, Any]:
    """Return an endpoint for --json; no event types means all."""
    return {
        "id": endpoint.public_id,
        "url": endpoint.url,
        "event_types": endpoint.event_types,
    }
