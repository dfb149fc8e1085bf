"""Read the recordings of one account: the list, newest first, and a single one."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson
from django.contrib.auth.models import AbstractUser
from django.db import connection
from django.db.models import Q, QuerySet
from django.db.models.functions import Coalesce

from recording.models import Recording
from webhooks_core.errors import BadRequestError, NotFoundError
from webhooks_core.times import iso


@dataclass(frozen=True, slots=True)
class Page:
    """Recordings by `audio_id`, `title` and `time`, and where the next page begins."""

    items: list[Any]
    next_cursor: str | None


def page(
    account: AbstractUser,
    *,
    title: str = "",
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int = 20,
    cursor: str | None = None,
) -> Page:
    """Return recordings whose title contains a text, in any case, from `since` to before `until`.

    Their time is when they were recorded, or else imported: the attribute `time`. Raises
    BadRequestError.
    """
    if "\0" in title:  # PostgreSQL refuses it, and no title matches
        raise BadRequestError("title must not contain a NUL character.")
    rows = newest(account, since=since, until=until, cursor=cursor)
    if title:
        rows = rows.filter(_title_contains(title))
    columns = rows.values_list("pk", "audio_id", "title", "time", named=True)
    items = list(columns[: limit + 1])
    has_more = len(items) > limit
    items = items[:limit]
    last = items[-1] if has_more else None
    return Page(items, cursor_after(last.time, last.pk) if last else None)


def newest(
    account: AbstractUser,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    cursor: str | None = None,
) -> QuerySet[Any]:
    """Return the recordings of a period, behind a cursor, newest first. Raises BadRequestError."""
    rows = _of(account)
    for name, lookup, time in (("since", "gte", since), ("until", "lt", until)):
        if time is not None:
            try:
                rows = rows.filter(**{f"time__{lookup}": utc(time)})
            except OverflowError as error:
                raise BadRequestError(f"{name} is out of range.") from error
    if cursor is not None:
        rows = rows.filter(_after(cursor))
    return rows.order_by("-time", "-pk")


def find(account: AbstractUser, audio_id: str) -> Any:
    """Return a recording of the account. Raises NotFoundError, also for another's."""
    # No query for what cannot be an id: PostgreSQL refuses a NUL.
    found = None if "\0" in audio_id else _of(account).filter(audio_id=audio_id).first()
    if found is None:
        raise NotFoundError("There is no such recording.")
    return found


def utc(time: datetime) -> datetime:
    """Return a time in UTC, which one without an offset is in already.

    Raises OverflowError if it has no such time: the year would be 0 or 10,000.
    """
    return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)


def cursor_after(time: datetime, pk: int) -> str:
    """Return where the next page of a list begins, as a text that a client returns unread."""
    key = orjson.dumps([iso(time), pk])
    return base64.urlsafe_b64encode(key).decode().rstrip("=")


def _after(cursor: str) -> Q:
    refusal = BadRequestError("cursor is not one that this list returned.")
    padded = cursor.encode() + b"=" * (-len(cursor) % 4)
    try:
        text, pk = orjson.loads(base64.b64decode(padded, b"-_", validate=True))
        time = utc(datetime.fromisoformat(text))
    except (ValueError, TypeError, OverflowError) as error:
        raise refusal from error
    if type(pk) is not int or not 0 <= pk < 2**63:
        raise refusal
    return Q(time__lt=time) | Q(time=time, pk__lt=pk)


def _title_contains(text: str) -> Q:
    if connection.vendor == "sqlite":  # its LIKE knows the letter case of ASCII alone
        return Q(title__iregex=re.escape(text))
    return Q(title__icontains=text)


def _of(account: AbstractUser) -> QuerySet[Any]:
    return Recording.objects.filter(account_id=account.pk).annotate(
        time=Coalesce("recorded_at", "created_at")
    )
