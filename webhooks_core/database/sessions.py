"""Limits of the database sessions of workers."""

from __future__ import annotations

from django.db import connections

# Below the time of a lease. A live process does nothing in a transaction for milliseconds.
IDLE_MS, LOCK_WAIT_MS = 5_000, 10_000


def limit() -> None:
    """Have PostgreSQL end transactions of frozen processes, and long waits for a lock.

    For connections that this process opens from now on, and those of processes that it forks.
    Otherwise a frozen one keeps its locks, and others wait for them. SQLite needs no limits: its
    database is on this machine.
    """
    if connections["default"].vendor != "postgresql":
        return
    options = connections.settings["default"]["OPTIONS"]
    limits = (
        f"-c idle_in_transaction_session_timeout={IDLE_MS}"
        f" -c lock_timeout={LOCK_WAIT_MS}"
    )
    options["options"] = f"{options.get('options', '')} {limits}".strip()
