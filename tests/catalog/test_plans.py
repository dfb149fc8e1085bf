"""What levels read and count; their answers are compared in test_reference.py."""

from __future__ import annotations

import sys
import tracemalloc

import orjson
import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection
from django.db.backends.utils import CursorWrapper
from django.test.utils import CaptureQueriesContext

from catalog.execution.context import Context
from catalog.execution.limits import Budget
from catalog.execution.operations import Executor, GraphQLRequest
from catalog.execution.statements import Selection, Statement
from catalog.models import Book, Category
from catalog.schema.contract import schema
from tests.catalog.factories import AuthorFactory, BookFactory, CategoryFactory

RENAME = 'updateAuthor(id: 1, author: {firstName: "A", lastName: "B"})'
executor = Executor(schema.graphql_schema)


def answer_to(text, variables=None, limit=100_000):
    """Return the answer as JSON; it is the same from the cache."""
    request = GraphQLRequest(text, None, variables)
    first, second = (
        orjson.dumps(executor.answer(request, Context(budget=Budget(limit))).body)
        for _ in range(2)
    )
    assert first == second
    return first


def test_a_condition_is_not_mixed_up_with_a_variable_of_another_operation(shelf):
    text = """query A($x: Boolean = true) { __typename @include(if: $x) }
      query B($x: BookFilter) { books(filter: $x) { totalCount } }
      query D($x: Boolean = true) { __type(name: "Int") { fields(includeDeprecated: $x) { name } } }
      mutation C($x: AuthorInput!) { addAuthor(author: $x) { firstName } }"""
    person = {"firstName": "Ada", "lastName": "Byron"}
    expected = [
        ("A", True, {"__typename": "Query"}),
        ("B", {"title": "omega"}, {"books": {"totalCount": 1}}),
        ("B", None, {"books": {"totalCount": 6}}),
        ("C", person, {"addAuthor": {"firstName": "Ada"}}),
        ("D", None, {"__type": {"fields": None}}),
    ]
    for name, value, data in expected:
        request = GraphQLRequest(text, name, {"x": value})
        assert executor.answer(request, Context()).body == {"data": data}


def test_what_two_selections_of_one_list_name_is_answered_to_both(shelf):
    text = """{ categories { edges { node { books { name } } }
                   nodes { books { author { bookCount } } } } }"""
    answer = answer_to(text)
    categories = orjson.loads(answer)["data"]["categories"]
    for edge, node in zip(categories["edges"], categories["nodes"], strict=True):
        assert len(edge["node"]["books"]) == len(node["books"]) == 2
        assert all(book["author"]["bookCount"] for book in node["books"])


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        (
            '{ __type(name: "Book") { name } getAllCategories { a: books { id } b: books { id } } }',
            2 + 4 + 4,
        ),
        ("{ getAllCategories { a: books { id } b: books { id } } }", 2 + 4 + 4),
        (
            "{ books { nodes { a: category { books { id } } b: category { books { id } } } } }",
            6 + 8 + 8,
        ),
        (
            "{ getAllBooks { author { books { author { books { id } } } } } }",
            6 + 6 * 3 + 6 * 3 * 3,
        ),
        (
            "{ getAllAuthors { booksPage { a: nodes { id } b: edges { node { id } } } } }",
            3 + 6 + 6,
        ),
        ("{ a: books { nodes { id } } b: books { nodes { id } } }", 6 + 6),
        ("{ books { a: nodes { id } b: nodes { id } } }", 6 + 6),
        ("{ books { edges { a: node { id } b: node { id } } } }", 6 + 6),
        ("{ a: getAuthorById(id: 1) { a: books { id } b: books { id } } }", 1 + 3 + 3),
        (
            'mutation { updateAuthor(id: 1, author: {firstName: "A", lastName: "B"}) { a: books { id } b: books { author { books { id } } } } }',
            1 + 3 + 3 + 9,
        ),
    ],
)
def test_every_form_counts_a_row_as_often_as_it_answers_it(shelf, text, rows):
    assert b"RESULT_TOO_LARGE" not in answer_to(text, limit=rows)
    assert b"RESULT_TOO_LARGE" in answer_to(text, limit=rows - 1)


def test_a_plan_serves_each_value_of_its_conditions(shelf):
    text = "query ($on: Boolean!) { getAllBooks { id name @include(if: $on) } }"
    for value in (True, False, True):
        answer = answer_to(text, {"on": value})
        assert (b"name" in answer) is value


