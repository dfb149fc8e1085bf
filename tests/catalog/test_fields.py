"""Fields that are added in the ordinary way of graphene: a resolver, or an attribute of the model."""

from __future__ import annotations

from typing import Any

import graphene
import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from django.db.models import Value
from django.test.utils import CaptureQueriesContext
from graphene_django import DjangoListField

from catalog import models
from catalog.execution.context import Context
from catalog.execution.limits import Budget
from catalog.execution.operations import Executor, GraphQLRequest
from catalog.schema import contract
from catalog.schema.mutations import Mutation
from catalog.schema.queries import Query
from catalog.schema.types import Author, Book, BookConnection, Category

pytestmark = pytest.mark.django_db


def full_name(author: models.Author, _info: object, upper: bool = False) -> str:
    name = f"{author.first_name} {author.last_name}"
    return name.upper() if upper else name


def draft(*_: object) -> models.Book:
    author = models.Author(first_name="New", last_name="Name")
    return models.Book(name="Draft", page_count=3, author=author, category_id=1)


def deleted(*_: object) -> models.Author:
    author = models.Author.objects.create(first_name="Old", last_name="Name")
    author.delete()
    return author


FIELDS: dict[Any, dict[str, Any]] = {
    Author: {
        "full_name": graphene.Field(
            graphene.String, resolver=full_name, upper=graphene.Boolean()
        ),
        "longest": graphene.Field(
            Book, resolver=lambda author, _: author.books.order_by("page_count").last()
        ),
        "some_books": graphene.List(
            Book, resolver=lambda author, _: author.books.order_by("-pk")[:2]
        ),
        "last_name": graphene.String(resolver=lambda author, _: author.last_name[:1]),
        "annotated": graphene.Int(resolver=lambda author, _: author.n),
        "all_books": DjangoListField(Book, source="books"),
    },
    Book: {
        "name_folded": graphene.String(),
        "pk": graphene.Int(),
        "is_long": graphene.Boolean(resolver=lambda book, _: book.page_count > 2),
    },
    Category: {"initial": graphene.String(resolver=lambda row, _: row.name[:1])},
    Query: {
        "newest": graphene.Field(
            Book, resolver=lambda *_: models.Book.objects.order_by("pk").last()
        ),
        "people": graphene.List(
            Author, resolver=lambda *_: list(models.Author.objects.order_by("-pk"))
        ),
        "missing": graphene.List(
            Author, resolver=lambda *_: models.Author.objects.none()
        ),
        "streamed": graphene.List(
            Author, resolver=lambda *_: models.Author.objects.order_by("pk").iterator()
        ),
        "gaps": graphene.List(
            Author,
            resolver=lambda *_: (None, *models.Author.objects.filter(pk=1), None),
        ),
        "counted": graphene.List(
            Author,
            resolver=lambda *_: models.Author.objects.filter(pk=1).annotate(n=Value(7)),
        ),
        "every_book": DjangoListField(Book),
        "draft": graphene.Field(Book, resolver=draft),
        "drafts": graphene.List(Book, resolver=lambda *_: [draft()] * 6),
        "deleted": graphene.Field(Author, resolver=deleted),
        "same": graphene.List(
            Category,
            resolver=lambda *_: [models.Category.objects.get(pk=1)] * 6,
        ),
    },
}


def schema_with(fields: dict[Any, dict[str, Any]], monkeypatch: Any) -> graphene.Schema:
    for graphene_type, added in fields.items():
        for name, field in added.items():
            is_field = isinstance(field, graphene.Field)
            mounted = field if is_field else graphene.Field.mounted(field)
            monkeypatch.setitem(graphene_type._meta.fields, name, mounted)
    schema = graphene.Schema(query=Query, mutation=Mutation)
    contract.check_resolvers(schema.graphql_schema)
    return schema


@pytest.fixture(scope="module")
def executor():
    """Answers queries to a schema with added fields."""
    with pytest.MonkeyPatch.context() as patch:
        return Executor(schema_with(FIELDS, patch).graphql_schema)


@pytest.fixture
def asked(shelf, executor):
    """Return the data of a query to a schema with added fields."""

    def answer(text: str) -> Any:
        body = executor.answer(GraphQLRequest(text), Context()).body
        assert "errors" not in body, body
        return body["data"]

    return answer


