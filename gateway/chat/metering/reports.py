"""What a tenant has used: sums by day, principal and model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from django.db.models import Sum

from gateway.chat.models import UsageDay
from gateway.errors import BadRequestError

GROUPS = ("day", "principal", "model")
COUNTS = (
    *("requests", "failures", "prompt_tokens", "completion_tokens"),
    "estimated_requests",
)
DEFAULT_DAYS = 30
LONGEST_DAYS = 366
MOST_ROWS = 10_000


@dataclass(frozen=True, slots=True)
class Question:
    """Which days (UTC, both included), summed by what, and of which principal and model."""

    first: date
    last: date
    group_by: tuple[str, ...]
    only: Mapping[str, str]

    @classmethod
    def read(cls, query: Mapping[str, str]) -> Question:
        """Return what a query string asks. Raises BadRequestError."""
        last = _day(query, "to", datetime.now(UTC).date())
        first = _day(query, "from", last - timedelta(days=DEFAULT_DAYS - 1))
        if not 0 <= (last - first).days < LONGEST_DAYS:
            raise BadRequestError(
                f"from, to: must be 1 to {LONGEST_DAYS} days, the first not after the last."
            )
        only = {name: query[name] for name in ("principal", "model") if name in query}
        if any("\x00" in value for value in only.values()):
            raise BadRequestError("principal, model: must not hold a NUL.")
        return cls(first, last, _groups(query.get("group_by")), only)


def _day(query: Mapping[str, str], name: str, default: date) -> date:
    if name not in query:
        return default
    try:
        found = date.fromisoformat(query[name])
    except ValueError as error:
        raise BadRequestError(f"{name}: must be a day such as 2026-11-21.") from error
    if found.year < 2000:
        raise BadRequestError(f"{name}: is too long ago.")
    return found


def _groups(text: str | None) -> tuple[str, ...]:
    if text is None:
        return GROUPS
    named = text.split(",") if text else []
    if unknown := [name for name in named if name not in GROUPS]:
        raise BadRequestError(
            f"group_by: {unknown[0][:50]!r} is none of {', '.join(GROUPS)}."
        )
    return tuple(name for name in GROUPS if name in named)


def usage(tenant: str, question: Question) -> dict[str, Any]:
    """Return the answer of GET /v1/usage; costs are in the currency of the prices."""
    rows = UsageDay.objects.filter(
        tenant=tenant, day__range=(question.first, question.last), **question.only
    )
    sums = {name: Sum(name) for name in (*COUNTS, "cost_nano")}
    groups = question.group_by
    grouped = rows.order_by(*groups).values(*groups).annotate(**sums) if groups else ()
    found = list(grouped[: MOST_ROWS + 1])
    if len(found) > MOST_ROWS:
        raise BadRequestError(
            f"More than {MOST_ROWS} rows: ask for fewer days or groups."
        )
    return {
        "from": question.first.isoformat(),
        "to": question.last.isoformat(),
        "items": [_shown(row, groups) for row in found],
        "total": _shown(rows.aggregate(**sums), ()),
    }


def _shown(row: Mapping[str, Any], groups: Sequence[str]) -> dict[str, Any]:
    return {
        **{name: str(row[name]) for name in groups},
        **{name: row[name] or 0 for name in COUNTS},
        "cost": cost(row["cost_nano"] or 0),
    }


def cost(nano: int) -> str:
    """Return billionths as a decimal text."""
    whole, rest = divmod(nano, 10**9)
    return f"{whole}.{rest:09d}"
