from io import StringIO
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import call_command
from graphene_django.settings import graphene_settings
from graphql import (
    GraphQLInputObjectType,
    GraphQLObjectType,
    build_schema,
    find_breaking_changes,
)

CONTRACT = build_schema((Path(__file__).parent / "contract.graphql").read_text())
SCHEMA = graphene_settings.SCHEMA.graphql_schema
TYPES = [
    *("Query", "Mutation", "Book", "Author", "Category"),
    *("BookInput", "AuthorInput", "CategoryInput"),
]
BOOKS = (
    "books",
    "[Book]",
    [
        *(("first", "Int"), ("after", "ID"), ("title", "String")),
        *(("authorId", "Int"), ("categoryId", "Int")),
    ],
)
pytestmark = pytest.mark.spec("catalog", "schema")


def shape(graphql_type):
    """Return the fields of a type with their types and arguments, in order."""
    assert isinstance(graphql_type, GraphQLObjectType | GraphQLInputObjectType)
    return [
        (
            name,
            str(field.type),
            [
                (key, str(argument.type))
                for key, argument in getattr(field, "args", {}).items()
            ],
        )
        for name, field in graphql_type.fields.items()
    ]


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.spec(
    "catalog",
    "output fields are nullable",
    "Book fields",
    "Author fields and bookCount",
    "Category fields",
    "inputs: required and optional fields",
    "ids are ID in queries, Int in inputs and getAuthorById",
    "categories are neither updated nor deleted",
)
def test_a_type_has_the_fields_of_the_contract_and_query_a_page_of_books(name):
    added = [BOOKS] if name == "Query" else []
    assert shape(SCHEMA.type_map[name]) == shape(CONTRACT.type_map[name]) + added


def test_nothing_of_the_contract_is_broken():
    assert find_breaking_changes(CONTRACT, SCHEMA) == []


def test_the_published_schema_is_what_graphql_schema_prints():
    printed = StringIO()
    call_command("graphql_schema", stdout=printed)
    published = settings.BASE_DIR / "docs" / "api" / "catalog.graphql"
    assert printed.getvalue() == published.read_text()


def test_every_field_and_argument_is_described():
    fields = [
        (name, field)
        for kind in TYPES
        for name, field in SCHEMA.type_map[kind].fields.items()
    ]
    for _, field in list(fields):
        fields += getattr(field, "args", {}).items()
    assert [name for name, each in fields if not each.description] == []
