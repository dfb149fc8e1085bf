"""Commands about endpoints: one, all of an owner, or all."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db.models import QuerySet

from webhooks_core.management.output import add_json_argument, format_output
from webhooks_core.models import Endpoint
from webhooks_core.owners.names import named


def narrowed(endpoints: QuerySet[Endpoint], owner: str | None) -> QuerySet[Endpoint]:
    """Return the endpoints of an owner; without one, all. Raises CommandError if it has none."""
    if owner is None:
        return endpoints
    if not Endpoint.objects.filter(named(owner)).exists():
        raise CommandError(f"{owner!r} has no endpoint")
    return endpoints.filter(named(owner))


class EndpointCommand(BaseCommand):
    """Applies a change to endpoints; `done` is what the output calls it."""

    done = ""

    def add_arguments(self, parser: ArgumentParser) -> None:
        subject = parser.add_mutually_exclusive_group(required=True)
        subject.add_argument("--endpoint", metavar="ID", help="this endpoint")
        subject.add_argument(
            "--owner", help="all of a tenant, a user name, or the owner's id"
        )
        add_json_argument(parser)

    def handle(
        self,
        *args: Any,
        endpoint: str | None,
        owner: str | None,
        json: bool,
        **options: Any,
    ) -> None:
        rows = Endpoint.objects.filter(deleted_at=None).order_by("pk")
        if endpoint is not None:
            rows = rows.filter(public_id=endpoint)
            if not rows.exists():
                raise CommandError(f"there is no endpoint {endpoint}")
        changed = [row.public_id for row in narrowed(rows, owner) if self.apply(row)]
        plural = "" if len(changed) == 1 else "s"
        text = "\n".join([f"{len(changed)} endpoint{plural} {self.done}", *changed])
        self.stdout.write(format_output({self.done: changed}, text, as_json=json))

    def apply(self, endpoint: Endpoint) -> bool:
        """Change an endpoint; return False if there is nothing to change."""
        raise NotImplementedError
