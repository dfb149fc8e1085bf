"""Read the recordings of one account: the list, newest first, and a single one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.models import AbstractUser
from django.db import connection
from django.db.models import Q, QuerySet
from django.db.models.functions import Coalesce

from recording.library import cursors, times
from recording.models import Recording
from webhooks_core.web.errors import BadRequestError, NotFoundError


@dataclass(frozen=True, slots=True)
class Page:
    """Recordings without their documents, and where the next page begins."""

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
    rows = _of(account).defer("document", "summaries").order_by("-time", "-pk")
    if title:
        rows = rows.filter(_title_contains(title))
    try:
        rows = rows.filter(times.period(since=since, until=until))
    except OverflowError as error:
        raise BadRequestError(str(error)) from error
    if cursor is not None:
        rows = rows.filter(_after(cursor))
    items = list(rows[: limit + 1])
    has_more = len(items) > limit
    items = items[:limit]
    last = items[-1] if has_more else None
    return Page(items, cursors.write(last.time, last.pk) if last else None)


def _title_contains(text: str) -> Q:
    if connection.vendor == "sqlite":  # its LIKE knows the letter case of ASCII alone
        return Q(title__iregex=re.escape(text))
    return Q(title__icontains=text)


def _after(cursor: str) -> Q:
    try:
        time, pk = cursors.read(cursor, datetime, int)
    except ValueError as error:
        raise BadRequestError("cursor is not one that this list returned.") from error
    return Q(time__lt=time) | Q(time=time, pk__lt=pk)


def find(account: AbstractUser, audio_id: str) -> Any:
    """Return a recording of the account. Raises NotFoundError, also for another's."""
    # No query for what cannot be an id: PostgreSQL refuses a NUL.
    found = None if "\0" in audio_id else _of(account).filter(audio_id=audio_id).first()
    if found is None:
        raise NotFoundError("There is no such recording.")
    return found


def _of(account: AbstractUser) -> QuerySet[Any]:
    return Recording.objects.filter(account_id=account.pk).annotate(
        time=Coalesce("recorded_at", "created_at")
    )
