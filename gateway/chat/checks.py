"""System checks of chat: its tables, and the operator's function."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from django.conf import settings
from django.core import checks
from django.utils.module_loading import import_string

from gateway.chat.budget_models import Budget
from gateway.checks import may_read


@checks.register("budgets")
def check_budgets(
    databases: Sequence[str] | None = None, **_: Any
) -> list[checks.CheckMessage]:
    """Return a warning for each budget of the admin that has no effect."""
    if not may_read(Budget, databases):
        return []
    from gateway import configuration

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
    from gateway.configuration import EntryError

    if row.name in names:
        return "hidden by the file"
    try:
        row.entry()
    except EntryError as error:
        return str(error)
    return ""


@checks.register
def check_policy(**_: Any) -> list[checks.CheckMessage]:
    """Return an error if GATEWAY_CHAT_POLICY names nothing that can be called."""
    path = settings.GATEWAY_CHAT_POLICY
    try:
        if not path or callable(import_string(path)):
            return []
        fault = "is nothing that can be called"
    except ImportError as error:
        fault = f"cannot be imported: {error}"
    return [
        checks.Error(f"GATEWAY_CHAT_POLICY: {path!r} {fault}.", id="gateway_chat.E001")
    ]
