"""Errors of the database and of Redis that mean that they cannot be used now.

The same rule as webhooks_core's: this package also works in a project without that one.
"""

from __future__ import annotations

from contextlib import suppress

from django.db import InterfaceError, InternalError, OperationalError

_OUTAGES: tuple[type[Exception], ...] = (OperationalError, InterfaceError)
with suppress(ImportError):  # a project without Redis
    from redis.exceptions import RedisError

    _OUTAGES = (*_OUTAGES, RedisError)


def is_outage(error: BaseException | None) -> bool:
    """Return True for an error that is expected to pass: connections, locks, a read-only server."""
    if isinstance(error, InternalError):
        # PostgreSQL's class "invalid transaction state" (25): read-only after a failover.
        return str(getattr(error.__cause__, "sqlstate", "")).startswith("25")
    return isinstance(error, _OUTAGES)
