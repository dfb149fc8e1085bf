"""Store attempts: one statement for all of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, tzinfo
from itertools import chain
from typing import Any, NamedTuple

import orjson
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
_INSERT = f"INSERT INTO webhooks_core_attempt ({_COLUMNS}) %s ON CONFLICT DO NOTHING"
_VALUES = f"({', '.join(['%s'] * len(AttemptRow._fields))})"
# Older versions of SQLite take 999 parameters. With executemany each row would wait for the thread
# of the sender: sqlite3 releases the interpreter's lock for every step of a statement.
_ROWS = 99
# With executemany PostgreSQL plans as many statements as there are rows. Arrays as parameters
# take psycopg much longer than JSON: it quotes each element with regular expressions.
_INSERT_ALL = _INSERT % (
    "SELECT delivery_id, number, started_at, duration_ms, outcome, status_code, error,"
    " decode(response_body, 'hex'), is_repeated, details FROM json_to_recordset(%s) AS attempt"
    " (delivery_id bigint, number int, started_at timestamptz, duration_ms int, outcome text,"
    " status_code smallint, error text, response_body text, is_repeated bool, details jsonb)"
)


def insert(rows: Sequence[AttemptRow]) -> None:
    """Insert attempts that are not stored yet."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            zone = connection.timezone  # read once: it takes longer than the rest of a row
            for start in range(0, len(rows), _ROWS):
                batch = [_for_sqlite(row, zone) for row in rows[start : start + _ROWS]]
                values = ", ".join([_VALUES] * len(batch))
                cursor.execute(_INSERT % f"VALUES {values}", list(chain(*batch)))
        elif rows:
            values = orjson.dumps([_for_json(row) for row in rows]).decode()
            cursor.execute(_INSERT_ALL, [values])


def _for_sqlite(row: AttemptRow, zone: tzinfo) -> tuple[Any, ...]:
    """Return the row with its time as SQLite stores it; Django's own adapter is far slower."""
    started_at = row.started_at.astimezone(zone).replace(tzinfo=None)
    return (*row[:2], str(started_at), *row[3:])


def _for_json(row: AttemptRow) -> dict[str, Any]:
    return row._asdict() | {
        "response_body": row.response_body.hex(),
        "details": orjson.Fragment(row.details),
    }
