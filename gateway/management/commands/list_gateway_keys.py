"""List gateway keys: never the keys themselves, only their first characters."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from gateway.models import GatewayKey
from webhooks_core.management.output import add_json_argument, write_list
from webhooks_core.times import iso


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
        listed = [describe(key, now) for key in rows.iterator()]
        write_list(self, listed, as_json=json, noun="gateway keys")


def describe(key: GatewayKey, now: datetime) -> dict[str, Any]:
    """Return what the list shows of a key; None means never."""
    return {
        "id": key.pk,
        "key": f"{key.display_prefix}…",
        "tenant": key.tenant,
        "principal": key.principal,
        "state": key.state(now),
        "created_at": iso(key.created_at),
        "expires_at": iso(key.expires_at) if key.expires_at else None,
        "last_used_at": iso(key.last_used_at) if key.last_used_at else None,
        "name": key.name,
    }
