"""Budgets: what callers and models may use in a window, reserved before a call and settled after.

Each process counts what it uses itself and adds it to the counters in the database once a second,
by one statement that also returns what all processes have used. So the sum exceeds a limit by no
more than what is in flight and what the others have used within that second. Without the database
the last known counters serve, and what is not added yet is kept.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import structlog
from django.db import Error

from gateway.chat.core.context import ChatContext
from gateway.chat.core.errors import OverBudgetError
from gateway.chat.core.usage_tokens import Usage, count, estimate, prompt_length
from gateway.chat.metering import budget_counters
from gateway.chat.metering.budget_counters import CounterKey
from gateway.chat.metering.usage import NANO_PER_TOKEN, CompletedRequest
from gateway.chat.metering.windows import end_of, start_of
from gateway.chat.models import ModelPrice
from gateway.configuration.shapes import (
    COST,
    EMBEDDING,
    TOKENS,
    BudgetEntry,
    ModelEntry,
)
from gateway.identity import Caller
from webhooks_core.web.thread_pool import InThread

SYNC_S = 1.0
# A request waits for counters that are older. Those in use are read every SYNC_S.
STALE_S = 2.0
PRICES_S = 10.0
LOAD_S = 5.0
# After a failure requests do not wait for the database for so long.
PAUSE_S = 5.0
MAX_AMOUNT = 10**18
# Shares of a limit that are logged when they are reached.
WARNINGS = (50, 80, 100)
# The fields that limit a completion, in the three shapes.
MAX_TOKENS = ("max_completion_tokens", "max_tokens", "max_output_tokens")

log = structlog.stdlib.get_logger(__name__)


def _utc_now() -> datetime:
    return datetime.now(UTC)


class BudgetExceededError(OverBudgetError):
    """A request that does not fit into a budget any more in this window."""

    def __init__(self, budget: BudgetEntry, subject: str, now: datetime) -> None:
        resets_at = end_of(budget.window, start_of(budget.window, now))
        whose = f" for {subject}" if subject else ""
        super().__init__(
            f"The budget {budget.name!r} allows {budget.limit:g} {budget.counts} a "
            f"{budget.window}{whose}. It starts again at {resets_at:%Y-%m-%dT%H:%M:%SZ}.",
            headers={
                "Retry-After": str(max(1, math.ceil((resets_at - now).total_seconds())))
            },
        )
        self.resets_at = resets_at


@dataclass(slots=True)
class Counter:
    """One counter as this process knows it; `stored` is what the database had at `read_at`."""

    budget: BudgetEntry
    ends_at: datetime
    stored: int = 0
    read_at: float = float("-inf")
    unsent: int = 0
    reserved: int = 0
    was_used: bool = False  # since it was last added to the database

    @property
    def used(self) -> int:
        return self.stored + self.unsent

    def fits(self, amount: int) -> bool:
        return self.used + self.reserved + amount <= self.budget.counted_limit


@dataclass(frozen=True, slots=True)
class Amounts:
    """What a request uses, or may use: itself, tokens, and billionths of the currency."""

    requests: int
    tokens: int
    cost: int

    def of(self, budget: BudgetEntry) -> int:
        return min(int(getattr(self, budget.counts)), MAX_AMOUNT)


@dataclass(frozen=True, slots=True)
class Reservation:
    """What a request holds until it ends, and when it began."""

    at: datetime
    amounts: Amounts
    counters: Sequence[Counter]


@dataclass(slots=True)
class Budgets:
    """The budgets of one event loop; `in_thread` runs what uses the database.

    `default_tokens` is reserved for the completion of a request that does not limit it.
    """

    entries: Sequence[BudgetEntry]
    in_thread: InThread
    endpoints: Callable[[], Mapping[str, ModelEntry]] = dict
    default_tokens: int = 1024
    add: Callable[[Mapping[CounterKey, int]], Mapping[CounterKey, int]] = (
        budget_counters.add
    )
    load_prices: Callable[[Mapping[str, ModelEntry]], Mapping[str, ModelPrice]] = (
        budget_counters.prices
    )
    now: Callable[[], datetime] = _utc_now
    clock: Callable[[], float] = time.monotonic
    _counters: dict[CounterKey, Counter] = field(default_factory=dict)
    _prices: Mapping[str, ModelPrice] | None = None
    _prices_at: float = float("-inf")
    _paused_until: float = float("-inf")
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _task: asyncio.Task[None] | None = None

    # ── A request ────────────────────────────────────────────────────────────────────

    async def reserve(self, context: ChatContext) -> None:
        """Hold what a request may use, or raise BudgetExceededError.

        Nothing waits between the check and the reservation, so that requests of one process
        cannot both take the rest of a budget.
        """
        if not self.entries:
            return
        caller, model, now = context.caller, context.endpoint.name, self.now()
        counters = self._counters_of(caller, model, now)
        if not counters:
            return
        await self._know(counters.values())
        amounts = self._estimated(context, counters.values())
        refused = [
            BudgetExceededError(counter.budget, key.subject, now)
            for key, counter in counters.items()
            if not counter.fits(amounts.of(counter.budget))
        ]
        if refused:
            raise max(refused, key=lambda error: error.resets_at)
        for counter in counters.values():
            counter.reserved += amounts.of(counter.budget)
            counter.was_used = True
        context.reservation = Reservation(now, amounts, list(counters.values()))

    def settle(
        self, reservation: Reservation | None, completed: CompletedRequest
    ) -> None:
        """Replace what a request held by what it used, in the window in which it began.

        A fallback is charged to the model that answered. A call that failed before a token costs
        nothing, and is not counted as a request.
        """
        if reservation is None:
            return
        for counter in reservation.counters:
            counter.reserved -= reservation.amounts.of(counter.budget)
        usage = completed.usage
        if usage is None and completed.outcome >= 400:
            return
        used = Amounts(
            requests=1,
            tokens=usage.prompt_tokens + (usage.completion_tokens or 0) if usage else 0,
            cost=self._cost(completed.model, usage) if usage else 0,
        )
        caller = Caller(completed.tenant, completed.principal, completed.key_id)
        counters = self._counters_of(caller, completed.model, reservation.at)
        for counter in counters.values():
            counter.unsent += used.of(counter.budget)
            counter.was_used = True

    def _counters_of(
        self, caller: Caller, model: str, at: datetime
    ) -> dict[CounterKey, Counter]:
        """Return the counters that a request of this time counts in."""
        counters = {}
        for budget in self.entries:
            if _applies(budget, caller, model):
                start = start_of(budget.window, at)
                key = _key(budget, caller, model, start)
                if key not in self._counters:
                    self._counters[key] = Counter(budget, end_of(budget.window, start))
                counters[key] = self._counters[key]
        return counters

    def _estimated(self, context: ChatContext, counters: Iterable[Counter]) -> Amounts:
        """Return what a request may use: its prompt, and the longest completion it allows."""
        if all(counter.budget.counts not in {TOKENS, COST} for counter in counters):
            return Amounts(1, 0, 0)
        body = context.request.body
        limits = (count(body.get(name)) for name in MAX_TOKENS)
        has_completion = context.endpoint.inference_type != EMBEDDING
        default = self.default_tokens if has_completion else 0
        completion = next(filter(None, limits), default)
        usage = Usage(estimate(prompt_length(body)), completion)
        tokens = usage.prompt_tokens + completion
        return Amounts(1, tokens, self._cost(context.endpoint.name, usage))

    def _cost(self, model: str, usage: Usage) -> int:
        """Return a cost in billionths; without a price, at the highest of the upstream's kind."""
        prices = self._prices or {}
        if model in prices:
            return _nano(prices[model], usage)
        kinds = {name: entry.upstream for name, entry in self.endpoints().items()}
        same = (p for name, p in prices.items() if kinds.get(name) == kinds.get(model))
        return max((_nano(price, usage) for price in same), default=0)

    # ── The database ─────────────────────────────────────────────────────────────────

    def start(self) -> None:
        if self.entries:
            self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Add what is not added yet, and end."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            await self.sync()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(SYNC_S)
            await self.sync()

    async def _know(self, counters: Collection[Counter]) -> None:
        """Ask the database for counters that this process has not read for a while.

        Without an answer the last known ones serve: chat goes on.
        """
        now = self.clock()
        is_known = all(now - counter.read_at <= STALE_S for counter in counters)
        if is_known or now < self._paused_until:
            return
        for counter in counters:
            counter.was_used = True
        try:
            async with asyncio.timeout(LOAD_S):
                await self.sync()
        except TimeoutError:
            log.warning("budgets not read", error="TimeoutError")
            self._paused_until = self.clock() + PAUSE_S

    async def sync(self) -> bool:
        """Add to the counters in the database and read them; return False if it is unavailable."""
        async with self._lock:
            self._forget_ended()
            sent = {
                key: counter.unsent
                for key, counter in self._counters.items()
                if counter.unsent or counter.was_used
            }
            try:
                await self._renew_prices()
                stored = await self.in_thread(partial(self.add, sent)) if sent else {}
            except (Error, TimeoutError, OSError) as error:
                log.warning("budgets not written yet", error=type(error).__name__)
                self._paused_until = self.clock() + PAUSE_S
                return False
            for key, amount in sent.items():
                self._note(key, amount, stored[key])
            return True

    def _note(self, key: CounterKey, sent: int, stored: int) -> None:
        """Take over what the database says of a counter, and log shares that were reached."""
        counter = self._counters[key]
        counter.stored, counter.read_at = stored, self.clock()
        counter.was_used = counter.reserved > 0
        counter.unsent -= sent
        limit = counter.budget.counted_limit
        for share in WARNINGS:
            # Only the process whose addition reached the share sees it.
            if stored - sent < limit * share / 100 <= stored:
                log.warning(
                    "budget threshold",
                    budget=key.budget,
                    subject=key.subject,
                    percent=share,
                    window=counter.budget.window,
                )

    def _forget_ended(self) -> None:
        """Drop the counters of past windows that hold nothing any more."""
        now = self.now()
        for key, counter in list(self._counters.items()):
            is_over = counter.ends_at + timedelta(seconds=SYNC_S) < now
            if is_over and not (counter.unsent or counter.reserved):
                del self._counters[key]

    async def _renew_prices(self) -> None:
        costs = any(budget.counts == COST for budget in self.entries)
        if costs and self.clock() - self._prices_at > PRICES_S:
            load = partial(self.load_prices, self.endpoints())
            self._prices = await self.in_thread(load)
            self._prices_at = self.clock()


def _applies(budget: BudgetEntry, caller: Caller, model: str) -> bool:
    if budget.models and model not in budget.models:
        return False
    if not (budget.tenants or budget.principals):
        return True
    principal = (caller.tenant, caller.principal)
    return caller.tenant in budget.tenants or principal in budget.principals


def _key(
    budget: BudgetEntry, caller: Caller, model: str, start: datetime
) -> CounterKey:
    names: dict[str, Any] = {
        "tenant": caller.tenant,
        "principal": f"{caller.tenant}/{caller.principal}",
        "key": f"{caller.tenant}/{caller.principal}#{caller.key_id or ''}",
        "model": model,
    }
    subject = ", ".join(f"{name} {names[name]}" for name in budget.per)
    is_of_tenant = not {"tenant", "principal", "key"}.isdisjoint(budget.per)
    tenant = caller.tenant if is_of_tenant else ""
    return CounterKey(budget.name, subject, int(start.timestamp()), tenant)


def _nano(price: ModelPrice, usage: Usage) -> int:
    return min(round(price.cost(usage) * NANO_PER_TOKEN), MAX_AMOUNT)