def test_a_database_that_fails_makes_the_field_null_and_tells_nothing(
    shelf, monkeypatch
):
    execute = CursorWrapper.execute

    def away(self, sql, params=None):
        if '"catalog_book"' in sql:
            raise OperationalError("password=secret at db.internal")
        return execute(self, sql, params)

    monkeypatch.setattr(CursorWrapper, "execute", away)
    answer = answer_to("{ getAllBooks { id } getAllAuthors { id } }")
    assert b"secret" not in answer
    assert orjson.loads(answer)["data"]["getAllBooks"] is None
    assert len(orjson.loads(answer)["data"]["getAllAuthors"]) == 3


def test_a_plan_never_asks_twice_for_what_one_query_gives(shelf):
    with CaptureQueriesContext(connection) as queries:
        answer_to("{ getAllAuthors { bookCount n: bookCount books { id } } }")
    assert len(queries) == 2 + 2


@pytest.mark.parametrize(
    "query",
    [
        "{ getAllBooks { %s } }",
        "{ getAllBooks { %s } books(first: 1) { totalCount } }",
        '{ getAllBooks { author { %s } } __type(name: "Int") { name } }',
        "{ authors { nodes { books { %s } } } }",
        "{ authors { edges { node { books { author { %s } } } } } }",
        f"mutation {{ {RENAME} {{ books {{ %s }} }} }}",
    ],
)
def test_python_runs_for_no_field_of_a_row(shelf, query):
    Book.objects.all().delete()
    Book.objects.bulk_create(
        Book(name="b", page_count=1, author_id=1) for _ in range(200)
    )

    def calls(fields: int) -> int:
        """Return how many functions an answer calls."""
        called = 0

        def count_call(_frame: object, event: str, _argument: object) -> None:
            nonlocal called
            called += event == "call"

        names = " ".join(f"a{number}: id" for number in range(fields))
        request = GraphQLRequest(query.replace("%s", names))
        executor.answer(request, Context())  # from here on the document is in the cache
        sys.setprofile(count_call)
        try:
            body = executor.answer(request, Context()).body
        finally:
            sys.setprofile(None)
        assert "errors" not in body
        return called

    assert calls(25) < calls(5) + 20 * 200


def test_rows_of_one_owner_are_never_lost_between_queries(shelf):
    Book.objects.all().delete()
    answer = answer_to("{ getAllAuthors { books { id } bookCount } }")
    assert b'"books":[],"bookCount":0' in answer


def test_a_compiled_statement_follows_its_parameter_and_the_limit(shelf, settings):
    text = "query ($t: String!) { searchBooks(title: $t) { name } }"
    for title, limit, names in (
        ("alpha", 9, ["ALPHA", "Alphabet", "alpha"]),
        ("omega", 9, ["omega"]),
        ("alpha", 1, None),
        ("alpha", 3, ["ALPHA", "Alphabet", "alpha"]),
    ):
        settings.CATALOG_ROW_BUDGET = limit
        found = orjson.loads(answer_to(text, {"t": title}, limit))["data"]
        books = [{"name": name} for name in names] if names else None
        assert found == {"searchBooks": books}


def test_a_parameter_that_the_orm_changes_is_never_compiled():
    selection = Selection(lambda part: Book.objects.filter(name__contains=part), "a")
    with pytest.raises(ValueError, match="does not reach the database as it is"):
        Statement(selection, ["pk"])


def test_a_query_that_changes_with_its_parameter_is_never_compiled():
    selection = Selection(
        lambda n: Book.objects.filter(**{f"pk__{'gt' if n % 2 else 'lt'}": n}), 1
    )
    with pytest.raises(ValueError, match="does not reach the database as it is"):
        Statement(selection, ["pk"])


@pytest.mark.skipif(
    connection.vendor != "sqlite", reason="PostgreSQL's driver reads every column"
)
def test_a_column_that_only_the_orm_can_read_is_never_compiled():
    selection = Selection(lambda key: User.objects.filter(pk=key), 1)
    with pytest.raises(ValueError, match="a conversion that only the ORM knows"):
        Statement(selection, ["last_login"])


TOO_LONG = {"code": "RESULT_TOO_LARGE", "limit": 10_000_000}


@pytest.mark.parametrize(
    "query",
    [
        "{ getAllBooks { category { %s } } }",
        "{ getAllAuthors { books { category { %s } } } }",
        '{ searchBooks(title: "book") { category { ... { %s } } } }',
        "{ getAllCategories { books { category { %s } } } }",
        "{ books { nodes { category { %s } } } }",
        "{ authors { edges { node { books { category { %s } } } } } }",
        '{ getAllBooks { category { %s } } __type(name: "Book") { name } }',
        f"mutation {{ {RENAME} {{ books {{ category {{ %s }} }} }} }}",
    ],
)
def test_a_long_text_cannot_be_multiplied_without_bound(db, query):
    author = AuthorFactory.create(id=1, first_name="before")
    category = CategoryFactory.create(description="x" * 10_000)
    BookFactory.create_batch(40, category=category, author=author)
    text = query.replace("%s", " ".join(f"d{n}: description" for n in range(25)))
    request = GraphQLRequest(text)
    answer = executor.answer(request, Context()).body
    assert len(orjson.dumps(answer)) > 10_000_000
    author.save()
    BookFactory.create(category=category, author=author)
    answer = executor.answer(request, Context()).body
    assert [error["extensions"] for error in answer["errors"]] == [TOO_LONG]
    assert None in answer["data"].values()
    author.refresh_from_db()
    assert author.first_name == "before"


