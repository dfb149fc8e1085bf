"""The statements of web processes: short ones, ended when they are not."""

from __future__ import annotations

from django.db import connections


def limit(seconds: float) -> None:
    """Have PostgreSQL end longer statements on connections that this process opens from now on.

    A connection that exists stays as it is. SQLite has no such limit. Nor are statements compiled:
    that takes PostgreSQL several times as long as the statements of our pages.
    """
    database = connections.settings["default"]
    if database["ENGINE"] != "django.db.backends.postgresql":
        return
    given = database["OPTIONS"].get("options", "")
    ours = f"-c statement_timeout={round(seconds * 1000)} -c jit=off"
    database["OPTIONS"]["options"] = f"{given} {ours}".strip()
