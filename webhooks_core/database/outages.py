"""Which errors of the database mean that it cannot be used now."""

from __future__ import annotations

from django.db import InterfaceError, InternalError, OperationalError

# PostgreSQL's class of errors "invalid transaction state": a server that is read-only after a
# failover, a transaction that the server ended.
_TRANSACTION_STATE = "25"
# The messages of these hold no password. Those of another broker may quote its whole address.
_SAFE = ("django.db.utils", "redis.exceptions")


def is_outage(error: BaseException | None) -> bool:
    """Return True for an error that is expected to pass, and is not about one row."""
    if isinstance(error, InternalError):
        sqlstate = getattr(error.__cause__, "sqlstate", None) or ""
        return sqlstate.startswith(_TRANSACTION_STATE)
    return isinstance(error, (OperationalError, InterfaceError))


def reason(error: BaseException) -> str:
    """Return an outage on one line of the log: its class, and its message if that is no secret."""
    kind = type(error)
    message = str(error).splitlines()[:1] if kind.__module__ in _SAFE else []
    return ": ".join([kind.__name__, *message])
