"""The ordinary way to add a field works: a resolver, or an attribute of the model."""

from typing import Any

import graphene
import orjson
import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from django.test import RequestFactory
from django.test.utils import CaptureQueriesContext

from catalog import models
from catalog.execution.operations import Executor, GraphQLRequest
from catalog.schema.queries import Query
from catalog.schema.types import Author, Book
from tests.catalog.own_fields import FIELDS, Fields, schema_with


@pytest.fixture
def answered(shelf, monkeypatch):
    """Return the answer to a document of the schema with added fields."""

    def answer(text: str, fields: Fields = FIELDS) -> Any:
        executor = Executor(schema_with(fields, monkeypatch))
        body = executor.answer(GraphQLRequest(text), RequestFactory().get("/")).body
        return orjson.loads(orjson.dumps(body))

    return answer


def broken(*_: object) -> str:
    raise RuntimeError("secret")


@pytest.mark.parametrize(
    ("text", "data"),
    [
        (
            "{ getAllAuthors { fullName pk books { id } } }",
            {
                "getAllAuthors": [
                    {"fullName": "First Last", "pk": 1, "books": [{"id": "1"}, {"id": "3"}, {"id": "5"}]},
                    {"fullName": "a Zeta", "pk": 2, "books": [{"id": "2"}, {"id": "4"}, {"id": "6"}]},
                    {"fullName": "B alpha", "pk": 3, "books": []},
                ]
            },
        ),
        (
            'mutation { updateAuthor(id: 1, author: {firstName: "A", lastName: "B"}) { fullName } }',
            {"updateAuthor": {"fullName": "A B"}},
        ),
        ('{ getBookById(id: 5) { pageCount loudName(mark: "?") } }', {"getBookById": {"pageCount": "4", "loudName": "OMEGA?"}}),
    ],
)  # fmt: skip
def test_a_field_is_answered_from_the_model_instance_of_its_row(answered, text, data):
    assert answered(text) == {"data": data}


def test_a_field_costs_one_statement_for_any_number_of_rows(answered):
    with CaptureQueriesContext(connection) as queries:
        body = answered("{ getAllBooks { loudName author { fullName } } }")
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


def test_a_root_field_that_must_not_be_null_makes_the_data_null(answered):
    fields = {Query: {"broken": graphene.NonNull(graphene.String, resolver=broken)}}
    body = answered("{ getAllBooks { id } broken }", fields)
    assert body["data"] is None
    assert [error["path"] for error in body["errors"]] == [["broken"]]
