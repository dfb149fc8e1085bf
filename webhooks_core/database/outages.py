"""Which errors of the database mean that it cannot be used now."""

from __future__ import annotations

from django.db import Error, InterfaceError, InternalError, OperationalError

# PostgreSQL's class of errors "invalid transaction state": a server that is read-only after a
# failover, a transaction that the server ended.
_TRANSACTION_STATE = "25"


def is_outage(error: BaseException | None) -> bool:
    """Return True for an error that is expected to pass, and is not about one row."""
    if isinstance(error, InternalError):
        sqlstate = getattr(error.__cause__, "sqlstate", None) or ""
        return sqlstate.startswith(_TRANSACTION_STATE)
    return isinstance(error, (OperationalError, InterfaceError))


def reason(error: BaseException) -> str:
    """Return an outage on one line of the log: its class, and the message if a database sent it.

    A broker's message may quote its address or the command, with a password.
    """
    message = str(error).splitlines()[:1] if isinstance(error, Error) else []
    return ": ".join([type(error).__name__, *message])
