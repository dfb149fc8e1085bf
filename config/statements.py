"""The time limits of SQL statements and transactions in web processes."""

from __future__ import annotations

from django.db import connections


def limit(seconds: float) -> None:
    """Have PostgreSQL cancel longer statements on connections that this process opens from now on.

    It also ends transactions in which the process does nothing for so long: a frozen one would keep
    its locks. SQLite has no such limit. JIT compilation is off too: it takes several times as long as the
    statements of our pages.
    """
    if connections["default"].vendor != "postgresql":
        return
    database = connections.settings["default"]
    options = database["OPTIONS"].get("options", "")
    timeout = round(seconds * 1000)
    limits = (
        f"-c statement_timeout={timeout} -c jit=off"
        f" -c idle_in_transaction_session_timeout={timeout}"
    )
    database["OPTIONS"]["options"] = f"{options} {limits}".strip()
