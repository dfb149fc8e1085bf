"""Fields that are added in the ordinary way of graphene: a resolver, or an attribute of the model."""

from __future__ import annotations

from typing import Any

import graphene
import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from django.db.models import Value
from django.test.utils import CaptureQueriesContext

from catalog import models
from catalog.execution.context import Context
from catalog.execution.operations import Executor, GraphQLRequest
from catalog.schema import contract
from catalog.schema.connections import Query
from catalog.schema.mutations import Mutation
from catalog.schema.types import Author, Book, Category

pytestmark = pytest.mark.django_db


def full_name(author: models.Author, _info: object, upper: bool = False) -> str:
    name = f"{author.first_name} {author.last_name}"
    return name.upper() if upper else name


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
    },
    Book: {
        "name_folded": graphene.String(),
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


@pytest.fixture
def asked(shelf, monkeypatch):
    """Return the data of a query to a schema with added fields."""
    executor = Executor(schema_with(FIELDS, monkeypatch).graphql_schema)

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
            '{ searchBooks(title: "omega") { author { fullName } isLong nameFolded } }',
            {"searchBooks": [{"author": {"fullName": "First Last"}, "isLong": True, "nameFolded": "omega"}]},
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
    ],
)  # fmt: skip
def test_a_field_that_nothing_answers_fails_at_the_start(
    monkeypatch, graphene_type, name, reason
):
    with pytest.raises(ImproperlyConfigured, match=reason):
        schema_with({graphene_type: {name: graphene.String()}}, monkeypatch)
