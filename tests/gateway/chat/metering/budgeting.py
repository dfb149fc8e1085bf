"""Budgets of one process or several, with rows and a clock of the test."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import orjson
import pytest
from django.db import OperationalError

from gateway.chat.apis.openai.chat import CHAT
from gateway.chat.context import ChatContext
from gateway.chat.metering.budget_rows import CounterKey, Stored
from gateway.chat.metering.budgets import BudgetExceededError, Budgets
from gateway.chat.metering.definitions import Loaded
from gateway.chat.metering.thresholds import Reached, highest_share
from gateway.chat.models import ModelPrice
from gateway.chat.request import ModelRequest
from gateway.chat.tokens import Usage
from gateway.configuration.shapes import BudgetEntry, ModelEntry, Target
from gateway.identity import Caller
from tests.gateway.chat.harness import MESSAGES

NOON = datetime(2026, 11, 25, 12, 0, 30, tzinfo=UTC)
ADA, BOB = Caller("acme", "ada", 7), Caller("beta", "bob")
PRICE = ModelPrice(model="small", prompt_price=Decimal(1), completion_price=Decimal(10))


class Database:
    """The rows that all processes share; the time passes only when somebody waits."""

    def __init__(self) -> None:
        self.amounts: Counter[CounterKey] = Counter()
        self.reported: Counter[CounterKey] = Counter()
        self.reports: list[tuple[str, int]] = []
        self.is_away = False
        self.calls = 0
        self.now = NOON

    def add(self, amounts: Mapping[CounterKey, int]) -> dict[CounterKey, Stored]:
        self.calls += 1
        if self.is_away:
            raise OperationalError
        self.amounts.update(amounts)
        return {key: Stored(self.amounts[key], self.reported[key]) for key in amounts}

    def report(self, counters: Iterable[Reached]) -> None:
        for key, entry, amount in counters:
            self.reported[key] = highest_share(entry, amount)
            self.reports.append((key.budget, self.reported[key]))

    async def sleep(self, seconds: float) -> None:
        """Wait until a test lets the time pass."""
        until = self.now + timedelta(seconds=seconds)
        while self.now < until:  # noqa: ASYNC110 - no event says that a time has come
            await asyncio.sleep(0)


async def in_thread(function: Callable[[], Any]) -> Any:
    return function()


def process(
    database: Database, *entries: BudgetEntry, endpoints: Any = dict, **options: Any
) -> Budgets:
    return Budgets(
        in_thread,
        endpoints,
        load=lambda *_: Loaded(entries, {"small": PRICE}),
        add=database.add,
        report=database.report,
        now=lambda: database.now,
        clock=lambda: database.now.timestamp(),  # noqa: PLW0108 - `now` changes
        sleep=database.sleep,
        **options,
    )


def endpoints(**kinds: Any) -> dict[str, ModelEntry]:
    return {name: ModelEntry(name, kind, ()) for name, kind in kinds.items()}


def budget(counts="requests", limit=3, window="hour", **fields) -> BudgetEntry:
    return BudgetEntry("b", counts, window, limit, **fields)


def request(caller=ADA, model="small", **body) -> ChatContext:
    raw = orjson.dumps({"model": model, "messages": MESSAGES, **body})
    entry = ModelEntry(model, "openai", (Target("http://x", "there"),))
    return ChatContext(caller, entry, ModelRequest.parse(raw), "req-7", CHAT)


def end(budgets: Budgets, context: ChatContext, *, status=200, usage=None) -> None:
    context.usage = usage
    context.end(status)
    budgets.settle(context)


async def use(budgets: Budgets, context: ChatContext, usage: Usage) -> None:
    await budgets.reserve(context)
    end(budgets, context, usage=usage)


def refusal(budgets: Budgets, context: ChatContext) -> BudgetExceededError:
    with pytest.raises(BudgetExceededError) as refused:
        asyncio.run(budgets.reserve(context))
    return refused.value


def run(*steps: Any) -> None:
    async def in_turn() -> None:
        for step in steps:
            await step

    asyncio.run(in_turn())


ONE = Usage(1, 1)
