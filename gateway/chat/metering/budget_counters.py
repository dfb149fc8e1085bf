"""The counters of budgets: whose they are, and what this process knows of them. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from gateway.configuration.shapes import BudgetEntry
from gateway.identity import Caller

NEVER = float("-inf")
MODEL = "model"


class CounterKey(NamedTuple):
    """A counter: its budget, its subject, the Unix time of its window, its tenant or ""."""

    budget: str
    subject: str
    window: int
    tenant: str

    @classmethod
    def of(
        cls, budget: BudgetEntry, caller: Caller, model: str, start: datetime
    ) -> CounterKey:
        """Return the counter of a request. It is a tenant's if no other tenant counts in it."""
        subject = ", ".join(
            f"{name} {model if name == MODEL else _named(name, caller)}"
            for name in budget.per
        )
        is_own = any(name != MODEL for name in budget.per) or budget.only_tenant
        tenant = caller.tenant if is_own else ""
        return cls(budget.name, subject, int(start.timestamp()), tenant)


def _named(kind: str, caller: Caller) -> str:
    if kind == "tenant":
        return caller.tenant
    principal = f"{caller.tenant}/{caller.principal}"
    return principal if kind == "principal" else f"{principal}#{caller.key_id or ''}"


@dataclass(slots=True)
class Reading:
    """What a store had of a counter: of all processes, and `sent` of it of this one.

    `pace` is what the other processes used per second between the last two readings. Times are
    in seconds on the monotonic clock.
    """

    amount: int = 0
    sent: int = 0
    read_at: float = NEVER
    pace: float = 0.0
    is_wanted: bool = True  # used since it was read

    @property
    def others(self) -> int:
        return self.amount - self.sent

    def note(self, amount: int, *, sent: int, at: float) -> None:
        """Take over what the store has now."""
        if at > self.read_at > NEVER:
            self.pace = max(0, amount - sent - self.others) / (at - self.read_at)
        self.amount, self.sent, self.read_at = amount, sent, at


@dataclass(slots=True)
class Counter:
    """One counter: what this process has used and holds, and a reading of each store.

    The stores count the same, so the highest of them decides. Near the limit (`is_near`) the
    stores also get what is held and what waits for a reading, so that two processes cannot take
    the same rest.
    """

    budget: BudgetEntry
    ends_at: datetime
    readings: Sequence[Reading] = ()
    own: int = 0
    reserved: int = 0
    waiting: int = 0
    is_near: bool = False

    @property
    def shared(self) -> int:
        """What the stores shall have of this process."""
        return self.own + (self.reserved + self.waiting if self.is_near else 0)

    @property
    def used(self) -> int:
        return self.own + max((reading.others for reading in self.readings), default=0)

    def fits(self, amount: int) -> bool:
        return self.used + self.reserved + amount <= self.budget.counted_limit

    def may_be_full(
        self, amount: int, *, store: int, now: float, every_s: float
    ) -> bool:
        """Return True if an amount fits, unless others went on at their pace since the reading.

        What a store had then lacks up to `every_s` of the others' use.
        """
        reading = self.readings[store]
        others = math.ceil(reading.pace * (now - reading.read_at + every_s))
        return self.fits(amount) and not self.fits(amount + others)


def applies(budget: BudgetEntry, caller: Caller, model: str) -> bool:
    """Return True if a request counts in a budget."""
    if budget.models and model not in budget.models:
        return False
    if not (budget.tenants or budget.principals):
        return True
    principal = f"{caller.tenant}/{caller.principal}"
    return caller.tenant in budget.tenants or principal in budget.principals
