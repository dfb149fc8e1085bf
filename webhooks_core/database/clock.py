"""The clock of the engine: the database's, since it is the one that all machines share."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models.functions import Now
from django.utils import timezone

from webhooks_core.database.statements import fetch

OLD_AFTER_S = 10.0


class DatabaseClock:
    """The time of PostgreSQL's machine. An SQLite database is on this machine.

    Leases and due times depend on it alone. It is measured now and then, by a dispatcher with each
    renewal of its lease; in between this process counts on by the monotonic clock, so that a jump
    of the machine's wall clock has no effect.
    """

    def __init__(self) -> None:
        self._measured: tuple[datetime, float] | None = None

    def measure(self) -> datetime:
        """Return the time, by a query."""
        if not self._is_elsewhere():
            return timezone.now()
        at: datetime
        [(at,)] = fetch("SELECT clock_timestamp()")
        self._measured = at, time.monotonic()
        return at

    def catch_up(self, timestamp: float) -> None:
        """Note a Unix time that the database has passed, in case this process has not."""
        if timestamp > self.now().timestamp():
            passed = datetime.fromtimestamp(timestamp, UTC)
            self._measured = passed, time.monotonic()

    def now(self) -> datetime:
        """Return the time as this process last measured it."""
        if self._measured is None or not self._is_elsewhere():
            return timezone.now()
        at, since = self._measured
        return at + timedelta(seconds=time.monotonic() - since)

    def recent(self) -> datetime:
        """As now(), but measure first if the last measurement is old."""
        if self._measured and time.monotonic() - self._measured[1] < OLD_AFTER_S:
            return self.now()
        return self.measure()

    def in_sql(self) -> Any:
        """Return the time as part of a query: an expression, or a value on SQLite."""
        return Now() if self._is_elsewhere() else timezone.now()

    def _is_elsewhere(self) -> bool:
        return connection.vendor == "postgresql"


clock = DatabaseClock()
