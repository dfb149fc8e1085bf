"""Errors of services that a command needs, on one line: the database, its migrations, Redis."""

from __future__ import annotations

from django.db import Error, connection
from redis.exceptions import RedisError

from webhooks_core.database.outages import is_outage

# PostgreSQL's codes of an undefined table and an undefined column.
UNDEFINED = {"42P01", "42703"}


def describe(error: BaseException) -> str | None:
    """Return which service is unusable, and why; None for any other error."""
    if isinstance(error, RedisError):
        return f"Redis is not usable: {_first_line(error)}"
    if is_outage(error) or _is_undefined(error):
        return describe_database(error)
    return None


def describe_database(error: BaseException) -> str:
    """Return which database is unusable, and why."""
    message = f"the database {database()} is not usable: {_first_line(error)}"
    if _is_undefined(error):
        return f"{message}; has `manage.py migrate` been run?"
    return message


def database() -> str:
    """Return the address of the default database, without its password."""
    address = connection.settings_dict
    if connection.vendor == "sqlite":
        return str(address["NAME"])
    port = address["PORT"] or 5432
    return f"{connection.vendor} {address['HOST']}:{port}/{address['NAME']}"


def _is_undefined(error: BaseException) -> bool:
    """Return True if a table or a column does not exist."""
    if not isinstance(error, Error):
        return False
    if getattr(error.__cause__, "sqlstate", None) in UNDEFINED:
        return True
    return str(error).startswith(("no such table", "no such column"))


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]
