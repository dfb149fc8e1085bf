"""The budgets in force and the prices: those of the configuration file and of the admin."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import structlog
from django.db import Error

from gateway import configuration
from gateway.chat.budget_models import Budget
from gateway.chat.metering.prices import listed
from gateway.chat.models import ModelPrice
from gateway.configuration import EntryError
from gateway.configuration.shapes import COST, BudgetEntry, ModelEntry
from webhooks_core.database.outages import reason
from webhooks_core.web.thread_pool import InThread

# How long a request waits for the first load.
WAIT_S = 5.0

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


@dataclass(slots=True)
class Definitions:
    """What load() returned last. Before the first time, the budgets of the configuration."""

    in_thread: InThread
    endpoints: Callable[[], Mapping[str, ModelEntry]] = dict
    load: Callable[..., Loaded] = load
    budgets: Sequence[BudgetEntry] = ()
    prices: Mapping[str, ModelPrice] = field(default_factory=dict)
    # The first load, and the first with prices: tasks, since a request that waits may be cancelled.
    _first: asyncio.Task[None] | None = None
    _priced: asyncio.Task[None] | None = None

    async def ready(self) -> None:
        """Wait for the first load, which begins when the endpoints are known."""
        if self._first is None:
            self._first = asyncio.create_task(self.renew())
        if not self._first.done():
            await asyncio.wait({self._first}, timeout=WAIT_S)

    async def need_prices(self) -> None:
        """Load prices now and from now on: the budget of a key needs them."""
        if self._priced is None:
            self._priced = asyncio.create_task(self.renew())
        if not self._priced.done():
            await asyncio.wait({self._priced}, timeout=WAIT_S)

    async def renew(self) -> None:
        """Load again. Without the database, what was loaded last serves."""
        endpoints, with_prices = self.endpoints(), self._priced is not None
        try:
            loaded = await self.in_thread(partial(self.load, endpoints, with_prices))
        except (Error, TimeoutError, OSError) as error:
            log.warning("budgets not loaded", error=reason(error))
            return
        self.budgets, self.prices = loaded
