"""The prices that the budget of a key needs."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from django.db import OperationalError

from gateway.chat.metering.budget_definitions import Definitions, Loaded
from gateway.chat.tokens import Usage
from gateway.configuration.shapes import BudgetEntry
from gateway.identity import Rights
from tests.gateway.chat.metering.budgeting import (
    ADA,
    ONE,
    PRICE,
    Database,
    process,
    request,
    run,
    use,
)


def test_a_key_whose_cost_is_limited_has_the_prices_loaded():
    own = BudgetEntry("key 7", "cost", "day", 1, per=("key",))
    asked = []

    def load(_: Any, with_prices: bool) -> Loaded:
        asked.append(with_prices)
        return Loaded((), {"small": PRICE} if with_prices else {})

    database = Database()
    budgets = process(database)
    budgets.definitions.load = load
    context = request(replace(ADA, key_id=7, rights=Rights(budget=own)))
    run(use(budgets, request(), ONE), use(budgets, context, Usage(1000, 100)))
    run(budgets.share())
    assert list(database.amounts.values()) == [2_000_000]
    assert asked == [False, True]


def test_prices_that_could_not_be_loaded_are_loaded_with_the_next_turn():
    async def prices() -> Any:
        loading, loaded, with_prices = asyncio.Event(), asyncio.Event(), []

        async def in_thread(function: Any) -> Any:
            with_prices.append(function.args[1])
            if with_prices == [False]:
                loading.set()
                await loaded.wait()
            elif with_prices == [False, True]:
                loaded.set()
                raise OperationalError
            return function()

        definitions = Definitions(
            in_thread,
            load=lambda _, priced: Loaded((), {"small": PRICE} if priced else {}, "v1"),
        )
        first = asyncio.create_task(definitions.renew("v1"))
        await loading.wait()
        await definitions.need_prices()
        await first
        await definitions.renew("v1")
        return definitions.prices

    assert asyncio.run(prices()) == {"small": PRICE}


def test_no_request_is_reserved_before_the_prices_that_another_had_begun_to_load():
    own = BudgetEntry("key 7", "cost", "day", 1, per=("key",))
    caller = replace(ADA, key_id=7, rights=Rights(budget=own))

    async def reserved() -> int:
        loading, loaded = asyncio.Event(), asyncio.Event()

        async def slowly(function: Any) -> Any:
            if function.args[1:] == (True,):
                loading.set()
                await loaded.wait()
            return function()

        budgets = process(Database())
        budgets.definitions.load = lambda _, with_prices: Loaded(
            (), {"small": PRICE} if with_prices else {}
        )
        budgets.definitions.in_thread = slowly
        leaving = asyncio.create_task(budgets.reserve(request(caller)))
        await loading.wait()
        context = request(caller, max_tokens=1000)
        staying = asyncio.create_task(budgets.reserve(context))
        leaving.cancel()
        await asyncio.wait({leaving})
        loaded.set()
        await staying
        return int(context.reservation.amounts.cost)

    assert asyncio.run(reserved()) > 0
