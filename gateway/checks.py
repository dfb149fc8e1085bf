"""System checks of the gateway's tables."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from django.core import checks
from django.db import connections
from django.db.models import Model

from gateway import configuration, static_subscriptions
from gateway.chat.budget_models import Budget
from gateway.configuration import EntryError
from webhooks_core.models import Endpoint


@checks.register("static_subscriptions")
def check_static_subscriptions(
    databases: Sequence[str] | None = None, **_: Any
) -> list[checks.CheckMessage]:
    """Return a warning if the tables differ from the configuration's static subscriptions."""
    if not databases or "default" not in databases or not _has_table(Endpoint):
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


@checks.register("budgets")
def check_budgets(
    databases: Sequence[str] | None = None, **_: Any
) -> list[checks.CheckMessage]:
    """Return a warning for each budget of the admin that has no effect."""
    if not databases or "default" not in databases or not _has_table(Budget):
        return []
    names = {budget.name for budget in configuration.current().budgets}
    reasons = ((row, _why_without_effect(row, names)) for row in Budget.objects.all())
    return [
        checks.Warning(
            f"The budget {row.name!r} of the admin has no effect: {reason}.",
            hint="Change or delete it in the admin.",
            id="gateway_chat.W001",
        )
        for row, reason in reasons
        if reason
    ]


def _why_without_effect(row: Budget, names: Collection[str]) -> str:
    if row.name in names:
        return "hidden by the file"
    try:
        row.entry()
    except EntryError as error:
        return str(error)
    return ""


def _has_table(model: type[Model]) -> bool:
    """Return False before the first migration."""
    tables = connections["default"].introspection.table_names()
    return model._meta.db_table in tables  # noqa: SLF001 - public by use
