"""Create a link that opens the portal of a tenant once, and print it: no command shows it again."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from gateway.identity import SYSTEM
from gateway.portal import links
from webhooks_core.management.output import add_json_argument, format_output
from webhooks_core.times import iso

# Without view_secret: the secret of a new endpoint is shown to who adds the endpoint.
DEFAULT = "view,manage"


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", required=True)
        parser.add_argument(
            "--capabilities",
            default=DEFAULT,
            help=f"comma-separated: {', '.join(links.CAPABILITIES)} (default: {DEFAULT})",
        )
        parser.add_argument(
            "--expires-in",
            type=int,
            default=links.DEFAULT_S,
            help=f"seconds, {links.SHORTEST_S} to {links.LONGEST_S}",
        )
        parser.add_argument("--actor", default="", help="a name for the log of changes")
        add_json_argument(parser)

    @transaction.atomic
    def handle(self, *args: Any, json: bool, **options: Any) -> None:
        names = ("tenant", "expires_in", "actor")
        try:
            created = links.create(
                principal=SYSTEM,
                capabilities=options["capabilities"].split(","),
                **{name: options[name] for name in names},
            )
        except links.LinkInputError as error:
            raise CommandError(str(error)) from error
        values = {
            "id": created.link.public_id,
            "url": created.url,
            "expires_at": iso(created.link.expires_at),
        }
        self.stdout.write(format_output(values, created.url, as_json=json))
