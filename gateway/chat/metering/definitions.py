"""The budgets in force and the prices: those of the configuration file and of the admin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

import structlog
from django.conf import settings

from gateway import configuration
from gateway.chat.models import Budget, ModelPrice
from gateway.configuration import EntryError
from gateway.configuration.shapes import COST, BudgetEntry, ModelEntry

# The public list has prices that grow with the length of a request: these are for short ones.
PRICED_TOKENS = 1000
PER_MILLION = 1000

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


@lru_cache(maxsize=1000)
def listed(base_url: str, model: str) -> ModelPrice | None:
    """Return the price of a model at a vendor's address in the public list, in US dollars."""
    if not (base_url.startswith("https://") and settings.CHAT_PUBLIC_PRICES):
        return None
    # Imported with its list at the first use: it takes 0.4 s and 5 MB. No vendor is called by http.
    from genai_prices import Usage, calc_price

    def price(**tokens: int) -> Decimal:
        usage = Usage(**tokens)
        result = calc_price(usage, model_ref=model, provider_api_url=base_url)
        return result.total_price * PER_MILLION

    try:
        return ModelPrice(
            model=model,
            prompt_price=price(input_tokens=PRICED_TOKENS),
            completion_price=price(output_tokens=PRICED_TOKENS),
            cached_input_price=price(
                input_tokens=PRICED_TOKENS, cache_read_tokens=PRICED_TOKENS
            ),
            cache_write_price=price(
                input_tokens=PRICED_TOKENS, cache_write_tokens=PRICED_TOKENS
            ),
        )
    except LookupError:
        return None
