"""The check of a connection to PostgreSQL before a request uses it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.db import ProgrammingError, connections

from tests.running import until

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        "sqlite" in settings.DATABASES["default"]["ENGINE"],
        reason="SQLite has no connection that can end",
    ),
]


@pytest.fixture
def connection() -> Iterator[Any]:
    """A connection of its own, which the test may end."""
    connection = connections.create_connection("default")
    connection.connect()
    yield connection
    connection.close()


@pytest.fixture
def server() -> Any:
    return connections["default"]


def answer(connection: Any, sql: str, *parameters: object) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return cursor.fetchone()[0]


def number_of(connection: Any) -> int:
    return int(answer(connection, "SELECT pg_backend_pid()"))


def last_statement(server: Any, number: int) -> str:
    sql = "SELECT query FROM pg_stat_activity WHERE pid = %s"
    return str(answer(server, sql, number))


def test_the_server_is_not_asked_while_nothing_came_from_it(connection, server):
    number = number_of(connection)
    assert connection.is_usable()
    assert last_statement(server, number) == "SELECT pg_backend_pid()"


def test_a_connection_that_the_server_ended_is_not_usable(connection, server):
    answer(server, "SELECT pg_terminate_backend(%s)", number_of(connection))
    until(lambda: not connection.is_usable(), "the end of the connection")


def test_a_connection_that_got_a_message_is_usable(connection, server):
    number = number_of(connection)
    with connection.cursor() as cursor:
        cursor.execute("LISTEN checks")
    answer(server, "SELECT pg_notify('checks', '')::text")

    def is_server_asked() -> bool:
        assert connection.is_usable()
        return last_statement(server, number) == "SELECT 1"

    until(is_server_asked, "the message")


def test_a_connection_that_was_closed_here_is_not_usable(connection):
    connection.connection.close()
    assert not connection.is_usable()


def test_a_connection_within_a_failed_transaction_is_not_usable(connection):
    connection.set_autocommit(False)
    with connection.cursor() as cursor, pytest.raises(ProgrammingError):
        cursor.execute("SELECT nothing")
    assert not connection.is_usable()
    connection.rollback()
    connection.set_autocommit(True)
