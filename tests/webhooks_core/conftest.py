"""Fixtures of the engine's tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.db import connection, connections, transaction
from hypothesis import settings

# `--hypothesis-profile=long`: searches that take a quarter of an hour instead of seconds.
settings.register_profile("long", print_blob=True)


@pytest.fixture
def commits_at_once(monkeypatch, db) -> None:
    """Run what waits for a commit at once, where the test is one transaction by itself."""

    def run(hook: Callable[[], object], *, robust: bool = False) -> None:
        hook()

    monkeypatch.setattr(transaction, "on_commit", run)


@pytest.fixture
def threads_may_write(transactional_db, tmp_path: Path, monkeypatch) -> Iterator[None]:
    """Let several threads use the database: SQLite's shared memory locks without waiting."""
    if connection.vendor != "sqlite":
        yield
        return
    memory, path = connections["default"], tmp_path / "copy.sqlite3"
    with memory.cursor() as cursor:
        cursor.execute("VACUUM INTO %s", [str(path)])
    on_disk = {**memory.settings_dict, "NAME": str(path)}
    monkeypatch.setitem(connections.settings, "default", on_disk)
    connections["default"] = connections.create_connection("default")
    yield
    connections["default"].close()
    connections["default"] = memory
