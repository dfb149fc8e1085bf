"""The usage of a tenant: sums by day, principal and model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

from django.db.models import Sum

from gateway.chat.metering import definitions
from gateway.chat.metering.windows import next_start, start_of
from gateway.chat.models import BudgetCounter, UsageDay
from gateway.configuration.shapes import COST, BudgetEntry
from gateway.models import GatewayKey
from webhooks_core.errors import BadRequestError
from webhooks_core.times import iso

GROUPS = ("day", "principal", "model")
COUNTS = (
    *("requests", "failures", "prompt_tokens", "completion_tokens"),
    "estimated_requests",
)
SUMS = {name: Sum(name) for name in (*COUNTS, "cost_nano")}
MAX_ROWS = 10_000


def usage(
    tenant: str,
    *,
    first: date,
    last: date,
    group_by: Sequence[str],
    only: Mapping[str, str],
) -> dict[str, Any]:
    """Return the body of GET /v1/usage; costs are in the currency of the prices.

    Raises BadRequestError: too many rows.
    """
    days = UsageDay.objects.filter(tenant=tenant, day__range=(first, last), **only)
    grouped = days.order_by(*group_by).values(*group_by).annotate(**SUMS)
    rows: list[Any] = list(grouped[: MAX_ROWS + 1]) if group_by else []
    if len(rows) > MAX_ROWS:
        raise BadRequestError(
            f"More than {MAX_ROWS} rows: ask for fewer days or groups."
        )
    return {
        "from": first.isoformat(),
        "to": last.isoformat(),
        "items": [_item(row, group_by) for row in rows],
        "total": _item(days.aggregate(**SUMS), ()),
        "budgets": budgets(tenant, datetime.now(UTC)),
    }


def budgets(tenant: str, now: datetime) -> list[dict[str, Any]]:
    """Return what is used of the tenant's budgets in their current windows, at most a second old.

    A budget that several tenants share shows no amounts: they would be those of others.
    """
    entries = definitions.budgets()
    keys = GatewayKey.objects.live(now).filter(tenant=tenant, budget__isnull=False)
    entries += filter(None, (key.budget_entry for key in keys.order_by("pk")))
    starts = {
        each.window: int(start_of(each.window, now).timestamp()) for each in entries
    }
    rows = BudgetCounter.objects.filter(tenant=tenant, window__in=starts.values())
    used = defaultdict(list)
    for counter in rows.order_by("subject")[:MAX_ROWS]:
        used[counter.budget, counter.window].append((counter.subject, counter.amount))
    return [
        _budget_item(entry, subject, amount, now)
        for entry in entries
        for subject, amount in used[entry.name, starts[entry.window]]
    ]


def _budget_item(
    budget: BudgetEntry, subject: str, amount: int, now: datetime
) -> dict[str, Any]:
    limit = budget.counted_limit
    return {
        "name": budget.name,
        "subject": subject,
        "counts": budget.counts,
        "window": budget.window,
        "limit": shown(budget, limit),
        "used": shown(budget, amount),
        "left": shown(budget, max(0, limit - amount)),
        "resets_at": iso(next_start(budget.window, now)),
    }


def shown(budget: BudgetEntry, amount: int) -> int | str:
    """Return an amount as the API has it: requests and tokens as numbers, costs as texts."""
    return cost(amount) if budget.counts == COST else amount


def _item(row: Mapping[str, Any], group_by: Sequence[str]) -> dict[str, Any]:
    return {
        **{name: str(row[name]) for name in group_by},
        **{name: row[name] or 0 for name in COUNTS},
        "cost": cost(row["cost_nano"] or 0),
    }


def cost(nano: int) -> str:
    """Return billionths as a decimal text."""
    units, rest = divmod(nano, 10**9)
    return f"{units}.{rest:09d}"
