"""The counters of budgets in the database: one statement adds and reads for all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from django.db import connection

from gateway.chat.metering.price_list import listed
from gateway.chat.models import ModelPrice
from gateway.configuration.shapes import ModelEntry


class CounterKey(NamedTuple):
    """A counter: its budget, its subject, the Unix time of its window, its tenant or ""."""

    budget: str
    subject: str
    window: int
    tenant: str


def add(amounts: Mapping[CounterKey, int]) -> dict[CounterKey, int]:
    """Add to counters, and create missing ones; return what each has now. Raises DatabaseError.

    In the order of the keys, so that two processes cannot block each other.
    """
    keys = sorted(amounts)
    if not keys:
        return {}
    values = [value for key in keys for value in (*key, amounts[key])]
    columns = 'budget, subject, "window", tenant, amount'
    rows = ", ".join(["(%s, %s, %s, %s, %s)"] * len(keys))
    statement = (
        f"INSERT INTO gateway_chat_budgetcounter ({columns}) VALUES {rows} "  # noqa: S608 - names of ours
        'ON CONFLICT (budget, subject, "window") DO UPDATE '
        "SET amount = gateway_chat_budgetcounter.amount + excluded.amount "
        'RETURNING budget, subject, "window", tenant, amount'
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return {CounterKey(*key): amount for *key, amount in cursor.fetchall()}


def prices(endpoints: Mapping[str, ModelEntry]) -> dict[str, ModelPrice]:
    """Return prices by model: the operator's, and those of the public list for other endpoints."""
    public = {
        name: listed(entry.targets[0].base_url, entry.targets[0].model)
        for name, entry in endpoints.items()
    }
    own = {price.model: price for price in ModelPrice.objects.all()}
    return {name: price for name, price in public.items() if price} | own
