"""Pages of rows, newest first: the cursor of a page is the id of its last row."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any, TypeVar

from django.db.models import Model, QuerySet

Row = TypeVar("Row", bound=Model)
Rows = TypeVar("Rows", bound=QuerySet[Any])


def position(cursor: str) -> int | None:
    """Return the id behind which a page begins; None for the first. Raises ValueError."""
    if not cursor:
        return None
    if not re.fullmatch("[0-9a-f]{1,15}", cursor):
        raise ValueError("cursor is not one of an answer.")
    return int(cursor, 16)


def behind(pks: Sequence[int], size: int) -> str:
    """Return the cursor behind a page of ids, of which one more than `size` were read."""
    return f"{pks[size - 1]:x}" if len(pks) > size else ""


def page(
    rows: QuerySet[Row], *, before: int | None, size: int
) -> tuple[list[Row], str]:
    """Return the newest rows before an id, and the cursor behind them; "" behind the last."""
    if before is not None:
        rows = rows.filter(pk__lt=before)
    found = list(rows.order_by("-pk")[: size + 1])
    return found[:size], behind([row.pk for row in found], size)


def created(rows: Rows, since: datetime | None, until: datetime | None) -> Rows:
    """Return the rows that were created from a time on, and before another one."""
    if since:
        rows = rows.filter(created_at__gte=since)
    return rows.filter(created_at__lt=until) if until else rows
