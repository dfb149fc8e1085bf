"""Transactions on PostgreSQL that end even if their process is frozen or its machine is cut off.

Each limit is set in a transaction and ends with it, so that nothing is left behind in the session of
a task, or of a pooler that assigns connections per transaction. SQLite needs none: its database is
on this machine.
"""

from __future__ import annotations

import structlog
from django.db import ProgrammingError, connection, transaction

from webhooks_core.database.statements import fetch

# How long a process may do nothing inside a transaction. A live one does so for milliseconds.
IDLE_MS = 5_000
# How long housekeeping waits for a lock.
LOCK_WAIT_MS = 2_000
LOCK_NOT_AVAILABLE = "55P03"

_LIMIT_IDLE = "SELECT set_config('idle_in_transaction_session_timeout', %s, true)"
_LIMIT_LOCK_WAIT = "SELECT set_config('lock_timeout', %s, true)"
# In the same round trip the lease is locked, and the session gets the lease's name until the
# transaction ends.
_LOCK_LEASE = (
    "SELECT set_config('idle_in_transaction_session_timeout', %s, true),"
    " set_config('application_name', %s, true)"
    " FROM webhooks_core_dispatcherlease WHERE id = %s AND ended_at IS NULL FOR UPDATE"
)
_TERMINATE = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE datname = current_database() AND application_name = %s"
    " AND COALESCE(state_change < clock_timestamp() - %s::interval, true)"
)

log = structlog.stdlib.get_logger(__name__)


def limit_idle() -> None:
    """Have PostgreSQL end this transaction, and release its locks, if its process does nothing."""
    if connection.vendor == "postgresql":
        fetch(_LIMIT_IDLE, str(IDLE_MS))


def limit_lock_waits() -> None:
    """Have statements of this transaction fail that wait longer than LOCK_WAIT_MS for a lock."""
    if connection.vendor == "postgresql":
        fetch(_LIMIT_LOCK_WAIT, str(LOCK_WAIT_MS))


def lock_lease(lease: int) -> bool:
    """Lock an open lease until the transaction ends, as limit_idle(); return False if it is over.

    For PostgreSQL only.
    """
    return bool(fetch(_LOCK_LEASE, str(IDLE_MS), _name(lease), lease))


def terminate(lease: int) -> None:
    """End the session of a dispatcher that stands still in a transaction with its lease locked."""
    if connection.vendor != "postgresql":
        return
    try:
        with transaction.atomic():
            ended = fetch(_TERMINATE, _name(lease), f"{IDLE_MS} ms")
    except ProgrammingError as error:  # of a role that ours may not end
        log.warning("session not ended", lease=lease, error=str(error).strip())
        return
    if ended:
        log.warning("session of a dead dispatcher ended", lease=lease)


def client_address() -> str:
    """Return this machine's address as PostgreSQL sees it; "" on the same machine."""
    if connection.vendor != "postgresql":
        return ""
    [(address,)] = fetch("SELECT COALESCE(host(inet_client_addr()), '')")
    return str(address)


def is_lock_timeout(error: Exception) -> bool:
    """Return True for the error of a statement that waited too long for a lock."""
    return getattr(error.__cause__, "sqlstate", None) == LOCK_NOT_AVAILABLE


def _name(lease: int) -> str:
    return f"webhooks_core lease {lease}"
