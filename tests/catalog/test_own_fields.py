"""Fields that users add as in graphene-django: a resolver, or an attribute of the model."""

from __future__ import annotations

from typing import Any

import graphene
import orjson
import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from django.test import RequestFactory
from django.test.utils import CaptureQueriesContext
from graphene_django import DjangoListField

from catalog import models
from catalog.execution import roles
from catalog.execution.operations import Executor, GraphQLRequest
from catalog.schema.mutations import Mutation
from catalog.schema.queries import Query
from catalog.schema.types import Author, Book


def schema_with(fields: dict[Any, dict[str, Any]], patch: pytest.MonkeyPatch) -> Any:
    """Return the catalogue's schema with added fields."""
    for graphene_type, added in fields.items():
        for name, field in added.items():
            is_field = isinstance(field, graphene.Field)
            mounted = field if is_field else graphene.Field.mounted(field)
            patch.setitem(graphene_type._meta.fields, name, mounted)
    schema = graphene.Schema(query=Query, mutation=Mutation).graphql_schema
    roles.check(schema)
    return schema


@pytest.fixture
def answered(shelf, monkeypatch):
    """Return the answer to a document of the schema with these fields."""

    def answer(text: str, fields: dict[Any, dict[str, Any]]) -> Any:
        executor = Executor(schema_with(fields, monkeypatch))
        body = executor.answer(GraphQLRequest(text), RequestFactory().get("/")).body
        return orjson.loads(orjson.dumps(body))

    return answer


def broken(*_: object) -> str:
    raise RuntimeError("secret")


FULL_NAME = {"full_name": graphene.String(resolver=lambda row, _: str(row))}
TITLES = {Book: {"title": graphene.String(resolver=lambda row, _: row.name.title())}}


@pytest.mark.parametrize(
    ("text", "fields", "data"),
    [
        (
            "{ getAllAuthors { fullName books { id } } }",
            {Author: FULL_NAME},
            {
                "getAllAuthors": [
                    {"fullName": "First Last", "books": [{"id": "1"}, {"id": "3"}, {"id": "5"}]},
                    {"fullName": "a Zeta", "books": [{"id": "2"}, {"id": "4"}, {"id": "6"}]},
                    {"fullName": "B alpha", "books": []},
                ]
            },
        ),
        (
            "{ books(first: 2) { author { fullName } category { name } } }",
            {Author: FULL_NAME},
            {
                "books": [
                    {"author": {"fullName": "First Last"}, "category": None},
                    {"author": {"fullName": "a Zeta"}, "category": {"name": "Category 0"}},
                ]
            },
        ),
        (
            "{ getAuthorById(id: 1) { all { title } } }",
            {Author: {"all": DjangoListField(Book, source="books")}, **TITLES},
            {"getAuthorById": {"all": [{"title": "Beta"}, {"title": "Alphabet"}, {"title": "Omega"}]}},
        ),
        (
            "{ newest { name author { bookCount } } people { bookCount } }",
            {
                Query: {
                    "newest": graphene.Field(Book, resolver=lambda *_: models.Book.objects.last()),
                    "people": graphene.List(Author, resolver=lambda *_: models.Author.objects.iterator()),
                }
            },
            {
                "newest": {"name": "al", "author": {"bookCount": 3}},
                "people": [{"bookCount": 3}, {"bookCount": 3}, {"bookCount": 0}],
            },
        ),
        (
            'mutation { updateAuthor(id: 1, author: {firstName: "A", lastName: "B"}) { fullName } }',
            {Author: FULL_NAME},
            {"updateAuthor": {"fullName": "A B"}},
        ),
        ("{ getBookById(id: 5) { nameFolded pk } }", {Book: {"name_folded": graphene.String(), "pk": graphene.Int()}}, {"getBookById": {"nameFolded": "omega", "pk": 5}}),
    ],
)  # fmt: skip
def test_a_field_is_answered_from_the_model_instance_of_its_row(
    answered, text, fields, data
):
    models.Category.objects.filter(pk=1).update(name="Category 0")
    assert answered(text, fields) == {"data": data}


def test_a_field_costs_one_statement_for_any_number_of_rows(answered):
    text = "{ getAllBooks { title author { fullName } } }"
    with CaptureQueriesContext(connection) as queries:
        body = answered(text, {Author: FULL_NAME, **TITLES})
    assert len(body["data"]["getAllBooks"]) == 6
    assert len(queries) == 3


def test_a_field_that_fails_is_null_and_undoes_a_change(answered):
    fields = {Author: {"full_name": graphene.String(resolver=broken)}}
    body = answered("{ getAllAuthors { id fullName } }", fields)
    assert body["data"]["getAllAuthors"][0] == {"id": "1", "fullName": None}
    [error] = body["errors"]
    assert error["path"] == ["getAllAuthors", "fullName"]
    assert error["extensions"]["code"] == "INTERNAL_SERVER_ERROR"
    names = '{firstName: "New", lastName: "Name"}'
    change = f"mutation {{ updateAuthor(id: 1, author: {names}) {{ id fullName }} }}"
    body = answered(change, fields)
    assert body["data"] == {"updateAuthor": None}
    assert models.Author.objects.get(pk=1).first_name == "First"


@pytest.mark.parametrize(
    "fields",
    [
        {Author: {"full_name": graphene.NonNull(graphene.String, resolver=broken)}},
        {Author: {"full_name": graphene.NonNull(graphene.String)}},
        {Book: {"category": graphene.NonNull(graphene.String)}},
    ],
)
def test_a_field_that_may_fail_must_be_nullable(monkeypatch, fields):
    with pytest.raises(ImproperlyConfigured, match="must be nullable"):
        schema_with(fields, monkeypatch)
