"""How long one statement may take in a web process: a client has given up long before."""

from __future__ import annotations

from django.db import connections


def limit(seconds: float) -> None:
    """Have PostgreSQL end longer statements on connections that this process opens from now on.

    A connection that exists keeps its limit. SQLite has no such limit.
    """
    database = connections.settings["default"]
    if database["ENGINE"] != "django.db.backends.postgresql":
        return
    given = database["OPTIONS"].get("options", "")
    ours = f"-c statement_timeout={round(seconds * 1000)}"
    database["OPTIONS"]["options"] = f"{given} {ours}".strip()
