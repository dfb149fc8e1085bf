"""How an idle dispatcher waits until a queue has work.

On PostgreSQL it listens for notifications. On SQLite it polls a counter of writes, which costs
almost nothing. It finds work without a notification at its next look at the queues.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

from django.db import DatabaseError, connection

LOOK_EVERY_S = 0.2
ASK_EVERY_S = 0.01


class Listener:
    """Waits on the database connection of its thread."""

    def __init__(self) -> None:
        self._listening_on: Any = None
        self._version = _data_version()

    def close(self) -> None:
        # The server would keep notifications for a connection that reads none.
        if self._is_listening():
            with suppress(DatabaseError), connection.cursor() as cursor:
                cursor.execute("UNLISTEN *")

    def wait(self) -> None:
        """Return when it is time to look for work: after a notification, or after a moment."""
        if connection.vendor == "postgresql" and not connection.in_atomic_block:
            self._listen()
        else:
            self._poll()

    def _listen(self) -> None:
        if not self._is_listening():
            with connection.cursor() as cursor:
                cursor.execute("LISTEN webhooks_core")
            self._listening_on = connection.connection
            return  # an earlier notification was missed
        with connection.wrap_database_errors:
            for _ in self._listening_on.notifies(timeout=LOOK_EVERY_S, stop_after=1):
                pass

    def _poll(self) -> None:
        until, before = time.monotonic() + LOOK_EVERY_S, self._version
        while time.monotonic() < until and self._version == before:
            time.sleep(ASK_EVERY_S)
            self._version = _data_version()

    def _is_listening(self) -> bool:
        # The thread may have a new connection since.
        return (
            self._listening_on is not None
            and self._listening_on is connection.connection
        )


def _data_version() -> int:
    """Return a number that changes when another connection has written to this database.

    Without Django's cursor, which would cost ten times the query itself.
    """
    if connection.vendor != "sqlite":
        return 0
    connection.ensure_connection()
    with connection.wrap_database_errors:
        row = connection.connection.execute("PRAGMA data_version").fetchone()
    return int(row[0])
