"""Errors of the database that mean that it cannot be used now.

The same rule as webhooks_core's: this package also works in a project without that one.
"""

from __future__ import annotations

from django.db import InterfaceError, InternalError, OperationalError


def is_outage(error: BaseException | None) -> bool:
    """Return True for an error that is expected to pass: connections, locks, a read-only server."""
    if isinstance(error, InternalError):
        # PostgreSQL's class "invalid transaction state" (25): read-only after a failover.
        return str(getattr(error.__cause__, "sqlstate", "")).startswith("25")
    return isinstance(error, (OperationalError, InterfaceError))
