"""The time limit of SQL statements in web processes."""

from __future__ import annotations

from django.db import connections


def limit(seconds: float) -> None:
    """Have PostgreSQL cancel longer statements on connections that this process opens from now on.

    SQLite has no such limit. JIT compilation is off too: it takes several times as long as the
    statements of our pages.
    """
    database = connections.settings["default"]
    if database["ENGINE"] != "django.db.backends.postgresql":
        return
    options = database["OPTIONS"].get("options", "")
    limits = f"-c statement_timeout={round(seconds * 1000)} -c jit=off"
    database["OPTIONS"]["options"] = f"{options} {limits}".strip()
