"""Budgets: what callers and models may use in a window, reserved before a call and settled after.

A process counts exactly what it uses itself. Once a second it adds that to the rows of the
database, and reads what all processes have used. It does so earlier when its requests have taken a
twentieth of what was left: a burst in several processes does not use up a limit in each of them. So the
sum of all exceeds a limit by no more than what is in flight, and a second of the other processes.
Without the database the last known counters serve, and what is not added yet is kept.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial

import structlog
from django.db import Error

from gateway.chat.context import ChatContext
from gateway.chat.errors import OverBudgetError
from gateway.chat.metering.counters import (
    Counter,
    CounterKey,
    Stored,
    add_to_rows,
    applies,
)
from gateway.chat.metering.definitions import Definitions
from gateway.chat.metering.thresholds import Reached, highest_share, report
from gateway.chat.metering.usage import NANO_PER_TOKEN, CompletedRequest
from gateway.chat.metering.windows import end_of, next_start, start_of
from gateway.chat.metrics import budget_store_up
from gateway.chat.models import ModelPrice
from gateway.chat.tokens import Usage, count, estimate, prompt_length
from gateway.configuration.shapes import COST, EMBEDDING, REQUESTS, BudgetEntry
from gateway.identity import Caller
from webhooks_core.database.outages import reason

# How often this process adds what it has used, and how old a reading may be.
SHARE_S, FRESH_S = 1.0, 2.0
# After how many turns of that the budgets are loaded again.
TURNS = 5
# How long a request waits for a reading; and how long none is tried after a failure.
WAIT_S = PAUSE_S = 5.0
# A counter is kept for so long after its window.
KEPT = timedelta(seconds=5)
MAX_AMOUNT = 10**18
# The fields that limit a completion, in the three shapes.
MAX_TOKENS = ("max_completion_tokens", "max_tokens", "max_output_tokens")

log = structlog.stdlib.get_logger(__name__)


def _utc_now() -> datetime:
    return datetime.now(UTC)


class BudgetExceededError(OverBudgetError):
    """A request that does not fit into a budget any more in this window."""

    def __init__(self, budget: BudgetEntry, subject: str, now: datetime) -> None:
        self.resets_at = next_start(budget.window, now)
        seconds = math.ceil((self.resets_at - now).total_seconds())
        whose = f" for {subject}" if subject else ""
        super().__init__(
            f"The budget {budget.name!r} allows {budget.allowance}{whose}. "
            f"It starts again at {self.resets_at:%Y-%m-%dT%H:%M:%SZ}.",
            headers={"Retry-After": str(max(1, seconds))},
        )


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
    amounts: Amounts
    counters: Iterable[Counter]
    assumed_cost: Callable[[str, Usage], int | None]

    def change(self, sign: int) -> None:
        """Hold the amounts (1), or release them (-1)."""
        for counter in self.counters:
            counter.reserved += sign * self.amounts.of(counter.budget)


@dataclass(slots=True)
class Budgets:
    """The budgets of one event loop.

    `default_tokens` is reserved for the completion of a request that does not limit it. `add` and
    `report` run in a thread.
    """

    definitions: Definitions
    default_tokens: int = 1024
    add: Callable[[Mapping[CounterKey, int]], Mapping[CounterKey, Stored]] = add_to_rows
    report: Callable[[Iterable[Reached]], None] = report
    now: Callable[[], datetime] = _utc_now
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _counters: dict[CounterKey, Counter] = field(default_factory=dict)
    _reached: dict[CounterKey, Reached] = field(default_factory=dict)
    _sharing: asyncio.Task[None] | None = None
    _paused_until: float = float("-inf")
    _task: asyncio.Task[None] | None = None

    # ── A request ────────────────────────────────────────────────────────────────────

    async def reserve(self, context: ChatContext) -> None:
        """Hold what a request may use of its endpoint, in place of what it held for another one.

        Raises BudgetExceededError, and then holds what it held. Nothing waits between the check
        and the reservation, so that requests of one process cannot both take the rest of a budget.
        """
        await self.definitions.ready()
        caller, held, now = context.caller, context.reservation, self.now()
        own = caller.rights.budget
        if own and own.counts == COST:
            await self.definitions.need_prices()
        counters = self._counters_of(caller, context.endpoint.name, now)
        if not counters and held is None:
            return
        amounts = self._estimated(context, counters.values())
        await self._know(counters.values(), amounts)
        if held is not None:
            held.change(-1)
        refused = [
            BudgetExceededError(counter.budget, key.subject, now)
            for key, counter in counters.items()
            if not counter.fits(amounts.of(counter.budget))
        ]
        if refused:
            if held is not None:
                held.change(1)
            raise max(refused, key=lambda error: error.resets_at)
        limits_cost = any(each.budget.counts == COST for each in counters.values())
        context.reservation = Reservation(
            held.at if held else now,
            caller,
            amounts,
            [*counters.values()],
            self._assumed_cost if limits_cost else _no_cost,
        )
        context.reservation.change(1)
        for counter in counters.values():
            counter.taken += amounts.of(counter.budget)

    def settle(
        self, reservation: Reservation | None, completed: CompletedRequest
    ) -> None:
        """Replace what a request held by what it used, in the window in which it began.

        The model that answered is charged. A call that failed before a token costs nothing, and
        is not counted as a request.
        """
        if reservation is None:
            return
        reservation.change(-1)
        usage = completed.usage
        if usage is None and completed.outcome >= 400:
            return
        used = Amounts(
            requests=1,
            tokens=usage.prompt_tokens + (usage.completion_tokens or 0) if usage else 0,
            cost=self._cost(completed.model, usage) if usage else 0,
        )
        counters = self._counters_of(
            reservation.caller, completed.model, reservation.at
        )
        for counter in counters.values():
            counter.own += used.of(counter.budget)

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
                    counter = Counter(budget, end_of(budget.window, start))
                    age = (self.now() - start).total_seconds()
                    if age < SHARE_S:  # a window that has just begun is empty
                        counter.read_at = self.clock() - age
                    self._counters[key] = counter
                counter.budget = budget  # its limit may have changed
                counters[key] = counter
        return counters

    def _estimated(self, context: ChatContext, counters: Iterable[Counter]) -> Amounts:
        """Return what a request may use: its prompt, and the longest completion it allows."""
        if all(counter.budget.counts == REQUESTS for counter in counters):
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

    # ── The rows ─────────────────────────────────────────────────────────────────────

    async def _know(self, counters: Iterable[Counter], amounts: Amounts) -> None:
        """Wait for a reading of counters that were idle here, or of which much was taken since.

        Without one, the last ones serve.
        """
        old = self.clock() - FRESH_S
        while True:
            for counter in counters:
                counter.is_wanted = True
            is_known = all(
                each.read_at >= old and not each.needs_reading(amounts.of(each.budget))
                for each in counters
            )
            if is_known or self.clock() < self._paused_until:
                return
            sharing = self._begin_sharing()
            await asyncio.wait({sharing}, timeout=WAIT_S)
            if sharing.done():
                sharing.result()
            else:
                self._fail("TimeoutError")

    def _begin_sharing(self) -> asyncio.Task[None]:
        """Return the sharing that is under way, or a new one: requests that wait have one."""
        if self._sharing is None or self._sharing.done():
            self._sharing = asyncio.create_task(self._share())
        return self._sharing

    async def share(self) -> None:
        """Add what this process has used, and read what all have used; report thresholds."""
        # Whoever is cancelled does not stop the statement, which would then count twice.
        await asyncio.shield(self._begin_sharing())
        await self._report()

    async def _share(self) -> None:
        own = {key: each.own for key, each in self._counters.items() if _is_due(each)}
        if not own:
            return
        taken = {key: self._counters[key].taken for key in own}
        for key in own:
            self._counters[key].is_wanted = False
        due = {key: amount - self._counters[key].sent for key, amount in own.items()}
        try:
            stored = await self.definitions.in_thread(partial(self.add, due))
        except (Error, TimeoutError, OSError) as error:
            self._fail(reason(error))
            return
        self._paused_until = float("-inf")
        budget_store_up.set(1)
        for key, (amount, reported) in stored.items():
            counter = self._counters.get(key)
            if counter is None:  # its window has ended meanwhile
                continue
            counter.sent, counter.others = own[key], amount - own[key]
            counter.taken -= taken[key]
            counter.read_at = self.clock()
            if reported < highest_share(counter.budget, amount):
                self._reached[key] = Reached(key, counter.budget, amount)

    def _fail(self, text: str) -> None:
        log.warning("budgets not shared", error=text)
        budget_store_up.set(0)
        self._paused_until = self.clock() + PAUSE_S

    async def _report(self) -> None:
        """Report the shares of limits that were reached; what fails is reported later."""
        if not self._reached:
            return
        reached = dict(self._reached)
        try:
            await self.definitions.in_thread(partial(self.report, reached.values()))
        except (Error, TimeoutError, OSError) as error:
            log.warning("budgets not reported yet", error=reason(error))
            return
        for key in reached:
            del self._reached[key]

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Add what is not added yet, and end."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            if self._sharing is not None:
                await asyncio.wait({self._sharing})
            await self.share()

    async def _run(self) -> None:
        turn = 0
        while True:
            await self.sleep(SHARE_S)
            turn += 1
            try:
                if turn % TURNS == 0:
                    await self.definitions.renew()
                self._forget_ended()
                await self.share()
            except Exception:
                log.exception("budgets failed")

    def _forget_ended(self) -> None:
        """Drop the counters of past windows whose use the rows have."""
        before = self.now() - KEPT
        for key, counter in list(self._counters.items()):
            is_settled = not counter.reserved and counter.own == counter.sent
            if is_settled and counter.ends_at < before:
                del self._counters[key]


def _is_due(counter: Counter) -> bool:
    return counter.is_wanted or counter.reserved > 0 or counter.own != counter.sent


def _nano(price: ModelPrice, usage: Usage) -> int:
    return min(round(price.cost(usage) * NANO_PER_TOKEN), MAX_AMOUNT)


def _no_cost(model: str, usage: Usage) -> None:
    """Assume nothing: no budget limits the cost."""
