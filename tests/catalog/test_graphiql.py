"""The operations that GraphiQL begins with."""

from __future__ import annotations

import json

import pytest

from catalog.graphiql import EXAMPLES


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each["query"].split()[1])
def test_an_example_is_answered(ask, shelf, settings, example):
    settings.CATALOG_WRITES = "open"
    variables = json.loads(example.get("variables", "{}"))
    answer = ask(example["query"], **variables)
    assert "errors" not in answer
    assert all(value is not None for value in answer["data"].values())


def test_the_page_has_the_examples_as_data(client, db):
    page = client.get("/graphql", headers={"Accept": "text/html"}).content.decode()
    data = page.split('type="application/json">')[1].split("</script>")[0]
    tabs = json.loads(data)
    assert [tab["query"] for tab in tabs] == [each["query"] for each in EXAMPLES]
    assert {tab["headers"] for tab in tabs} == {'{\n  "Authorization": "Bearer "\n}'}
