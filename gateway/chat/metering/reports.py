"""The usage of a tenant: sums by day, principal and model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from django.db.models import Sum

from gateway.chat.models import UsageDay
from webhooks_core.web.errors import BadRequestError

GROUPS = ("day", "principal", "model")
COUNTS = (
    *("requests", "failures", "prompt_tokens", "completion_tokens"),
    "estimated_requests",
)
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
    sums = {name: Sum(name) for name in (*COUNTS, "cost_nano")}
    rows: list[dict[str, Any]] = []
    if group_by:
        grouped = days.order_by(*group_by).values(*group_by).annotate(**sums)
        rows = list(grouped[: MAX_ROWS + 1])
    if len(rows) > MAX_ROWS:
        raise BadRequestError(
            f"More than {MAX_ROWS} rows: ask for fewer days or groups."
        )
    return {
        "from": first.isoformat(),
        "to": last.isoformat(),
        "items": [_item(row, group_by) for row in rows],
        "total": _item(days.aggregate(**sums), ()),
    }


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
