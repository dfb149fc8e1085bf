"""System checks of the gateway's tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core import checks
from django.db import connections
from django.db.models import Model

from gateway import configuration, static_subscriptions
from webhooks_core.models import Endpoint


@checks.register("static_subscriptions")
def check_static_subscriptions(
    databases: Sequence[str] | None = None, **_: Any
) -> list[checks.CheckMessage]:
    """Return a warning if the tables differ from the configuration's static subscriptions."""
    if not databases or "default" not in databases or not has_table(Endpoint):
        return []
    if static_subscriptions.is_synchronised(configuration.current()):
        return []
    return [
        checks.Warning(
            "The static subscriptions in the database are not those of GATEWAY_CONFIG.",
            hint="Run `manage.py sync_gateway_config`.",
            id="gateway.W001",
        )
    ]


def has_table(model: type[Model]) -> bool:
    """Return False before the first migration."""
    tables = connections["default"].introspection.table_names()
    return model._meta.db_table in tables  # noqa: SLF001 - public by use
