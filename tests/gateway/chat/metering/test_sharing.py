"""What processes learn from each other by the rows of counters, and what goes on without them."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError
from django.utils import timezone

from gateway.chat.metering.budget_rows import CounterKey, Stored, add_to_rows
from gateway.chat.metering.definitions import Loaded
from gateway.chat.metering.usage import prune
from gateway.chat.models import BudgetCounter
from gateway.chat.tokens import Usage
from gateway.configuration.shapes import BudgetEntry
from gateway.identity import Caller, Rights
from tests.gateway.chat.metering.budgeting import (
    ADA,
    NOON,
    ONE,
    PRICE,
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


@pytest.mark.parametrize(("number", "window"), [(2, "day"), (8, "day"), (8, "minute")])
def test_a_burst_in_several_processes_does_not_use_up_the_limit_in_each(number, window):
    """At most one request of each other process passes before it learns of the last ones."""
    database = Database()
    database.now = NOON.replace(
        second=0
    )  # a minute has just begun, and is taken for empty
    entry = budget(limit=50, window=window)
    processes = [process(database, entry) for _ in range(number)]

    async def answered(budgets: Any) -> None:
        context = request()
        await budgets.reserve(context)
        end(budgets, context, usage=ONE)

    async def burst() -> int:
        tasks = (answered(each) for each in processes for _ in range(100))
        results = await asyncio.gather(*tasks, return_exceptions=True)
        return results.count(None)

    assert 50 <= asyncio.run(burst()) <= 50 + number - 1


def test_requests_that_failed_leave_the_rest_to_others():
    """What they have taken counts for nothing after the next reading."""
    database = Database()
    budgets = process(database, budget(limit=3))

    async def failed_and_then_answered() -> None:
        for _ in range(5):
            context = request()
            await budgets.reserve(context)
            end(budgets, context, status=500)
        await asyncio.gather(*(budgets.reserve(request()) for _ in range(3)))

    asyncio.run(failed_and_then_answered())


def test_a_steady_use_costs_one_statement_a_second():
    database = Database()
    entries = [
        replace(budget(limit=10**6, per=("key",)), name=f"b{n}") for n in range(5)
    ]
    budgets = process(database, *entries)
    callers = [Caller("acme", "ada", number) for number in range(20)]

    async def minute() -> None:
        budgets.start()
        for _ in range(60):
            for caller in callers:
                await use(budgets, request(caller), ONE)
            database.now += timedelta(seconds=1)
            for _ in range(10):
                await asyncio.sleep(0)
        await budgets.stop()

    asyncio.run(minute())
    assert sum(database.amounts.values()) == 60 * 20 * 5
    # Each caller's first request waits for a reading of its own counters.
    assert database.calls <= 60 + len(callers) + 1


def test_requests_that_wait_at_once_have_one_reading():
    database = Database()
    budgets = process(database, budget(limit=10_000))

    async def at_once() -> None:
        await asyncio.gather(*(budgets.reserve(request()) for _ in range(50)))

    asyncio.run(at_once())
    assert database.calls == 1


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
    budgets._forget_ended()
    assert len(budgets._counters) == 0


def test_each_share_is_reported_once_and_a_report_that_failed_is_made_later():
    database = Database()
    processes = [process(database, budget(limit=10)) for _ in range(2)]
    for number in range(10):
        each = processes[number % 2]
        report, each.report = each.report, failing
        run(use(each, request(), ONE), each.share())
        each.report = report
        run(each.share())
    assert database.reports == [("b", 50), ("b", 80), ("b", 100)]


def failing(*_: Any) -> Any:
    raise OperationalError


# ── The prices of a key's budget ────────────────────────────────────────────────────


def test_a_key_whose_cost_is_limited_has_the_prices_loaded():
    own = BudgetEntry("key 7", "cost", "day", 1, per=("key",))
    asked = []

    def load(_: Any, with_prices: bool) -> Loaded:
        asked.append(with_prices)
        return Loaded((), {"small": PRICE} if with_prices else {})

    database = Database()
    budgets = process(database)
    budgets.load = load
    context = request(replace(ADA, key_id=7, rights=Rights(budget=own)))
    run(use(budgets, request(), ONE), use(budgets, context, Usage(1000, 100)))
    run(budgets.share())
    assert list(database.amounts.values()) == [2_000_000]
    assert asked == [False, True]


# ── The rows ────────────────────────────────────────────────────────────────────────

ROW = CounterKey("monthly", "tenant acme", 1_800_000_000, "acme")
ALL = CounterKey("all", "", 1_800_000_000, "")


@pytest.mark.django_db
def test_one_statement_adds_to_all_counters(django_assert_num_queries):
    other = ROW._replace(tenant="")  # it is found whoever it belonged to
    with django_assert_num_queries(2):
        assert add_to_rows({ALL: 1, other: 10**15}) == {
            ALL: Stored(1, 0),
            other: Stored(10**15, 0),
        }
        assert add_to_rows({ROW: 2, ALL: 0}) == {
            ROW: Stored(10**15 + 2, 0),
            ALL: Stored(1, 0),
        }


@pytest.mark.django_db
def test_as_many_counters_as_callers_are_written():
    many = {ROW._replace(subject=f"tenant {n}"): n for n in range(10_000)}
    assert {key: stored.amount for key, stored in add_to_rows(many).items()} == many


@pytest.mark.django_db
def test_counters_of_old_windows_are_pruned():
    now = int(timezone.now().timestamp())
    for age in (0, 40, 70):
        add_to_rows({ROW._replace(window=now - age * 86_400): 1})
    prune()
    assert BudgetCounter.objects.count() == 2
