"""Read the recordings of one account: the list, newest first, and a single one."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson
from django.contrib.auth.models import AbstractUser
from django.db.models import Q, QuerySet
from django.db.models.functions import Coalesce

from recording.errors import BadRequestError, NotFoundError
from recording.models import Recording
from webhooks_core.formats import iso


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
    rows = _of(account).defer("document").order_by("-time", "-pk")
    if title:
        rows = rows.filter(title__icontains=title)
    if since is not None:
        rows = rows.filter(time__gte=utc("since", since))
    if until is not None:
        rows = rows.filter(time__lt=utc("until", until))
    if cursor is not None:
        time, pk = _read_cursor(cursor)
        rows = rows.filter(Q(time__lt=time) | Q(time=time, pk__lt=pk))
    items = list(rows[: limit + 1])
    has_more = len(items) > limit
    items = items[:limit]
    return Page(items, _cursor(items[-1]) if has_more else None)


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


def utc(name: str, time: datetime) -> datetime:
    """Return a time in UTC, which one without an offset is in already. Raises BadRequestError."""
    try:
        return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
    except (OverflowError, ValueError) as error:  # the year would be 0 or 10,000
        raise BadRequestError(f"{name} is out of range.") from error


def _cursor(last: Any) -> str:
    key = orjson.dumps([iso(last.time), last.pk])
    return base64.urlsafe_b64encode(key).decode().rstrip("=")


def _read_cursor(cursor: str) -> tuple[datetime, int]:
    try:
        padded = cursor.encode() + b"=" * (-len(cursor) % 4)
        time, pk = orjson.loads(base64.b64decode(padded, b"-_", validate=True))
        return utc("cursor", datetime.fromisoformat(time)), _row_number(pk)
    except (binascii.Error, ValueError, TypeError) as error:
        raise BadRequestError("cursor is not one that this list returned.") from error


def _row_number(value: object) -> int:
    if not isinstance(value, int) or not 0 < value < 2**63:
        raise ValueError
    return value
