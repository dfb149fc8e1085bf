"""Budgets: what callers and models may use in a window, reserved before a call and settled after.

A process counts exactly what it uses itself. It shares its counters with other processes through
stores, a second apart at most. A request near a limit waits for the next reading, so that the sum
of all processes exceeds a limit by no more than what is in flight and what the others have used
within that second. Without a store the last known counters serve, and what is not added yet is
kept.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial

import structlog
from django.db import Error

from gateway.chat.context import ChatContext
from gateway.chat.errors import OverBudgetError
from gateway.chat.metering.budget_counters import (
    NEVER,
    Counter,
    CounterKey,
    Reading,
    applies,
)
from gateway.chat.metering.budget_definitions import RENEWED_S, Definitions
from gateway.chat.metering.budget_reports import Reached, report
from gateway.chat.metering.budget_sharing import Sharing
from gateway.chat.metering.budget_stores import Store
from gateway.chat.metering.usage import NANO_PER_TOKEN, CompletedRequest
from gateway.chat.metering.windows import end_of, next_start, start_of
from gateway.chat.models import ModelPrice
from gateway.chat.tokens import Usage, count, estimate, prompt_length
from gateway.configuration.shapes import COST, EMBEDDING, TOKENS, BudgetEntry
from gateway.identity import Caller
from webhooks_core.database.outages import reason

# How often the database is used beside a quicker store that answers.
RELIEVED_S = 5.0
# An older reading says nothing.
STALE_S = 60.0
# A counter is kept for so long after its window.
KEPT = timedelta(seconds=RELIEVED_S)
MAX_AMOUNT = 10**18
# The fields that limit a completion, in the three shapes.
MAX_TOKENS = ("max_completion_tokens", "max_tokens", "max_output_tokens")

log = structlog.stdlib.get_logger(__name__)


def _utc_now() -> datetime:
    return datetime.now(UTC)


class BudgetExceededError(OverBudgetError):
    """A request that does not fit into a budget any more in this window."""

    def __init__(self, budget: BudgetEntry, subject: str, now: datetime) -> None:
        resets_at = next_start(budget.window, now)
        whose = f" for {subject}" if subject else ""
        super().__init__(
            f"The budget {budget.name!r} allows {budget.allowance}{whose}. "
            f"It starts again at {resets_at:%Y-%m-%dT%H:%M:%SZ}.",
            headers={
                "Retry-After": str(max(1, math.ceil((resets_at - now).total_seconds())))
            },
        )
        self.resets_at = resets_at


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
    """What a request holds until it ends, whose it is, and when it began.

    `assumed_cost` is that of a model without a price, if a budget limits the cost.
    """

    at: datetime
    caller: Caller
    model: str
    amounts: Amounts
    counters: Mapping[CounterKey, Counter]
    assumed_cost: Callable[[str, Usage], int | None]


@dataclass(slots=True)
class Budgets:
    """The budgets of one event loop. `stores` share counters with other processes, quickest first.

    `default_tokens` is reserved for the completion of a request that does not limit it. `report`
    runs in a thread.
    """

    definitions: Definitions
    stores: Sequence[Store] = ()
    default_tokens: int = 1024
    report: Callable[[Iterable[Reached]], None] = report
    now: Callable[[], datetime] = _utc_now
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _counters: dict[CounterKey, Counter] = field(default_factory=dict)
    _sharings: list[Sharing] = field(default_factory=list)
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._sharings = [
            Sharing(store, index, self._counters, self.clock, self.sleep)
            for index, store in enumerate(self.stores)
        ]

    # ── A request ────────────────────────────────────────────────────────────────────

    async def reserve(self, context: ChatContext) -> None:
        """Hold what a request may use, or raise BudgetExceededError.

        Nothing waits between the check and the reservation, so that requests of one process
        cannot both take the rest of a budget.
        """
        if not self.definitions.is_ready:
            await self.definitions.ready()
        caller, own = context.caller, context.caller.rights.budget
        if not (self.definitions.budgets or own):
            return
        if own and own.counts == COST:
            await self.definitions.need_prices()
        model, now = context.endpoint.name, self.now()
        counters = self._counters_of(caller, model, now)
        if not counters:
            return
        amounts = self._estimated(context, counters.values())
        await self._know(counters.values(), amounts)
        refused = [
            BudgetExceededError(counter.budget, key.subject, now)
            for key, counter in counters.items()
            if not counter.fits(amounts.of(counter.budget))
        ]
        if refused:
            raise max(refused, key=lambda error: error.resets_at)
        for counter in counters.values():
            counter.reserved += amounts.of(counter.budget)
        limits_cost = any(c.budget.counts == COST for c in counters.values())
        assumed = self._assumed_cost if limits_cost else _no_cost
        context.reservation = Reservation(
            now, caller, model, amounts, counters, assumed
        )

    def settle(
        self, reservation: Reservation | None, completed: CompletedRequest
    ) -> None:
        """Replace what a request held by what it used, in the window in which it began.

        A fallback is charged to the model that answered. A call that failed before a token costs
        nothing, and is not counted as a request.
        """
        if reservation is None:
            return
        counters = reservation.counters
        for counter in counters.values():
            counter.reserved -= reservation.amounts.of(counter.budget)
        usage = completed.usage
        if usage is None and completed.outcome >= 400:
            return
        used = Amounts(
            requests=1,
            tokens=usage.prompt_tokens + (usage.completion_tokens or 0) if usage else 0,
            cost=self._cost(completed.model, usage) if usage else 0,
        )
        if completed.model != reservation.model:
            counters = self._counters_of(
                reservation.caller, completed.model, reservation.at
            )
        for key, counter in counters.items():
            # The counter of a window that has ended may be forgotten: it is needed again.
            kept = self._counters.setdefault(key, counter)
            kept.own += used.of(kept.budget)

    def _counters_of(
        self, caller: Caller, model: str, at: datetime
    ) -> dict[CounterKey, Counter]:
        """Return the counters that a request of this time counts in."""
        counters = {}
        own, budgets = caller.rights.budget, self.definitions.budgets
        for budget in (*budgets, own) if own else budgets:
            if applies(budget, caller, model):
                start = start_of(budget.window, at)
                key = CounterKey.of(budget, caller, model, start)
                counter = self._counters.get(key)
                if counter is None:
                    counter = self._counters[key] = self._new_counter(budget, start)
                counter.budget = budget  # its limit may have changed
                counters[key] = counter
        return counters

    def _new_counter(self, budget: BudgetEntry, start: datetime) -> Counter:
        """Return a counter; at the beginning of its window it is known to be empty."""
        age = (self.now() - start).total_seconds()
        readings = [
            Reading(read_at=self.clock() - age if age < store.every_s else NEVER)
            for store in self.stores
        ]
        return Counter(budget, end_of(budget.window, start), readings)

    def _estimated(self, context: ChatContext, counters: Iterable[Counter]) -> Amounts:
        """Return what a request may use: its prompt, and the longest completion it allows."""
        counts_requests = all(c.budget.counts not in {TOKENS, COST} for c in counters)
        if counts_requests:
            return Amounts(1, 0, 0)
        body = context.request.body
        limits = (count(body.get(name)) or 0 for name in MAX_TOKENS)
        has_completion = context.endpoint.inference_type != EMBEDDING
        default = self.default_tokens if has_completion else 0
        completion = (max(limits) or default) * context.request.choices
        usage = Usage(estimate(prompt_length(body)), completion)
        tokens = usage.prompt_tokens + completion
        return Amounts(1, tokens, self._cost(context.endpoint.name, usage))

    def _cost(self, model: str, usage: Usage) -> int:
        """Return a cost in billionths."""
        if price := self.definitions.prices.get(model):
            return _nano(price, usage)
        return self._assumed_cost(model, usage) or 0

    def _assumed_cost(self, model: str, usage: Usage) -> int | None:
        """Return what the dearest model of the upstream's kind costs; None for one with a price."""
        prices, endpoints = self.definitions.prices, self.definitions.endpoints
        if model in prices:
            return None
        kinds = {name: entry.upstream for name, entry in endpoints().items()}
        same = (p for name, p in prices.items() if kinds.get(name) == kinds.get(model))
        return max((_nano(price, usage) for price in same), default=None)

    # ── The stores ───────────────────────────────────────────────────────────────────

    async def _know(self, counters: Iterable[Counter], amounts: Amounts) -> None:
        """Wait for a reading of counters that were idle here, or are near their limit.

        A new counter is read in each store, for one of them may have lost its memory; afterwards
        the quickest store that answers decides. Without one, the last readings serve: chat goes
        on.
        """
        for counter in counters:
            for reading in counter.readings:
                reading.is_wanted = True
        old = self.clock() - STALE_S
        for sharing in self._sharings:
            readings = (counter.readings[sharing.index] for counter in counters)
            is_old = any(reading.read_at < old for reading in readings)
            if is_old and sharing.is_available:
                await sharing.read(in_turn=False)
        for sharing in self._sharings:
            if sharing.is_available:
                if near := self._near(sharing, counters, amounts):
                    await self._claim(sharing, near, amounts)
                return

    def _near(
        self, sharing: Sharing, counters: Iterable[Counter], amounts: Amounts
    ) -> list[Counter]:
        """Return the counters that the other processes may have used up since the reading."""
        return [
            counter
            for counter in counters
            if counter.may_be_full(
                amounts.of(counter.budget),
                store=sharing.index,
                now=self.clock(),
                every_s=sharing.store.every_s,
            )
        ]

    async def _claim(
        self, sharing: Sharing, counters: Iterable[Counter], amounts: Amounts
    ) -> None:
        """Add what a request may use before it is decided: the next reading says if it fits."""
        for counter in counters:
            counter.is_near = True
            counter.waiting += amounts.of(counter.budget)
        try:
            await sharing.read(in_turn=True)
        finally:
            for counter in counters:
                counter.waiting -= amounts.of(counter.budget)

    def start(self) -> None:
        self._tasks = [
            asyncio.create_task(self._run(RENEWED_S, self._renew)),
            *(
                asyncio.create_task(
                    self._run(sharing.store.every_s, partial(self._share, sharing))
                )
                for sharing in self._sharings
            ),
        ]

    async def stop(self) -> None:
        """Add what is not added yet, and end."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._tasks:
            await self.share()

    async def _run(self, pause_s: float, act: Callable[[], Awaitable[None]]) -> None:
        while True:
            await self.sleep(pause_s)
            try:
                await act()
            except Exception:
                log.exception("budgets failed")

    async def _renew(self) -> None:
        """Load the budgets again, if no recent reading says that they are the same."""
        began = self.clock() - RENEWED_S
        recent = (s.store.version for s in self._sharings if s.began_at >= began)
        await self.definitions.renew(next(filter(None, recent), ""))

    async def share(self) -> None:
        """Share with every store now."""
        self._forget_ended()
        for sharing in self._sharings:
            await sharing.share()
            await self._report(sharing)

    async def _share(self, sharing: Sharing) -> None:
        """Share with a store in its turn; the database has longer ones beside a quicker store."""
        self._forget_ended()
        is_relieved = any(s.is_available for s in self._sharings[: sharing.index])
        is_early = self.clock() - sharing.began_at < RELIEVED_S
        if sharing.is_available and not (is_relieved and is_early):
            await sharing.share()
            await self._report(sharing)

    async def _report(self, sharing: Sharing) -> None:
        """Report the shares of limits that were reached; what fails is reported later."""
        if not sharing.reached:
            return
        reached = dict(sharing.reached)
        try:
            await self.definitions.in_thread(partial(self.report, reached.values()))
        except (Error, TimeoutError, OSError) as error:
            log.warning("budgets not reported yet", error=reason(error))
            return
        for key in reached:
            del sharing.reached[key]

    def _forget_ended(self) -> None:
        """Drop the counters of past windows whose use the last store has."""
        now = self.now()
        for key, counter in list(self._counters.items()):
            is_over = counter.ends_at + KEPT < now and not counter.reserved
            if is_over and all(r.sent == counter.shared for r in counter.readings[-1:]):
                del self._counters[key]


def _nano(price: ModelPrice, usage: Usage) -> int:
    return min(round(price.cost(usage) * NANO_PER_TOKEN), MAX_AMOUNT)


def _no_cost(model: str, usage: Usage) -> None:
    """Assume nothing: no budget limits the cost."""
