"""List gateway keys: never the keys themselves, only their first characters."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import datetime
from typing import Any

import orjson
from django.core.management.base import BaseCommand
from django.utils import timezone

from gateway.models import GatewayKey
from webhooks_core.formats import iso


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", help="only the keys of this tenant")
        parser.add_argument("--json", action="store_true", help="one object per line")

    def handle(
        self, *args: Any, tenant: str | None, json: bool, **options: Any
    ) -> None:
        rows, now = GatewayKey.objects.order_by("id"), timezone.now()
        if tenant is not None:
            rows = rows.filter(tenant=tenant)
        for number, key in enumerate(rows.iterator()):
            row = columns(key, now)
            if json:
                self.stdout.write(orjson.dumps(row).decode())
                continue
            if number == 0:
                self.stdout.write("\t".join(row))
            self.stdout.write("\t".join(map(str, row.values())))


def columns(key: GatewayKey, now: datetime) -> dict[str, Any]:
    return {
        "id": key.pk,
        "key": f"{key.display_prefix}…",
        "tenant": key.tenant,
        "principal": key.principal,
        "state": key.state(now),
        "created": iso(key.created_at),
        "expires": iso(key.expires_at) if key.expires_at else "never",
        "last used": iso(key.last_used_at) if key.last_used_at else "never",
        "name": key.name,
    }
