"""The budgets in force and the prices: those of the configuration file and of the admin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import structlog

from gateway import configuration
from gateway.chat.budget_models import Budget
from gateway.chat.metering.prices import listed
from gateway.chat.models import ModelPrice
from gateway.configuration import EntryError
from gateway.configuration.shapes import COST, BudgetEntry, ModelEntry

log = structlog.stdlib.get_logger(__name__)


class Loaded(NamedTuple):
    """The budgets, and prices by model if a budget limits costs."""

    budgets: Sequence[BudgetEntry]
    prices: Mapping[str, ModelPrice]


def budgets() -> list[BudgetEntry]:
    """Return the budgets in force. A name in the configuration wins over a row's. One query.

    A row that is not valid is left out, and logged.
    """
    declared = configuration.current().budgets
    current, names = [*declared], {budget.name for budget in declared}
    for row in Budget.objects.filter(is_active=True).exclude(name__in=names):
        try:
            current.append(row.entry())
        except EntryError as error:
            log.error("budget left out", budget=row.name, reason=str(error))
    return current


def load(endpoints: Mapping[str, ModelEntry], with_prices: bool = False) -> Loaded:
    """Return the budgets, and prices if asked or one of them needs any. Raises DatabaseError."""
    current = budgets()
    costs = with_prices or any(budget.counts == COST for budget in current)
    return Loaded(current, prices(endpoints) if costs else {})


def prices(endpoints: Mapping[str, ModelEntry]) -> dict[str, ModelPrice]:
    """Return prices by model: the operator's, and those of the public list for other endpoints."""
    public = {
        name: listed(entry.targets[0].base_url, entry.targets[0].model)
        for name, entry in endpoints.items()
    }
    own = {price.model: price for price in ModelPrice.objects.all()}
    return {name: price for name, price in public.items() if price} | own
