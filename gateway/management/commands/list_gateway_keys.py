"""List gateway keys: never the keys themselves, only their first characters."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from gateway.models import GatewayKey
from webhooks_core.management.bearer_tokens import described
from webhooks_core.management.output import add_json_argument, write_list


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", help="only the keys of this tenant")
        add_json_argument(parser)

    def handle(
        self, *args: Any, tenant: str | None, json: bool, **options: Any
    ) -> None:
        rows, now = GatewayKey.objects.order_by("id"), timezone.now()
        if tenant is not None:
            rows = rows.filter(tenant=tenant)
        listed = [
            described(row, now, noun="key", tenant=row.tenant, principal=row.principal)
            | {
                "scopes": sorted(row.rights.scopes),
                "models": row.allowed_models or [],
                "created_by": row.created_by,
            }
            for row in rows.iterator()
        ]
        write_list(self, listed, as_json=json, noun="gateway keys")
