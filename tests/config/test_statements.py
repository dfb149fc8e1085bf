"""A statement of a web process that takes too long: 503 in the shape of whoever was asked."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.db import connection, connections
from django.test import Client

from recording.accounts import personal_tokens
from tests.factories import UserFactory
from webhooks_core.database import sessions

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        "sqlite" in settings.DATABASES["default"]["ENGINE"],
        reason="SQLite has no limit of this kind",
    ),
]

SHOW = (
    "from django.db import connection as c\n"
    "with c.cursor() as cursor:\n"
    "    for limit in ('statement_timeout', 'idle_in_transaction_session_timeout'):\n"
    "        cursor.execute(f'SHOW {limit}')\n"
    "        print(cursor.fetchone()[0])"
)
IN_A_WEB_PROCESS = f"import config.wsgi\n{SHOW}"
ELSEWHERE = f"import django\ndjango.setup()\n{SHOW}"


@pytest.fixture
def web() -> Iterator[Client]:
    """A client of a web process whose statements may take a second."""
    options = connections.settings["default"]["OPTIONS"]
    before = dict(options)
    sessions.limit(statement_timeout=1000)
    connection.close()
    yield Client(raise_request_exception=False)
    options.clear()
    options.update(before)
    connection.close()


@contextmanager
def held(table: str) -> Iterator[None]:
    """Let every statement on a table wait."""
    parameters = connection.get_connection_params()
    known = ("host", "port", "user", "password", "dbname")
    names = {name: parameters[name] for name in known if parameters.get(name)}
    with psycopg.connect(**names) as other:
        other.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        yield
        other.rollback()


def of_an_account(web: Client) -> Any:
    user = UserFactory.create(username="u")
    bearer = f"Bearer {personal_tokens.create(user=user, name='', days=1).text}"
    return web.get("/v1/webhooks", headers={"Authorization": bearer})


def of_a_tenant(web: Client) -> Any:
    caller = {"X-Tenant-Id": "acme", "X-Principal-Id": "ann"}
    return web.get("/v1/webhooks/subscriptions", headers=caller)


def of_the_catalogue(web: Client) -> Any:
    asked = {"query": "{ getAllAuthors { id } }"}
    return web.post("/graphql", asked, content_type="application/json")


def of_oauth(web: Client) -> Any:
    form = "grant_type=refresh_token&refresh_token=x&client_id=c"
    form_type = "application/x-www-form-urlencoded"
    return web.post("/oauth/token", form, content_type=form_type)


def of_a_page(web: Client) -> Any:
    web.force_login(UserFactory.create(superuser=True, username="root"))
    return web.get("/admin/webhooks_core/event/")


@pytest.mark.parametrize(
    ("ask", "tables", "words"),
    [
        (of_an_account, "webhooks_core_endpoint", '"code":"unavailable"'),
        (of_a_tenant, "webhooks_core_delivery, webhooks_core_endpoint", '{"detail":'),
        (of_the_catalogue, "catalog_author", '"code":"INTERNAL_SERVER_ERROR"'),
        (of_oauth, "recording_oauth_application", '"error":"temporarily_unavailable"'),
        (of_a_page, "webhooks_core_event", "Try again"),
    ],
)
def test_every_product_answers_503_in_its_format(web, ask, tables, words):
    with held(tables):
        answer = ask(web)
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    assert words in answer.content.decode().replace('": ', '":')


@pytest.mark.parametrize(
    ("program", "limits"), [(IN_A_WEB_PROCESS, "7s\n7s\n"), (ELSEWHERE, "0\n0\n")]
)
def test_web_processes_alone_have_the_limits(program, limits):
    database = settings.DATABASES["default"]
    address = f"{database['USER']}:{database['PASSWORD']}@{database['HOST']}:{database['PORT'] or 5432}"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PATH": os.environ["PATH"], "DJANGO_SETTINGS_MODULE": "config.settings"}
        | {"WEB_STATEMENT_TIMEOUT_S": "7"}
        | {
            "DATABASE_URL": f"postgres://{address}/{database['NAME']}?options=-c%20x.y%3D1"
        },
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == limits
