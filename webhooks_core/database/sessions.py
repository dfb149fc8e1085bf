"""Settings of the sessions of PostgreSQL."""

from __future__ import annotations

from django.db import connections


def limit(**limits: str | int) -> None:
    """Give these settings to the connections that this process opens from now on, and its children.

    Otherwise a frozen process keeps its locks, and others wait for them. SQLite needs no limits:
    its database is on this machine.
    """
    if connections["default"].vendor != "postgresql":
        return
    options = connections.settings["default"]["OPTIONS"]
    given = "".join(f" -c {name}={value}" for name, value in limits.items())
    options["options"] = f"{options.get('options', '')}{given}".strip()
