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
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial

import structlog
from django.db import Error

from gateway.chat.context import ChatContext
from gateway.chat.errors import OverBudgetError
from gateway.chat.metering.budget_rows import (
    Counter,
    CounterKey,
    Stored,
    add_to_rows,
    applies,
)
from gateway.chat.metering.definitions import Loaded, load
from gateway.chat.metering.thresholds import Reached, highest_share, report
from gateway.chat.metering.usage import NANO_PER_TOKEN
from gateway.chat.metering.windows import end_of, next_start, start_of
from gateway.chat.metrics import budget_store_up
from gateway.chat.models import ModelPrice
from gateway.chat.tokens import Usage, count
from gateway.configuration.shapes import (
    COST,
    EMBEDDING,
    REQUESTS,
    BudgetEntry,
    ModelEntry,
)
from gateway.identity import Caller
from webhooks_core.database.outages import reason
from webhooks_core.web.thread_pool import InThread

# How often this process adds what it has used, and how old a reading may be.
SHARE_S, FRESH_S = 1.0, 2.0
# After how many turns of that the budgets are loaded again.
TURNS = 5
# How long a request waits for a reading or a load; and how long no reading is tried after a failure.
WAIT_S = PAUSE_S = 5.0
# A counter is kept for so long after its window.
KEPT = timedelta(seconds=5)
MAX_AMOUNT = 10**18
OUTAGES = (Error, TimeoutError, OSError)
CountersByKey = Mapping[CounterKey, Counter]
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
    """What a request that began at a time holds until it ends."""

    at: datetime
    amounts: Sequence[tuple[Counter, int]]

    def change(self, sign: int) -> None:
        """Hold the amounts (1), or release them (-1)."""
        for counter, amount in self.amounts:
            counter.reserved += sign * amount


