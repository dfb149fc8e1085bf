"""How tests ask the catalogue."""

from __future__ import annotations

import json

import pytest


@pytest.fixture
def ask(client, db):
    """POST an operation; return the decoded answer."""

    def post(query, /, *, headers=None, **variables):
        response = client.post(
            "/graphql",
            json.dumps({"query": query, "variables": variables}),
            content_type="application/json",
            headers=headers or {},
        )
        assert response.status_code == 200, response.content
        return response.json()

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
