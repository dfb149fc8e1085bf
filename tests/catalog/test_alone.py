"""The catalogue in a project of its own: one app, one address, no setting of ours."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests import own_project

pytestmark = pytest.mark.slow

PROGRAM = """
import json
call_command("export_catalog", "books.csv", "--json", stdout=sys.stderr)
call_command("import_catalog", "books.csv", "--json", stdout=sys.stderr)
client = Client()
post = lambda text: client.post("/graphql", {"query": text}, "application/json").json()
print(json.dumps({
    "added": post('mutation { addAuthor(author: {firstName: "A", lastName: "B"}) { id } }'),
    "read": post("{ getAllAuthors { id } }"),
    "found": post('{ searchBooks(title: "abc") { id } }'),
    "page": "graphiql" in client.get("/graphql", headers={"accept": "text/html"}).content.decode(),
    "foreign": [name for name, module in sys.modules.items() if module and
                name.split(".")[0] in {"config", "recording", "gateway", "webhooks_core"}],
}))
"""


@pytest.fixture
def project(tmp_path):
    """Run a project that has nothing but the catalogue; return what it saw."""

    def run(own: str = "") -> dict[str, Any]:
        settings = f'{own_project.BARE}\nINSTALLED_APPS = ["catalog"]\n{own}'
        urls = "from catalog.urls import urlpatterns"
        seen = own_project.run(tmp_path, settings=settings, urls=urls, program=PROGRAM)
        return dict(json.loads(seen.splitlines()[-1]))

    return run


def test_a_project_needs_the_app_and_its_address_alone(project):
    seen = project('CATALOG_WRITES = "open"')
    assert seen == {
        "added": {"data": {"addAuthor": {"id": "1"}}},
        "read": {"data": {"getAllAuthors": [{"id": "1"}]}},
        "found": {"data": {"searchBooks": []}},
        "page": True,
        "foreign": [],
    }


def test_a_project_that_says_nothing_lets_nobody_change_anything(project):
    seen = project()
    [error] = seen["added"]["errors"]
    assert error["extensions"]["code"] == "UNAUTHENTICATED"
    assert seen["read"] == {"data": {"getAllAuthors": []}}