@pytest.mark.parametrize(
    ("text", "data"),
    [
        (
            "{ getAuthorById(id: 1) { fullName books { id } bookCount } }",
            {"getAuthorById": {"fullName": "First Last", "books": [{"id": "1"}, {"id": "3"}, {"id": "5"}], "bookCount": 3}},
        ),
        (
            "{ getAuthorById(id: 1) { a: fullName(upper: true) b: fullName firstName } }",
            {"getAuthorById": {"a": "FIRST LAST", "b": "First Last", "firstName": "First"}},
        ),
        ("{ getAuthorById(id: 1) { lastName } }", {"getAuthorById": {"lastName": "L"}}),
        (
            '{ searchBooks(title: "omega") { author { fullName } isLong nameFolded pk } }',
            {"searchBooks": [{"author": {"fullName": "First Last"}, "isLong": True, "nameFolded": "omega", "pk": 5}]},
        ),
        (
            "{ getBookById(id: 2) { category { initial books { isLong } } } }",
            {"getBookById": {"category": {"initial": "C", "books": [{"isLong": False}, {"isLong": True}]}}},
        ),
        (
            "{ getBookById(id: 2) { category { initial description } } }",
            {"getBookById": {"category": {"initial": "C", "description": "Described"}}},
        ),
        ("{ getBookById(id: 1) { category { initial } } }", {"getBookById": {"category": None}}),
        (
            "{ authors(first: 1) { nodes { fullName } edges { node { fullName } } } }",
            {"authors": {"nodes": [{"fullName": "First Last"}], "edges": [{"node": {"fullName": "First Last"}}]}},
        ),
        (
            "{ getAuthorById(id: 1) { booksPage(last: 1) { totalCount nodes { isLong author { fullName } } edges { n: node { id isLong } } pageInfo { hasPreviousPage } } } }",
            {
                "getAuthorById": {
                    "booksPage": {
                        "totalCount": 3,
                        "nodes": [{"isLong": True, "author": {"fullName": "First Last"}}],
                        "edges": [{"n": {"id": "5", "isLong": True}}],
                        "pageInfo": {"hasPreviousPage": True},
                    },
                },
            },
        ),
        ("{ draft { author { booksPage { totalCount } } } }", {"draft": {"author": {"booksPage": None}}}),
        (
            "{ getAuthorById(id: 2) { longest { id author { fullName } } someBooks { id isLong } } }",
            {"getAuthorById": {"longest": {"id": "6", "author": {"fullName": "a Zeta"}}, "someBooks": [{"id": "6", "isLong": True}, {"id": "4", "isLong": True}]}},
        ),
        ("{ getAuthorById(id: 3) { longest { id } someBooks { id } } }", {"getAuthorById": {"longest": None, "someBooks": []}}),
        (
            "{ newest { name author { fullName bookCount } } people { id books { id } } missing { id } }",
            {
                "newest": {"name": "al", "author": {"fullName": "a Zeta", "bookCount": 3}},
                "people": [{"id": "3", "books": []}, {"id": "2", "books": [{"id": "2"}, {"id": "4"}, {"id": "6"}]}, {"id": "1", "books": [{"id": "1"}, {"id": "3"}, {"id": "5"}]}],
                "missing": [],
            },
        ),
        (
            "{ streamed { bookCount } gaps { bookCount fullName } counted { annotated books { id } } }",
            {
                "streamed": [{"bookCount": 3}, {"bookCount": 3}, {"bookCount": 0}],
                "gaps": [None, {"bookCount": 3, "fullName": "First Last"}, None],
                "counted": [{"annotated": 7, "books": [{"id": "1"}, {"id": "3"}, {"id": "5"}]}],
            },
        ),
        (
            "{ everyBook { id } getAuthorById(id: 1) { allBooks { isLong author { bookCount } } } }",
            {
                "everyBook": [{"id": str(n)} for n in range(1, 7)],
                "getAuthorById": {"allBooks": [{"isLong": n > 2, "author": {"bookCount": 3}} for n in (0, 2, 4)]},
            },
        ),
        (
            "{ draft { id name n: pageCount isLong author { fullName books { id } bookCount } category { initial books { id } } __typename } }",
            {
                "draft": {
                    "id": None, "name": "Draft", "n": 3, "isLong": True,
                    "author": {"fullName": "New Name", "books": [], "bookCount": 0},
                    "category": {"initial": "C", "books": [{"id": "2"}, {"id": "5"}]},
                    "__typename": "Book",
                },
            },
        ),
        ("{ deleted { id } drafts { name } }", {"deleted": None, "drafts": [{"name": "Draft"}] * 6}),
        (
            'mutation { updateAuthor(id: 1, author: {firstName: "New", lastName: "Name"}) { fullName books { isLong } } }',
            {"updateAuthor": {"fullName": "New Name", "books": [{"isLong": False}, {"isLong": False}, {"isLong": True}]}},
        ),
    ],
)  # fmt: skip
def test_a_field_with_a_resolver_is_answered_from_the_row_everywhere(asked, text, data):
    assert asked(text) == data


