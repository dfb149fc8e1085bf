"""A command that changes one endpoint, or all of an owner."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from webhooks_core.management import owners
from webhooks_core.management.output import add_json_argument, format_output
from webhooks_core.models import Endpoint


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
        changed = [
            row.public_id for row in owners.narrowed(rows, owner) if self.apply(row)
        ]
        plural = "" if len(changed) == 1 else "s"
        text = "\n".join([f"{len(changed)} endpoint{plural} {self.done}", *changed])
        self.stdout.write(format_output({self.done: changed}, text, as_json=json))

    def apply(self, endpoint: Endpoint) -> bool:
        """Change an endpoint; return False if there is nothing to change."""
        raise NotImplementedError