@pytest.mark.parametrize(
    "query",
    [
        "{ getAllCategories { %s } }",
        "{ categories(first: 100) { nodes { %s } } }",
        "{ getAllBooks { author { %s } } }",
        "{ getAllBooks { %s } }",
    ],
)
def test_names_count_as_text_too(db, query):
    name = "n" * 250
    for _ in range(8):
        author = AuthorFactory.create(first_name=name, last_name=name)
        category = CategoryFactory.create(name=name, description=None)
        BookFactory.create(name=name, author=author, category=category)
    field = "lastName" if "author" in query else "name"
    for aliases, refused in ((10, False), (11, True)):
        fields = " ".join(f"n{number}: {field}" for number in range(aliases))
        budget = Budget(100_000, characters=8 * 10 * 250)
        request = GraphQLRequest(query.replace("%s", fields))
        body = executor.answer(request, Context(budget=budget)).body
        assert ("errors" in body) is refused


@pytest.mark.parametrize(
    ("query", "values"),
    [
        ("{ getAllBooks { id pageCount } }", 4 * 2),
        ("{ getAllBooks { id author { a: id b: id } } }", 4 * 4),
        ("{ getAllBooks { id category { description } } }", 4 * 2 + 4),
        ("{ getAllAuthors { bookCount books { id } } }", 1 * 2 + 4),
        ("{ books { nodes { id name } } }", 1 + 4 * 2),
            ("{ books { edges { cursor } pageInfo { endCursor } } }", 2 + 1 + 4),
            ("{ getAllAuthors { booksPage { totalCount edges { node { id } } } } }", 1 + 2 + 4 * 2),
        ("{ getAllBooks { ...F } getAllAuthors { id } } fragment F on Book { id }", 4 + 1),
    ],
)  # fmt: skip
def test_every_value_counts_as_often_as_it_appears(db, query, values):
    author, category = AuthorFactory.create(), CategoryFactory.create()
    BookFactory.create_batch(4, author=author, category=category)
    for limit, refused in ((values, False), (values - 1, True)):
        context = Context(budget=Budget(100, values=limit))
        body = executor.answer(GraphQLRequest(query), context).body
        assert ("errors" in body) is refused
    [error] = body["errors"]
    assert error["extensions"] == {"code": "RESULT_TOO_LARGE", "limit": values - 1}


@pytest.mark.parametrize(
    ("query", "categories"),
    [
        ("{ getAllBooks { category { description } } }", 1),
        ("{ getAllAuthors { books { category { id description } } } }", 1),
        ("{ getAllBooks { category { description } } }", 1_000),
        ("{ getAllCategories { description } }", 1_000),
        ("{ getAllCategories { a: description b: description } }", 1_000),
    ],
)
def test_the_memory_of_an_answer_does_not_grow_with_the_texts_that_it_refuses(
    db, query, categories
):
    """The rows have 10 to 50 million characters, of which 2 million are allowed at once."""
    author = AuthorFactory.create()
    rows = Category.objects.bulk_create(
        Category(name=f"c{number}", description=f"{number:5}" + "x" * 9_995)
        for number in range(categories)
    )
    Book.objects.bulk_create(
        Book(name="b", page_count=1, author=author, category=rows[number % categories])
        for number in range(1_000)
    )
    context = Context(budget=Budget(100_000, characters=2_000_000))
    executor.answer(GraphQLRequest(query), Context(budget=Budget(1)))  # compiled
    tracemalloc.start()
    try:
        body = executor.answer(GraphQLRequest(query), context).body
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert body["errors"][0]["extensions"]["code"] == "RESULT_TOO_LARGE"
    assert peak < 6_000_000


def test_a_category_that_is_answered_by_key_is_the_one_that_is_joined(shelf):
    fields = "books { category { name books { id } } }"
    with_text = fields.replace("name", "name description").replace("books", "a: books")
    for query in ("{ getAllAuthors { %s } }", "{ authors { nodes { %s } } }"):
        joined = orjson.loads(answer_to(query.replace("%s", fields)))
        keyed = answer_to(query.replace("%s", with_text)).replace(b'"a"', b'"books"')
        for text in (b'"description":"Described",', b'"description":null,'):
            assert text in keyed
            keyed = keyed.replace(text, b"")
        assert orjson.loads(keyed) == joined
