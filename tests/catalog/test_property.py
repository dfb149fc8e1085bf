"""Rows that are read column by column answer as graphql-core does with model instances."""

from collections import Counter
from operator import attrgetter
from typing import Any

import orjson
import pytest
from django.db import transaction
from django.test import RequestFactory
from graphql import ExecutionContext, get_nullable_type, is_list_type

from catalog.execution.operations import Execution, Executor, GraphQLRequest
from catalog.execution.readings import Reading
from catalog.models import Author, Book, Category
from catalog.schema import schema
from tests.catalog.documents import Document, Writer
from tests.catalog.factories import number_on
from tests.catalog.own_fields import FIELDS, schema_with


class Naive(Execution):
    """Resolves each field of each row from its model instance."""

    def complete_value(
        self, return_type: Any, field_nodes: Any, info: Any, path: Any, result: Any
    ) -> Any:
        if isinstance(result, Reading):
            sort, result = result.sort, result.queryset()
            if sort:
                result = sorted(result, key=attrgetter(*sort))
            if not is_list_type(get_nullable_type(return_type)):
                result = result.first()
        return ExecutionContext.complete_value(
            self, return_type, field_nodes, info, path, result
        )


def answered(executor: Executor, document: Document) -> Any:
    """Return data, errors and the rows afterwards; then roll back."""
    call = GraphQLRequest(document.text, None, document.variables)
    number_on()  # a rollback keeps the sequences
    with transaction.atomic():
        body = executor.answer(call, RequestFactory().post("/graphql")).body
        rows = [list(model.objects.values_list()) for model in (Author, Category, Book)]
        transaction.set_rollback(True)
    data = orjson.dumps(body.get("data"))  # with the order of keys
    errors = [
        (error.get("path"), error["message"], error["extensions"])
        for error in body.get("errors", [])
    ]
    return data, errors, rows


@pytest.mark.parametrize(
    "seeds",
    [range(25), pytest.param(range(1_000, 1_400), marks=pytest.mark.slow)],
    ids=["few", "many"],
)
def test_any_document_is_answered_as_with_naive_resolvers(
    shelf, settings, monkeypatch, seeds
):
    settings.CATALOG_WRITES = "open"
    outcomes: Counter[str] = Counter()
    for tested in (schema.graphql_schema, schema_with(FIELDS, monkeypatch)):
        by_columns, naive = Executor(tested), Executor(tested, Naive)
        for seed in seeds:
            document = Writer(tested, seed).document()
            data, errors, rows = answered(by_columns, document)
            outcomes.update(extensions["code"] for *_, extensions in errors)
            outcomes["executed"] += data != b"null"
            assert (data, errors, rows) == answered(naive, document), (seed, document)
    assert outcomes["executed"] > len(seeds)
    assert {"BAD_USER_INPUT", "NOT_FOUND"} <= outcomes.keys()
