"""Store attempts: one statement for all of a batch."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import chain
from typing import Any, NamedTuple

from django.db import connection


class AttemptRow(NamedTuple):
    """The columns of an attempt; `details` is JSON."""

    delivery_id: int
    number: int
    started_at: datetime
    duration_ms: int
    outcome: str
    status_code: int | None
    error: str
    response_body: bytes
    is_repeated: bool
    details: str


# Raw SQL: half of the time of bulk_create goes into composing it. A commit that the database
# did not confirm is written again, hence the conflicts.
_COLUMNS = ", ".join(AttemptRow._fields)
_INSERT = "INSERT INTO webhooks_core_attempt ({}) VALUES {} ON CONFLICT DO NOTHING"
_VALUES = f"({', '.join(['%s'] * len(AttemptRow._fields))})"
_COPY = f"COPY webhooks_core_attempt ({_COLUMNS}) FROM STDIN"


def insert(rows: Sequence[AttemptRow]) -> None:
    """Insert attempts. On PostgreSQL a batch raises IntegrityError if one of them is stored already."""
    if connection.vendor == "postgresql" and len(rows) > 1:
        _copy(rows)
    elif rows:
        _insert(rows)


def _copy(rows: Sequence[AttemptRow]) -> None:
    """Insert a batch in half the time of an INSERT, which the server parses and converts."""
    # Errors are raised where the block ends, outside of Django's cursor.
    with (
        connection.wrap_database_errors,
        connection.cursor() as cursor,
        cursor.copy(_COPY) as copy,
    ):
        for row in rows:
            copy.write_row(row)


def _insert(rows: Sequence[AttemptRow]) -> None:
    at_once = _max_parameters() // len(AttemptRow._fields)
    for start in range(0, len(rows), at_once):
        batch = rows[start : start + at_once]
        sql = _INSERT.format(_COLUMNS, ", ".join([_VALUES] * len(batch)))
        with connection.cursor() as cursor:
            cursor.execute(sql, list(chain.from_iterable(_adapted(batch))))


def _max_parameters() -> int:
    if connection.vendor == "sqlite":
        # Each statement may wait for the thread of the sender: as few as possible.
        return int(connection.connection.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER))
    return 65_535  # of PostgreSQL's protocol


def _adapted(rows: Sequence[AttemptRow]) -> Iterator[Sequence[Any]]:
    """Yield rows with their times as SQLite stores them; Django's own adapter is far slower."""
    if connection.vendor != "sqlite":
        yield from rows
        return
    zone = connection.timezone  # read once: it takes longer than the rest of a row
    for row in rows:
        started_at = row.started_at.astimezone(zone).replace(tzinfo=None)
        yield (*row[:2], str(started_at), *row[3:])
