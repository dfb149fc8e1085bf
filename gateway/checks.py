"""System checks of the gateway's tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core import checks
from django.db.models import Model

from webhooks_core.models import Endpoint
from webhooks_core.upkeep import bootstrap


@checks.register("static_subscriptions")
def check_static_subscriptions(
    databases: Sequence[str] | None = None, **_: Any
) -> list[checks.CheckMessage]:
    """Return a warning if the tables differ from the configuration's static subscriptions."""
    from gateway import configuration, static_subscriptions

    configured = configuration.current()  # a bad file is a start-up error
    if not may_read(Endpoint, databases):
        return []
    if static_subscriptions.is_synchronised(configured):
        return []
    return [
        checks.Warning(
            "The static subscriptions in the database are not those of GATEWAY_CONFIG.",
            hint="Run `manage.py sync_gateway_config`.",
            id="gateway.W001",
        )
    ]


def may_read(model: type[Model], databases: Sequence[str] | None) -> bool:
    """Return True if a check may read a model's rows; before the first migration it may not."""
    return "default" in (databases or ()) and bootstrap.has_table(model)
