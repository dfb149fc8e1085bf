"""The doorbell: who publishes rings at the lanes, and a shift that waits hears it.

On PostgreSQL by NOTIFY; in an embedded database whoever waits asks it whether anybody has written,
which costs next to nothing. What is not heard is seen at the next look.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from types import TracebackType
from typing import Any, Self

from django.db import DatabaseError, connection

from webhooks_core.models import EndpointQueue

LOOK_EVERY_S = 0.2
ASK_EVERY_S = 0.04

# One statement and one commit, which need not be on disk when it returns: a call that a crash
# of the server takes away is repaired by the sweep. Lanes that know of earlier work ring nobody.
_RING = (
    "WITH rung AS (UPDATE webhooks_core_endpointqueue SET next_due_at = %s WHERE endpoint_id = ANY(%s)"
    " AND (next_due_at IS NULL OR next_due_at > %s) RETURNING 1)"
    " SELECT pg_notify('webhooks_core', ''), set_config('synchronous_commit', 'off', true)"
    " FROM rung LIMIT 1"
)


def notify(endpoint_ids: Sequence[int], *, at: datetime) -> None:
    """Tell the lanes of these endpoints that work is due at a time, and whoever waits for it."""
    # Inside a transaction it would be the caller's commit that is not on disk.
    if connection.vendor != "postgresql" or connection.in_atomic_block:
        EndpointQueue.objects.mark_due(endpoint_ids, at=at)
        return
    with connection.cursor() as cursor:
        cursor.execute(_RING, (at, list(endpoint_ids), at))


class Listener:
    """What a waiting shift listens to, on the database connection of its thread."""

    def __init__(self) -> None:
        self._heard_by: Any = None
        self._version = _version()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # A server that talks to nobody would keep what it has to say.
        if self._listens():
            with suppress(DatabaseError), connection.cursor() as cursor:
                cursor.execute("UNLISTEN *")

    def wait(self) -> None:
        """Return when it is time to look for work: something rang, or a moment has passed."""
        if connection.vendor == "postgresql" and not connection.in_atomic_block:
            self._listen()
        else:
            self._ask()

    def _listen(self) -> None:
        if not self._listens():
            with connection.cursor() as cursor:
                cursor.execute("LISTEN webhooks_core")
            self._heard_by = connection.connection
            return  # what came before was not heard
        with connection.wrap_database_errors:
            for _ in self._heard_by.notifies(timeout=LOOK_EVERY_S, stop_after=1):
                pass

    def _ask(self) -> None:
        until, before = time.monotonic() + LOOK_EVERY_S, self._version
        while time.monotonic() < until and self._version == before:
            time.sleep(ASK_EVERY_S)
            self._version = _version()

    def _listens(self) -> bool:
        return self._heard_by is not None and self._heard_by is connection.connection


def _version() -> int:
    """Return a number that changes when another connection has written to this database.

    Past Django's cursor, which would cost ten times the question itself.
    """
    if connection.vendor != "sqlite":
        return 0
    connection.ensure_connection()
    with connection.wrap_database_errors:
        found: int = connection.connection.execute("PRAGMA data_version").fetchone()[0]
    return found
