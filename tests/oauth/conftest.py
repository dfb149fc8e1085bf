"""Fixtures: an account, its browser, and clients of each authentication method."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.db import connection, connections
from django.test import Client

from tests.oauth.flows import App


@pytest.fixture
def account(db) -> User:
    return User.objects.create_user("ada", "ada@example.org")


@pytest.fixture
def visitor(account) -> Client:
    client = Client()
    client.force_login(account, backend="django.contrib.auth.backends.ModelBackend")
    return client


@pytest.fixture
def app(visitor) -> App:
    """A public client that has registered itself."""
    return App.registered(visitor)


@pytest.fixture
def confidential(visitor) -> App:
    return App.registered(visitor, "client_secret_basic")


@pytest.fixture
def parallel_database(transactional_db, tmp_path) -> Iterator[None]:
    """A database that threads share as processes do.

    SQLite's tests run in memory, where locking is another; here they get a file, as in
    earnest.
    """
    if connection.vendor != "sqlite":
        yield
        return
    file = str(tmp_path / "parallel.sqlite3")
    with connection.cursor() as cursor:
        cursor.execute("VACUUM INTO %s", [file])
    kept, name = connections["default"], connection.settings_dict["NAME"]
    connections.settings["default"]["NAME"] = file
    del connections["default"]
    yield
    connections["default"].close()
    connections.settings["default"]["NAME"] = name
    connections["default"] = kept
