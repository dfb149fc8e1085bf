"""Rows of bearer tokens in commands: those of the ids that were given, and how a list shows one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.core.management.base import CommandError

from webhooks_core.models.bearer import BearerQuerySet
from webhooks_core.times import iso


def with_ids(rows: BearerQuerySet[Any], ids: Sequence[int], *, noun: str) -> Any:
    """Return the rows with these ids. Raises CommandError if one is absent."""
    # A number that does not fit the column is no row's.
    found = rows.filter(pk__in=[number for number in ids if 0 < number < 2**63])
    if absent := set(ids) - set(found.values_list("pk", flat=True)):
        names = ", ".join(map(str, sorted(absent)))
        raise CommandError(f"there is no {noun} with id {names}; nothing was revoked")
    return found


def described(row: Any, now: datetime, *, noun: str, **owner: str) -> dict[str, Any]:
    """Return what a list shows of a row; None means never."""
    return {
        "id": row.pk,
        noun: f"{row.display_prefix}…",
        **owner,
        "state": row.state(now),
        "created_at": iso(row.created_at),
        "expires_at": iso(row.expires_at) if row.expires_at else None,
        "last_used_at": iso(row.last_used_at) if row.last_used_at else None,
        "name": row.name,
    }
