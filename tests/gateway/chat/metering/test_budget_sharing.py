"""What processes learn from each other, and what goes on without a store."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any

from django.db import OperationalError

from gateway.chat.metering.budget_definitions import Loaded
from gateway.chat.metering.budgets import Budgets
from gateway.identity import Caller
from tests.gateway.chat.metering.budgeting import (
    ONE,
    Database,
    budget,
    end,
    process,
    refusal,
    request,
    run,
    use,
)


def test_processes_learn_from_each_other_and_lose_nothing():
    database = Database()
    first, second = (process(database, budget(limit=10)) for _ in range(2))
    for _ in range(5):
        run(use(first, request(), ONE), use(second, request(), ONE))
    run(first.share(), second.share(), first.share())
    assert list(database.amounts.values()) == [10]
    database.now += timedelta(seconds=61)
    for budgets in (first, second, process(database, budget(limit=10))):
        refusal(budgets, request())


def test_near_a_limit_a_request_waits_for_the_next_reading():
    """The others' pace says when that is; far from the limit, nothing waits."""
    database = Database()
    first, second = (process(database, budget(limit=101)) for _ in range(2))
    run(use(first, request(), ONE), first.share())

    def others() -> None:
        run(*(use(second, request(), ONE) for _ in range(10)), second.share())

    for _ in range(8):
        others()
        calls, began = database.calls, database.now
        run(use(first, request(), ONE))
        assert (database.calls, database.now) == (calls, began)
        run(first.share())
        database.now += timedelta(seconds=1)
    others()
    for _ in range(2):  # 99 are used: without a reading, it would know of 89
        run(use(first, request(), ONE))
    refusal(first, request())
    assert database.now - began <= timedelta(seconds=3)
    run(first.share())
    assert sum(database.amounts.values()) == 101


def test_two_processes_cannot_take_the_same_rest():
    """What waits near a limit is in the store before it is decided."""
    database = Database()
    first, second = (process(database, budget(limit=100)) for _ in range(2))
    for each in (first, second):
        run(use(each, request(), ONE), each.share())
    for _ in range(4):
        database.now += timedelta(seconds=1)
        for each in (first, second):
            run(*(use(each, request(), ONE) for _ in range(10)), each.share())
    admitted = 82
    for each in (first, second):
        database.now += timedelta(seconds=0.5)
        admitted += asyncio.run(admitted_of(each, 20))
    assert admitted == 100
    run(first.share(), second.share())
    assert sum(database.amounts.values()) == 100


async def admitted_of(budgets: Budgets, count: int) -> int:
    """Return how many of several requests at once are admitted; they go on."""
    reserved = (budgets.reserve(request()) for _ in range(count))
    results = await asyncio.gather(*reserved, return_exceptions=True)
    return results.count(None)


def test_without_the_quicker_store_the_other_one_serves():
    quick, database = Database(), Database()
    quick.name, quick.every_s = "redis", 0.25
    entry = budget(limit=2)
    budgets, other = (process(database, entry, quick=quick) for _ in range(2))
    run(use(budgets, request(), ONE), budgets.share())
    quick.is_away = True
    run(use(other, request(), ONE), other.share())
    database.now += timedelta(seconds=61)
    refusal(budgets, request())
    quick.is_away, quick.amounts = False, Counter()  # it has lost its memory
    quick.now = database.now
    for each in (budgets, other, process(database, entry, quick=quick)):
        refusal(each, request())


def test_a_steady_use_costs_one_statement_a_second():
    database = Database()
    entries = [
        replace(budget(limit=10**6, per=("key",)), name=f"b{n}") for n in range(5)
    ]
    budgets = process(database, *entries)
    budgets.sleep = database.wait
    loads = 0

    def load(*_: Any) -> Loaded:
        nonlocal loads
        loads += 1
        return Loaded(entries, {}, database.version)

    budgets.definitions.load = load
    callers = [Caller("acme", "ada", number) for number in range(20)]

    async def minute() -> None:
        budgets.start()
        for _ in range(60):
            for caller in callers:
                await use(budgets, request(caller), ONE)
            await pass_a_second()
        await budgets.stop()

    async def pass_a_second() -> None:
        database.now += timedelta(seconds=1)
        for _ in range(10):
            await asyncio.sleep(0)

    asyncio.run(minute())
    assert database.calls <= 60 + 20  # and one for each caller that is new
    assert loads == 1  # the statement says that the budgets are the same
    assert sum(database.amounts.values()) == 5 * 60 * 20


def test_a_changed_limit_counts_for_what_is_used_already():
    budgets = process(Database(), budget(limit=1))
    run(use(budgets, request(), ONE))
    refusal(budgets, request())
    budgets.definitions.load = lambda *_: Loaded([budget(limit=2)], {})
    run(budgets.definitions.renew(), use(budgets, request(), ONE))
    refusal(budgets, request())
    budgets.definitions.load = lambda *_: Loaded([], {})
    run(budgets.definitions.renew(), budgets.reserve(request()))


def test_without_the_database_the_budgets_that_were_loaded_last_serve():
    budgets = process(Database(), budget(limit=1))
    run(use(budgets, request(), ONE))
    budgets.definitions.load = failing
    run(budgets.definitions.renew())
    refusal(budgets, request())


def test_without_the_database_chat_goes_on_and_nothing_is_lost():
    database = Database()
    budgets = process(database, budget(limit=3))
    run(use(budgets, request(), ONE), budgets.share())
    database.is_away = True
    run(use(budgets, request(), ONE), budgets.share(), use(budgets, request(), ONE))
    refusal(budgets, request())  # the last known counters serve
    database.is_away = False
    run(budgets.share())
    assert list(database.amounts.values()) == [3]


def test_a_process_that_starts_without_the_database_asks_once_and_goes_on():
    database = Database()
    database.is_away = True
    budgets = process(database, budget(limit=5))
    for _ in range(3):
        run(use(budgets, request(), ONE))
    assert database.calls == 1


def test_a_request_is_charged_in_the_window_in_which_it_began():
    database = Database()
    budgets = process(database, budget(limit=1))
    context = request()
    run(budgets.reserve(context))
    database.now += timedelta(hours=1)
    run(use(budgets, request(), ONE))
    end(budgets, context, usage=ONE)
    run(budgets.share())
    assert list(database.amounts.values()) == [1, 1]
    database.now += timedelta(hours=2)
    run(budgets.share())
    assert len(budgets._counters) == 0


def test_each_share_is_reported_once():
    database = Database()
    processes = [process(database, budget(limit=10)) for _ in range(2)]
    for number in range(10):
        each = processes[number % 2]
        run(use(each, request(), ONE), each.share())
    assert database.reports == [("b", 50), ("b", 80), ("b", 100)]


def test_a_report_that_failed_is_made_later():
    database = Database()
    budgets = process(database, budget(limit=1))
    report, budgets.report = budgets.report, failing
    run(use(budgets, request(), ONE), budgets.share())
    budgets.report = report
    run(budgets.share())
    assert database.reports == [("b", 100)]


def failing(*_: Any) -> Any:
    raise OperationalError
