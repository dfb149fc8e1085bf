"""The log on a terminal: what strangers send is shown, and controls nothing."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable, Iterator
from urllib.parse import quote

import pytest
import structlog
from django.db import DatabaseError, OperationalError, connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import Client
from redis.exceptions import RedisError

from config.operations import logs
from recording.accounts import personal_tokens
from tests.factories import UserFactory
from tests.hostile import CONTROLS, is_printable
from webhooks_core.database.outages import reason


@pytest.fixture
def console() -> Iterator[Callable[[], str]]:
    """Configure the log of a local instance; return a function that reads what it wrote since."""
    logs.configure({"level": logging.INFO, "as_json": False})
    [handler] = [h for h in logging.getLogger().handlers if h.name == "stderr"]
    assert isinstance(handler, logging.StreamHandler)
    stream = io.StringIO()
    handler.setStream(stream)

    def read() -> str:
        written = stream.getvalue()
        stream.seek(0)
        stream.truncate()
        return written

    yield read
    logs.configure({"level": logging.INFO, "as_json": False})


@pytest.mark.parametrize("hostile", CONTROLS)
def test_a_request_controls_no_terminal_and_adds_no_line(client, console, hostile):
    for request in (
        {"path": f"/{quote(hostile)}", "method": "GET"},
        {"path": f"/healthz?{quote(hostile)}={hostile}", "method": "GET"},
        {"path": "/healthz", "method": f"GET{hostile}"},
        {"path": "/healthz", "method": "GET", "HTTP_HOST": f"a{hostile}.example"},
        {"path": "/healthz", "method": "GET", "HTTP_X_REQUEST_ID": hostile},
    ):
        client.generic(**request)
        written = console()
        assert written.count("\n") == 1, written
        assert hostile not in written
        assert is_printable(written)


@pytest.mark.parametrize("hostile", ["\n", *CONTROLS])
def test_no_value_of_a_record_controls_a_terminal(console, hostile):
    log, standard = structlog.stdlib.get_logger("own"), logging.getLogger("other")
    log.warning("event", text=hostile, values=[hostile], error=ValueError(hostile))
    log.warning("event %s", hostile)
    standard.warning("a message with %s", hostile)
    standard.warning(hostile)
    written = console()
    assert written.count("\n") == 4
    assert is_printable(written)


def test_a_traceback_keeps_its_lines_and_its_message_controls_nothing(console):
    try:
        int("\x1b[2J")
    except ValueError:
        structlog.stdlib.get_logger("own").exception("failed")
    written = console()
    assert "\nTraceback (most recent call last):\n" in written
    assert written.endswith("'\\x1b[2J'\n")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/v1/webhooks", {"url": "https://example.com/"}),
        ("POST", "/v1/ingest", {"text": "a"}),
        ("POST", "/oauth/register", {"redirect_uris": ["http://127.0.0.1/"]}),
        ("POST", "/graphql", {"query": "{ getAllBooks { id } }"}),
        ("GET", "/admin/", None),
    ],
)
def test_each_request_in_an_outage_has_one_line_that_says_why(
    console, monkeypatch, method, path, body
):
    def fail(*_: object) -> None:
        raise OperationalError("database or disk is full\nHINT: none")

    client = Client(raise_request_exception=False)
    client.cookies["sessionid"] = "a" * 32
    headers = {"X-Tenant-Id": "acme", "X-Principal-Id": "ada"}
    if path == "/v1/webhooks":
        token = personal_tokens.create(user=UserFactory.create(), days=1).text
        headers = {"Authorization": f"Bearer {token}"}
    monkeypatch.setattr(BaseDatabaseWrapper, "cursor", fail)
    response = client.generic(
        method, path, json.dumps(body), "application/json", headers=headers
    )
    assert response.status_code == 503
    written = console()
    [why] = [line for line in written.splitlines() if "[error    ]" in line]
    assert "error='OperationalError: database or disk is full'" in why
    assert "Traceback" not in written


@pytest.mark.django_db
def test_a_statement_that_is_wrong_keeps_its_traceback(console):
    with pytest.raises(DatabaseError) as raised, connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM nowhere")
    structlog.stdlib.get_logger("own").error("failed", exc_info=raised.value)
    assert "\nTraceback (most recent call last):\n" in console()


@pytest.mark.parametrize("state", logs.STATEMENT_STATES)
def test_a_statement_that_was_cancelled_keeps_its_traceback(console, state):
    cause = Exception("cancelled")
    cause.sqlstate = state  # type: ignore[attr-defined]
    with pytest.raises(OperationalError) as raised:
        raise OperationalError("cancelled") from cause
    structlog.stdlib.get_logger("own").error("failed", exc_info=raised.value)
    assert "\nTraceback (most recent call last):\n" in console()


def test_the_message_of_a_broker_is_no_reason_in_the_log():
    assert (
        reason(RedisError("unknown command HELLO, args AUTH hunter2")) == "RedisError"
    )
