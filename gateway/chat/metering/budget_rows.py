"""The counters of budgets: whose they are, what this process knows of them, and their rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from django.db import connection

from gateway.configuration.shapes import BudgetEntry
from gateway.identity import Caller

NEVER = float("-inf")
MODEL = "model"
# A process takes at most this part of what is left before it reads again.
SHARE = 20


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
class Counter:
    """What this process has used (`own`, of which the row has `sent`) and holds (`reserved`).

    `others` is what other processes had used at `read_at`, in seconds of the monotonic clock, and
    `taken` what requests of this one were let have since.
    """

    budget: BudgetEntry
    ends_at: datetime
    own: int = 0
    sent: int = 0
    others: int = 0
    reserved: int = 0
    taken: int = 0
    read_at: float = NEVER
    is_wanted: bool = True  # used since it was read

    @property
    def used(self) -> int:
        return self.own + self.others

    @property
    def left(self) -> int:
        return self.budget.counted_limit - self.used - self.reserved

    def needs_reading(self, amount: int) -> bool:
        """Return True if other processes may have taken the rest meanwhile.

        One request is let pass after each reading, however little is left.
        """
        taken, left = self.taken, self.left
        return taken > 0 and amount <= left < (taken + amount) * SHARE


def applies(budget: BudgetEntry, caller: Caller, model: str) -> bool:
    """Return True if a request counts in a budget."""
    if budget.models and model not in budget.models:
        return False
    if not (budget.tenants or budget.principals):
        return True
    principal = f"{caller.tenant}/{caller.principal}"
    return caller.tenant in budget.tenants or principal in budget.principals


class Stored(NamedTuple):
    """What all processes have used, and the share of the limit that was reported."""

    amount: int
    reported: int


def add_to_rows(amounts: Mapping[CounterKey, int]) -> dict[CounterKey, Stored]:
    """Add to counters, and create missing ones; return what each has now.

    One statement, in the order of the keys, so that two processes cannot block each other.
    Raises DatabaseError.
    """
    keys = {key[:3]: key for key in sorted(amounts)}
    values = [value for key in keys.values() for value in (*key, amounts[key])]
    rows = ", ".join(["(%s, %s, %s, %s, %s, 0)"] * len(keys))
    statement = (
        'INSERT INTO gateway_chat_budgetcounter (budget, subject, "window", tenant, '  # noqa: S608 - marks alone
        f"amount, reported) VALUES {rows} "
        'ON CONFLICT (budget, subject, "window") DO UPDATE '
        "SET amount = gateway_chat_budgetcounter.amount + excluded.amount "
        'RETURNING budget, subject, "window", amount, reported'
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return {keys[row[:3]]: Stored(*row[3:]) for row in cursor.fetchall()}