def test_a_resolver_costs_one_query_for_any_number_of_rows(asked):
    with CaptureQueriesContext(connection) as queries:
        answer = asked("{ getAllBooks { isLong author { fullName } } }")
    assert len(answer["getAllBooks"]) == 6
    assert len(queries) == 3


@pytest.mark.parametrize("field", ["everyBook", "drafts", "same"])
def test_the_rows_of_a_resolver_are_counted(shelf, executor, field):
    request = GraphQLRequest(f"{{ {field} {{ name }} }}")
    assert "errors" not in executor.answer(request, Context(budget=Budget(6))).body
    with CaptureQueriesContext(connection) as queries:
        body = executor.answer(request, Context(budget=Budget(5))).body
    assert body["errors"][0]["extensions"]["code"] == "RESULT_TOO_LARGE"
    assert [row["sql"] for row in queries if "catalog_book" in row["sql"]] == [
        row["sql"] for row in queries if row["sql"].endswith("LIMIT 6")
    ]


def test_the_text_of_a_row_that_is_answered_again_is_counted(shelf, executor):
    for characters, refused in ((6 * len("Described"), False), (53, True)):
        budget = Budget(100, characters=characters)
        request = GraphQLRequest("{ same { description } }")
        body = executor.answer(request, Context(budget=budget)).body
        assert ("errors" in body) is refused


def test_a_resolver_that_fails_makes_its_field_null_and_undoes_a_change(
    shelf, monkeypatch
):
    def broken(*_: object) -> str:
        raise RuntimeError("secret")

    fields = {Author: {"full_name": graphene.String(resolver=broken)}}
    executor = Executor(schema_with(fields, monkeypatch).graphql_schema)
    read = GraphQLRequest("{ getAuthorById(id: 1) { id fullName } }")
    body = executor.answer(read, Context()).body
    assert body["data"] == {"getAuthorById": {"id": "1", "fullName": None}}
    names = '{firstName: "New", lastName: "Name"}'
    change = f"mutation {{ updateAuthor(id: 1, author: {names}) {{ id fullName }} }}"
    body = executor.answer(GraphQLRequest(change), Context()).body
    assert body["data"] == {"updateAuthor": None}
    assert len(body["errors"]) == 1
    assert models.Author.objects.get(pk=1).first_name == "First"


@pytest.mark.parametrize(
    ("graphene_type", "name", "reason"),
    [
        (Author, "full_name", "Author.fullName cannot be answered: declare resolve_full_name"),
        (Book, "isbn", "Book.isbn cannot be answered"),
        (Query, "newest", "Query.newest cannot be answered: declare a resolver"),
        (BookConnection, "average", "BookConnection.average cannot be answered: give the field"),
        (Mutation, "archive", "Mutation.archive cannot be answered: declare a resolver"),
    ],
)  # fmt: skip
def test_a_field_that_nothing_answers_fails_at_the_start(
    monkeypatch, graphene_type, name, reason
):
    with pytest.raises(ImproperlyConfigured, match=reason):
        schema_with({graphene_type: {name: graphene.String()}}, monkeypatch)


class Row(graphene.Union):  # type: ignore[misc]
    class Meta:
        types = (Book, Author)


class Named(graphene.Interface):  # type: ignore[misc]
    name = graphene.String()


class Shelf(graphene.ObjectType):  # type: ignore[misc]
    rows = graphene.List(Row)


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        (Row, "Query.any cannot be answered: Row is a union or an interface of"),
        (graphene.List(graphene.NonNull(Row)), "Query.any cannot be answered"),
        (Named, "Query.any cannot be answered: Named is"),
        (Shelf, "Shelf.rows cannot be answered"),
    ],
)
def test_a_union_or_interface_of_rows_fails_at_the_start(monkeypatch, output, reason):
    monkeypatch.setitem(vars(Book._meta), "interfaces", (Named,))
    field = graphene.Field(output, resolver=lambda *_: None)
    with pytest.raises(ImproperlyConfigured, match=reason):
        schema_with({Query: {"any": field}}, monkeypatch)
