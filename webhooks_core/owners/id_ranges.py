"""Ranges of ids for ranges of time: ids ascend with time, so an index of ids finds a time."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypeVar

from django.db.models import QuerySet

from webhooks_core import ids, profiles
from webhooks_core.models import Delivery, Event

Rows = TypeVar("Rows", bound=QuerySet[Any])

# How much later than its event, or than its neighbours, a row is created; those by hand aside.
LATE = timedelta(hours=1)
# Transactions of one moment get their ids in any order.
CONCURRENT = 10_000
PREFIX_OF = {Delivery: "delivery_prefix", Event: "event_prefix"}


class IdRange(NamedTuple):
    """The ids from `first` on, and below `before`; without one, there is no such bound."""

    first: int | None = None
    before: int | None = None

    def of(self, rows: Rows, field: str = "pk") -> Rows:
        """Return the rows of which a field is within the range."""
        if self.first is not None:
            rows = rows.filter(**{f"{field}__gte": self.first})
        if self.before is not None:
            rows = rows.filter(**{f"{field}__lt": self.before})
        return rows


def created_between(
    model: type[Delivery | Event],
    since: datetime | None = None,
    until: datetime | None = None,
    *,
    profile: str = "",
) -> IdRange:
    """Return a range that has all rows of a time, and some before and behind it.

    Each bound costs one look-up in the index of public ids; of all profiles, one for each prefix.
    """
    named = [profiles.get(profile)] if profile else profiles.registered()
    prefixes = {getattr(each, PREFIX_OF[model]) for each in named}
    first = _first_id(model, prefixes, since - LATE) - CONCURRENT if since else None
    before = _first_id(model, prefixes, until + LATE) + CONCURRENT if until else None
    return IdRange(first, before)


def _first_id(
    model: type[Delivery | Event], prefixes: Iterable[str], at: datetime
) -> int:
    """Return the id of the first row from a time on; behind the last row if there is none.

    A public id begins with its time.
    """
    rows: Any = model._default_manager.order_by("public_id")  # noqa: SLF001 - public by use
    firsts = (
        rows.filter(
            public_id__gte=ids.first_at(prefix, at), public_id__startswith=prefix
        )
        .values_list("pk", flat=True)
        .first()
        for prefix in prefixes
    )
    if found := [pk for pk in firsts if pk is not None]:
        return int(min(found))
    return int(rows.order_by("-pk").values_list("pk", flat=True).first() or 0) + 1
