"""The catalogue in a project of its own: one app, one address, no setting of ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial

import pytest
from django.conf import settings

PROJECT = """
import json, sys
from django.conf import settings

settings.configure(
    SECRET_KEY="x", ROOT_URLCONF="catalog.urls", ALLOWED_HOSTS=["testserver"],
    INSTALLED_APPS=["catalog"], STATIC_URL="/static/",
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True,
      "OPTIONS": {"context_processors": ["django.template.context_processors.request"]}}],
    **json.loads(sys.argv[1]),
)
import django
django.setup()
from django.core.management import call_command
from django.test import Client
call_command("check", fail_level="WARNING", verbosity=0)
call_command("makemigrations", check_changes=True, dry_run=True, verbosity=0)
call_command("migrate", verbosity=0)
file = sys.argv[2]
call_command("export_catalog", file, "--json", stdout=sys.stderr)
call_command("import_catalog", file, "--json", stdout=sys.stderr)
client = Client()
post = lambda text: client.post("/graphql", {"query": text}, "application/json").json()
print(json.dumps({
    "added": post('mutation { addAuthor(author: {firstName: "A", lastName: "B"}) { id } }'),
    "read": post("{ getAllAuthors { id } }"),
    "found": post('{ searchBooks(title: "abc") { id } }'),
    "page": "graphiql" in client.get("/graphql", headers={"accept": "text/html"}).content.decode(),
    "foreign": [name for name in sys.modules if name.split(".")[0] in
                {"config", "recording", "gateway", "webhooks_core"}],
}))
"""


@pytest.fixture
def project(tmp_path):
    """Run a project that has nothing but the catalogue; return what it saw."""
    return partial(run, tmp_path / "books.csv")


def run(file, **options):
    environment = {
        name: value
        for name, value in os.environ.items()
        if name != "DJANGO_SETTINGS_MODULE"
    }
    done = subprocess.run(
        [sys.executable, "-c", PROJECT, json.dumps(options), str(file)],
        cwd=settings.BASE_DIR,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_a_project_needs_the_app_and_its_address_alone(project):
    seen = project(CATALOG_WRITES="open")
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
