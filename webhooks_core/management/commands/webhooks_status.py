"""Show the endpoints: which fail, since when, why, and what waits."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand
from django.db.models import F, Q

from webhooks_core.management.endpoint_command import narrowed
from webhooks_core.management.output import add_json_argument, write_list
from webhooks_core.management.printable import printable
from webhooks_core.models import Endpoint
from webhooks_core.owners import endpoint_state
from webhooks_core.owners.endpoint_state import EndpointState, Health
from webhooks_core.times import iso

AT_MOST = 1000
FAILING = (Health.DISABLED, Health.HANGING, Health.FAILING)


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--failing",
            action="store_true",
            help="only those that fail, hang or are disabled",
        )
        parser.add_argument("--owner", help="a tenant, a user name, or the owner's id")
        add_json_argument(parser)

    def handle(
        self,
        *args: Any,
        failing: bool,
        owner: str | None,
        json: bool,
        **options: Any,
    ) -> None:
        condition = Q()
        if failing:
            condition = (
                FAILING[0].condition | FAILING[1].condition | FAILING[2].condition
            )
        rows = narrowed(Endpoint.objects.filter(condition, deleted_at=None), owner)
        # Those that fail come first, and of these the longest.
        ordered = rows.defer("custom_headers").order_by(
            F("failing_since").asc(nulls_last=True), "-status", "pk"
        )
        endpoints = list(ordered[: AT_MOST + 1])
        states = endpoint_state.describe_all(endpoints[:AT_MOST])
        found = [(endpoint, states[endpoint.pk]) for endpoint in endpoints[:AT_MOST]]
        if len(endpoints) > AT_MOST:
            self.stderr.write(f"The first {AT_MOST}: name an owner with --owner.", str)
        if json:
            rows_of = [_row(endpoint, state) for endpoint, state in found]
            write_list(self, rows_of, as_json=True, noun="endpoints")
            return
        for endpoint, state in found:
            self.stdout.write(_text(endpoint, state))
        if not found:
            text = "No endpoint fails." if failing else "There are no endpoints."
            self.stderr.write(text, str)


def _row(endpoint: Endpoint, state: EndpointState) -> dict[str, Any]:
    return {
        "id": endpoint.public_id,
        "profile": endpoint.profile,
        "owner": endpoint.owner,
        "url": endpoint.url,
        "state": state.state.value.lower(),
        "since": state.since and iso(state.since),
        "failing_since": endpoint.failing_since and iso(endpoint.failing_since),
        "attempts": state.attempts,
        "error": state.error,
        "last_success_at": state.last_success_at and iso(state.last_success_at),
        "waiting": state.waiting,
        "skipped": state.skipped,
        "message": state.sentence,
    }


def _text(endpoint: Endpoint, state: EndpointState) -> str:
    head = f"{state.state.value:<9} {endpoint.public_id}  {endpoint.profile} {endpoint.owner}"
    lines = [head, f"          {endpoint.url}", f"          {state.sentence}"]
    return printable("\n".join(lines), keep="\n")
