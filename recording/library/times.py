"""Times from outside, in UTC."""

from __future__ import annotations

from datetime import UTC, datetime

from django.db.models import Q


def utc(time: datetime) -> datetime:
    """Return a time in UTC, which one without an offset is in already.

    Raises OverflowError if it has no such time: the year would be 0 or 10,000.
    """
    return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)


def period(*, since: datetime | None, until: datetime | None) -> Q:
    """Return the rows whose `time` is from `since` to before `until`.

    Raises OverflowError, whose text names the one that is out of range.
    """
    rows = Q()
    for name, lookup, time in (("since", "gte", since), ("until", "lt", until)):
        if time is None:
            continue
        try:
            rows &= Q((f"time__{lookup}", utc(time)))
        except OverflowError as error:
            raise OverflowError(f"{name} is out of range.") from error
    return rows
