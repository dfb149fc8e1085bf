from __future__ import annotations

from pathlib import Path

import pytest
from django.conf import settings
from graphql import (
    GraphQLInputObjectType,
    GraphQLObjectType,
    build_schema,
    find_breaking_changes,
)

from catalog.schema.contract import schema, sdl

CONTRACT = build_schema((Path(__file__).parent / "contract.graphql").read_text())
TYPES = [
    "Query",
    "Mutation",
    "Book",
    "Author",
    "Category",
    "BookInput",
    "AuthorInput",
    "CategoryInput",
]
pytestmark = pytest.mark.spec("catalog", "schema")


def shape(kind):
    """Return the fields of a type with their types and arguments, in order."""
    assert isinstance(kind, GraphQLObjectType | GraphQLInputObjectType)
    return [
        (
            name,
            str(field.type),
            [
                (key, str(value.type))
                for key, value in getattr(field, "args", {}).items()
            ],
        )
        for name, field in kind.fields.items()
    ]


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.spec(
    "catalog",
    "output fields are nullable",
    "Book fields",
    "Author fields and bookCount",
    "Category fields",
)
def test_a_type_begins_with_the_fields_of_the_contract_in_its_order(name):
    expected = shape(CONTRACT.type_map[name])
    assert shape(schema.type_map[name])[: len(expected)] == expected


@pytest.mark.parametrize("name", [name for name in TYPES if name != "Query"])
@pytest.mark.spec(
    "catalog",
    "inputs: required and optional fields",
    "ids are ID in queries, Int in inputs and getAuthorById",
    "categories are neither updated nor deleted",
)
def test_only_query_has_more_fields_than_the_contract(name):
    assert shape(schema.type_map[name]) == shape(CONTRACT.type_map[name])


def test_nothing_of_the_contract_is_broken():
    assert find_breaking_changes(CONTRACT, schema) == []


def test_the_published_schema_is_the_schema():
    published = settings.BASE_DIR / "docs" / "api" / "catalog.graphql"
    assert published.read_text() == sdl()
