"""How tests ask the catalogue."""

import pytest
from graphene_django.utils.testing import graphql_query

from tests.catalog.factories import (
    AuthorFactory,
    BookFactory,
    CategoryFactory,
    number_on,
)


@pytest.fixture
def ask(client, db):
    """POST an operation; return the decoded answer."""

    def post(query, /, *, headers=None, **variables):
        response = graphql_query(
            query, variables=variables, headers=headers, client=client
        )
        assert response.status_code == 200, response.content
        return response.json()

    return post


@pytest.fixture
def send(client, db):
    """POST parameters, or a body as it is; return the response."""

    def post(body, content_type="application/json", **headers):
        return client.post("/graphql", body, content_type, headers=headers)

    return post


@pytest.fixture
def refused(ask):
    """POST an operation that must fail with one error; return the error's extensions."""

    def post(query, /, **variables):
        answer = ask(query, **variables)
        [error] = answer["errors"]
        assert all(value is None for value in (answer.get("data") or {}).values())
        return error["extensions"]

    return post


@pytest.fixture
def shelf(db):
    """Three authors, two categories and six books, numbered from 1."""
    people = [("First", "Last"), ("a", "Zeta"), ("B", "alpha")]
    authors = [
        AuthorFactory.create(id=key, first_name=first, last_name=last)
        for key, (first, last) in enumerate(people, start=1)
    ]
    CategoryFactory.create(id=1, description="Described")
    CategoryFactory.create(id=2)
    for place, name in enumerate(["Beta", "alpha", "Alphabet", "ALPHA", "omega", "al"]):
        BookFactory.create(
            id=place + 1,
            name=name,
            author=authors[place % 2],
            category_id=[None, 1, 2][place % 3],
            page_count=place,
        )
    number_on()
