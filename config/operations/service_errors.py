"""What a command needs and cannot use, in words: the database, its migrations, Redis."""

from __future__ import annotations

from django.db import Error, InterfaceError, OperationalError, connection
from redis.exceptions import RedisError

# What PostgreSQL calls a table or a column that is not there.
ABSENT = {"42P01", "42703"}


def told(error: BaseException) -> str | None:
    """Say on one line what is away; None when it is a fault of the program's own."""
    if isinstance(error, RedisError):
        return f"Redis is not usable: {_first_line(error)}"
    if isinstance(error, (OperationalError, InterfaceError)) or _is_absent(error):
        return unusable(error)
    return None


def unusable(error: BaseException) -> str:
    """Say on one line which database cannot be used, and why."""
    words = f"the database {database()} is not usable: {_first_line(error)}"
    if _is_absent(error):
        return f"{words}; has `manage.py migrate` been run?"
    return words


def database() -> str:
    """Name the default database, without its password."""
    at = connection.settings_dict
    if connection.vendor == "sqlite":
        return str(at["NAME"])
    return f"{connection.vendor} {at['HOST']}:{at['PORT'] or 5432}/{at['NAME']}"


def _is_absent(error: BaseException) -> bool:
    """Tell whether it is a table or a column that is not there."""
    if not isinstance(error, Error):
        return False
    if getattr(error.__cause__, "sqlstate", None) in ABSENT:
        return True
    return str(error).startswith(("no such table", "no such column"))


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]