@dataclass(slots=True)
class Budgets:
    """The budgets of one event loop.

    `default_tokens` is reserved for the completion of a request that does not limit it. `load`,
    `add` and `report` run in a thread.
    """

    in_thread: InThread
    endpoints: Callable[[], Mapping[str, ModelEntry]] = dict
    default_tokens: int = 1024
    load: Callable[..., Loaded] = load
    add: Callable[[Mapping[CounterKey, int]], Mapping[CounterKey, Stored]] = add_to_rows
    report: Callable[[Iterable[Reached]], None] = report
    now: Callable[[], datetime] = _utc_now
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    # What was loaded last. Before the first time, the budgets of the configuration.
    budgets: Sequence[BudgetEntry] = ()
    prices: Mapping[str, ModelPrice] = field(default_factory=dict)
    _counters: dict[CounterKey, Counter] = field(default_factory=dict)
    # By caller, model and minute; forgotten every second.
    _found: dict[tuple[Caller, str, int], CountersByKey] = field(default_factory=dict)
    _needs_prices: bool = False
    # Tasks, since a request that waits for them may be cancelled.
    _loading: asyncio.Task[None] | None = None
    _sharing: asyncio.Task[list[Reached]] | None = None
    _task: asyncio.Task[None] | None = None
    _paused_until: float = float("-inf")

    # ── A request ────────────────────────────────────────────────────────────────────

    async def reserve(self, context: ChatContext) -> None:
        """Hold what a request may use of its endpoint, in place of what it held for another one.

        Raises BudgetExceededError, and then holds what it held. Nothing waits between the check
        and the reservation, so that requests of one process cannot both take the rest of a budget.
        """
        own = context.caller.rights.budget
        await self._be_loaded(with_prices=own is not None and own.counts == COST)
        held: Reservation | None = context.reservation
        if not (self.budgets or own or held):
            return
        now = self.now()
        counters = self._counters_of(context, now)
        if not counters and held is None:
            return
        estimated = self._estimated(context, _kinds(counters))
        amounts = [(each, estimated.of(each.budget)) for each in counters.values()]
        await self._know(amounts)
        if held is not None:
            held.change(-1)
        refused = [
            BudgetExceededError(counter.budget, key.subject, now)
            for key, (counter, amount) in zip(counters, amounts, strict=True)
            if amount > counter.left
        ]
        if refused:
            if held is not None:
                held.change(1)
            raise max(refused, key=lambda error: error.resets_at)
        began = held.at if held else now
        context.reservation = Reservation(began, amounts)
        context.reservation.change(1)
        for counter, amount in amounts:
            counter.taken += amount

    def settle(self, context: ChatContext) -> None:
        """Replace what a request held by what it used, in the window in which it began.

        The model that answered is charged. A call that failed before a token costs nothing, and
        is not counted as a request.
        """
        reservation: Reservation | None = context.reservation
        if reservation is None:
            return
        reservation.change(-1)
        usage = context.usage
        if usage is None:
            return
        model = context.endpoint.name
        counters = self._counters_of(context, reservation.at)
        used = self._amounts(model, usage, _kinds(counters))
        if used.cost and model not in self.prices:
            context.assumed_cost, context.is_estimated = used.cost, True
        for counter in counters.values():
            counter.own += used.of(counter.budget)

    def _counters_of(self, context: ChatContext, at: datetime) -> CountersByKey:
        """Return the counters that a request of this time counts in.

        Windows begin with a minute, so that all requests of one minute have the same.
        """
        place = context.caller, context.endpoint.name, int(at.timestamp()) // 60
        counters = self._found.get(place)
        if counters is None:
            counters = self._found[place] = self._find(*place[:2], at)
        return counters

    def _find(self, caller: Caller, model: str, at: datetime) -> CountersByKey:
        counters, own = {}, caller.rights.budget
        for budget in (*self.budgets, own) if own else self.budgets:
            if applies(budget, caller, model):
                start = start_of(budget.window, at)
                key = CounterKey.of(budget, caller, model, start)
                counter = self._counters.get(key)
                if counter is None:
                    counter = Counter(budget, end_of(budget.window, start))
                    self._counters[key] = counter
                counter.budget = budget  # its limit may have changed
                counters[key] = counter
        return counters

    def _estimated(self, context: ChatContext, kinds: set[str]) -> Amounts:
        """Return what a request may use: its prompt, and the longest completion it allows."""
        if kinds <= {REQUESTS}:
            return Amounts(1, 0, 0)
        body = context.request.body
        limits = [count(body[name]) or 0 for name in MAX_TOKENS if name in body]
        has_completion = context.endpoint.inference_type != EMBEDDING
        default = self.default_tokens if has_completion else 0
        completion = (max(limits, default=0) or default) * context.request.choices
        usage = Usage(context.estimated_prompt(), completion)
        return self._amounts(context.endpoint.name, usage, kinds)

    def _amounts(self, model: str, usage: Usage, kinds: set[str]) -> Amounts:
        tokens = usage.prompt_tokens + (usage.completion_tokens or 0)
        return Amounts(1, tokens, self._cost(model, usage) if COST in kinds else 0)

    def _cost(self, model: str, usage: Usage) -> int:
        """Return a cost in billionths; without a price, what the dearest of its kind costs."""
        prices = self.prices
        if model in prices:
            return _nano(prices[model], usage)
        kinds = {name: entry.upstream for name, entry in self.endpoints().items()}
        same = (p for name, p in prices.items() if kinds.get(name) == kinds.get(model))
        return max((_nano(price, usage) for price in same), default=0)

    # ── What is loaded ───────────────────────────────────────────────────────────────

    async def _be_loaded(self, *, with_prices: bool) -> None:
        """Wait for the first load, and for the first with prices: the budget of a key needs them."""
        if self._loading is None or (with_prices and not self._needs_prices):
            self._needs_prices |= with_prices
            self._loading = asyncio.create_task(self._load())
        if not self._loading.done():
            await asyncio.wait({self._loading}, timeout=WAIT_S)

    async def _load(self) -> None:
        """Load again. Without the database, what was loaded last serves."""
        loading = partial(self.load, self.endpoints(), self._needs_prices)
        try:
            self.budgets, self.prices = await self.in_thread(loading)
            self._found.clear()
        except OUTAGES as error:
            log.warning("budgets not loaded", error=reason(error))

    # ── The rows ─────────────────────────────────────────────────────────────────────

    async def _know(self, amounts: Sequence[tuple[Counter, int]]) -> None:
        """Wait for a reading of counters that were idle here, or of which much was taken since.

        Without one, the last ones serve.
        """
        old = self.clock() - FRESH_S
        while True:
            is_known = True
            for counter, amount in amounts:
                counter.is_wanted = True
                is_known &= counter.read_at >= old and not counter.needs_reading(amount)
            if is_known or self.clock() < self._paused_until:
                return
            sharing = self._begin_sharing()
            await asyncio.wait({sharing}, timeout=WAIT_S)
            if sharing.done():
                sharing.result()
            else:
                self._fail("TimeoutError")

    def _begin_sharing(self) -> asyncio.Task[list[Reached]]:
        """Return the sharing that is under way, or a new one: requests that wait have one."""
        if self._sharing is None or self._sharing.done():
            self._sharing = asyncio.create_task(self._share())
        return self._sharing

    async def share(self) -> None:
        """Add what this process has used, and read what all have used; report thresholds."""
        # Whoever is cancelled does not stop the statement, which would then count twice.
        reached = await asyncio.shield(self._begin_sharing())
        if not reached:
            return
        try:
            await self.in_thread(partial(self.report, reached))
        except OUTAGES as error:
            log.warning("budgets not reported yet", error=reason(error))
            for each in reached:  # read again, and then reported
                self._counters[each.key].is_wanted = True

    async def _share(self) -> list[Reached]:
        """Exchange amounts with the rows; return the counters with a share to report."""
        own = {key: each.own for key, each in self._counters.items() if _is_due(each)}
        if not own:
            return []
        taken = {key: self._counters[key].taken for key in own}
        for key in own:
            self._counters[key].is_wanted = False
        due = {key: amount - self._counters[key].sent for key, amount in own.items()}
        try:
            stored = await self.in_thread(partial(self.add, due))
        except OUTAGES as error:
            self._fail(reason(error))
            return []
        self._paused_until = float("-inf")
        budget_store_up.set(1)
        reached = []
        for key, (amount, reported) in stored.items():
            counter = self._counters[key]
            counter.sent, counter.others = own[key], amount - own[key]
            counter.taken -= taken[key]
            counter.read_at = self.clock()
            if reported < highest_share(counter.budget, amount):
                reached.append(Reached(key, counter.budget, amount))
        return reached

    def _fail(self, text: str) -> None:
        log.warning("budgets not shared", error=text)
        budget_store_up.set(0)
        self._paused_until = self.clock() + PAUSE_S

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
                    await self._load()
                self._forget_ended()
                await self.share()
            except Exception:
                log.exception("budgets failed")

    def _forget_ended(self) -> None:
        """Drop the counters of past windows whose use the rows have."""
        self._found.clear()
        before = self.now() - KEPT
        for key, counter in list(self._counters.items()):
            if not _is_due(counter) and counter.ends_at < before:
                del self._counters[key]


def _is_due(counter: Counter) -> bool:
    """Return True if a counter has something to add, or is to be read."""
    return counter.is_wanted or counter.reserved > 0 or counter.own != counter.sent


def _kinds(counters: CountersByKey) -> set[str]:
    """Return what counters count."""
    return {counter.budget.counts for counter in counters.values()}


def _nano(price: ModelPrice, usage: Usage) -> int:
    return min(round(price.cost(usage) * NANO_PER_TOKEN), MAX_AMOUNT)
