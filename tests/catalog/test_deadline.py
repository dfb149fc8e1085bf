"""The time limit of an operation, and one snapshot for a query of several statements."""

from __future__ import annotations

import math
import time
from contextlib import contextmanager

import pytest
from django.db import connection, connections

from catalog.execution.context import Context
from catalog.execution.deadline import Deadline, session_limit
from catalog.execution.operations import Executor, GraphQLRequest
from catalog.models import Author, Book
from catalog.schema.contract import schema
from tests.catalog.factories import AuthorFactory, BookFactory
from tests.threads import together

pytestmark = pytest.mark.django_db(transaction=True)

# A statement that does not end by itself.
ENDLESS = {
    "postgresql": "SELECT pg_sleep(600)",
    "sqlite": "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n",
}
EXECUTOR = Executor(schema.graphql_schema)


def answer(text, seconds=30.0, deadline=None):
    context = Context(deadline=deadline or Deadline(seconds))
    return EXECUTOR.answer(GraphQLRequest(text), context)


@contextmanager
def endless(*, table="catalog_book", kind="SELECT", deadline=None):
    """Replace the statements on a table by one that does not end, where a deadline comes near."""

    def replace(execute, sql, params, many, context):
        if table in sql and sql.startswith(kind):
            sql, params = ENDLESS[connection.vendor], None
            if deadline is not None:
                deadline.ends = time.monotonic() + 0.1
        return execute(sql, params, many, context)

    with connection.execute_wrapper(replace):
        yield


@pytest.mark.parametrize(
    "text",
    [
        "{ getAllBooks { id } }",
        "{ getAllAuthors { books { id } } }",
        "{ getAllAuthors { bookCount } }",
        "{ getAllAuthors { booksPage { nodes { id } } } }",
        "{ books { totalCount } }",
    ],
)
def test_the_database_cancels_a_statement_at_the_time_limit(text):
    AuthorFactory.create()
    with endless():
        it = answer(text, seconds=0.1)
    assert (it.is_executed, it.is_unavailable) == (True, False)
    [error] = it.body["errors"]
    assert error["extensions"] == {"code": "TIME_LIMIT_EXCEEDED", "limit": 0.1}
    assert error["message"].startswith("The operation takes longer than 0.1 s")
    assert list(it.body["data"].values()) == [None]
    assert "errors" not in answer(text).body  # the connection serves again


def test_what_was_answered_before_the_limit_stays(shelf):
    text = "{ a: getAllAuthors { id } b: getAllBooks { id } c: getAllAuthors { id } }"
    deadline = Deadline(30.0)
    with endless(table='FROM "catalog_book"', deadline=deadline):
        body = answer(text, deadline=deadline).body
    assert len(body["data"]["a"]) == 3
    assert (body["data"]["b"], body["data"]["c"]) == (None, None)
    assert [error["path"] for error in body["errors"]] == [["b"], ["c"]]
    assert {error["extensions"]["code"] for error in body["errors"]} == {
        "TIME_LIMIT_EXCEEDED"
    }


def test_a_mutation_beyond_the_limit_changes_nothing():
    author = AuthorFactory.create()
    text = f"""mutation {{ addBook(book: {{name: "A", pageCount: 1, authorId: {author.pk}}})
      {{ author {{ books {{ id }} }} }} }}"""
    with endless(table='FROM "catalog_book"'):
        body = answer(text, seconds=0.3).body
    assert body["data"] == {"addBook": None}
    assert body["errors"][0]["extensions"]["code"] == "TIME_LIMIT_EXCEEDED"
    assert not Book.objects.exists()
    assert "errors" not in answer(text).body
    assert Book.objects.count() == 1


def test_the_setting_has_the_limit(settings):
    settings.CATALOG_TIME_LIMIT_S = 0.3
    assert Context().deadline.seconds == 0.3


@pytest.fixture
def options():
    found = connections.settings["default"].setdefault("OPTIONS", {})
    before = dict(found)
    yield found
    found.clear()
    found.update(before)


def test_the_limit_of_the_session_is_that_of_its_options(options):
    options["options"] = "-c jit=off -c statement_timeout=1500 -c lock_timeout=7"
    assert session_limit() == 1.5
    options["options"] = "-c statement_timeout=0"
    assert session_limit() == math.inf


def statements(text, seconds=30.0):
    """Return the statements of an operation, those that begin and end transactions too."""
    seen: list[str] = []

    def note(execute, sql, params, many, context):
        seen.append(sql)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        assert "errors" not in answer(text, seconds).body
    return seen


@pytest.mark.parametrize(
    "text",
    ["{ getAllBooks { id author { id } } }", "{ __typename getBookById(id: 1) { id } }", "{ __typename }"],
)  # fmt: skip
def test_a_single_statement_needs_nothing_beside_it(shelf, options, text):
    options["options"] = "-c statement_timeout=10000"
    assert len(statements(text)) == text.count("get")


def test_a_query_of_the_schema_alone_needs_no_database(shelf):
    assert statements('{ __type(name: "Book") { name } __typename }') == []


WRITES = {
    "adds": lambda: BookFactory.create(author=Author.objects.get(pk=1)),
    "deletes": lambda: Book.objects.filter(author_id=1).delete(),
    "renames": lambda: Author.objects.update(first_name="Other"),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize(
    "text",
    [
        "{ getAllAuthors { firstName books { id author { firstName } } } }",
        "{ a: getAllAuthors { firstName bookCount } b: getAllAuthors { firstName bookCount } }",
        "{ authors { nodes { firstName } edges { node { firstName bookCount booksPage { totalCount nodes { id } } } } } }",
    ],
)
def test_a_write_between_two_statements_is_not_seen(shelf, text, write):
    expected = answer(text).body
    written: list[str] = []

    def between(execute, sql, params, many, context):
        result = execute(sql, params, many, context)
        if sql.startswith("SELECT") and not written:
            written.append(write)
            together(WRITES[write])
        return result

    with connection.execute_wrapper(between):
        assert answer(text).body == expected
    assert written
    assert answer(text).body != expected


def test_a_database_that_begins_no_transaction_is_unavailable(shelf, monkeypatch):
    monkeypatch.setattr(connection, "set_autocommit", refuse)
    it = answer("{ a: getAllAuthors { books { id } } b: getAllBooks { id } }")
    assert it.is_unavailable
    assert it.body["data"] is None
    assert [error["path"] for error in it.body["errors"]] == [["a"], ["b"]]


def refuse(*_args: object, **_options: object) -> None:
    from django.db import OperationalError

    raise OperationalError("no connection")
