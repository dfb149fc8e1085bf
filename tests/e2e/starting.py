"""Words for tests that start `manage.py up`."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from tests.running import environment, free_port, running

READY = "Signpost is ready"


def variables(file: Path, **more: str) -> dict[str, str]:
    """Return an environment whose data is in this SQLite file alone."""
    return environment(DATABASE_URL=f"sqlite:///{file}", WORKERS="1", **more)


def start(data: Path, *options: str, **more: str):
    """Run `manage.py up`, on a free port unless told otherwise."""
    if "--port" not in options:
        options += ("--port", str(free_port()))
    return running("manage.py", "up", *options, environment=variables(data, **more))


def rows(data: Path) -> dict[str, list[tuple[object, ...]]]:
    """Return all that is stored."""
    with closing(sqlite3.connect(data)) as connection:
        names = [
            name
            for (name,) in connection.execute(
                "select name from sqlite_master where type = 'table'"
            )
        ]
        return {n: connection.execute(f"select * from {n}").fetchall() for n in names}  # noqa: S608
