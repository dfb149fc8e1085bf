"""Errors that a command reports on one line: of the database, its migrations, Redis, its words."""

from __future__ import annotations

import sys

from django.db import Error, connection
from redis.exceptions import RedisError

from webhooks_core.database.outages import is_outage

# PostgreSQL's codes of an undefined table and an undefined column.
UNDEFINED = {"42P01", "42703"}


def describe(error: BaseException) -> str | None:
    """Return which service or argument is unusable, and why; None for any other error."""
    if isinstance(error, UnicodeEncodeError) and _is_argument(error.object):
        return f"an argument is not valid UTF-8: {error.object!a}"
    if isinstance(error, RedisError):
        return f"Redis is not usable: {_first_line(error)}"
    if is_outage(error) or _is_undefined(error):
        return describe_database(error)
    return None


def _is_argument(text: str) -> bool:
    """Return True for a word of the command line, also for the value of `--name=value`."""
    return any(word == text or word.endswith(f"={text}") for word in sys.argv[1:])


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
