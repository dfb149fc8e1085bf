"""Codes, tokens, verifiers and client secrets are in no log, no table, no address, no page."""

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connection
from django.test import Client

from config.operations import logs
from tests.recording.oauth.flows import METHODS, App


def whole_flow(visitor: Client, method: str) -> list[str]:
    """Register, consent, exchange, refresh, fail, revoke; returns every secret of it."""
    app = App.registered(visitor, method)
    code = app.code()
    app.exchange(code, {"code_verifier": "wrong" * 10})
    tokens = app.exchange(code).json()
    fresh = app.refresh(tokens["refresh_token"]).json()
    other = app.code()
    app.exchange(code)
    app.refresh(fresh["refresh_token"])
    app.revoke(app.tokens()["access_token"])
    names = ("access_token", "refresh_token")
    pairs = [pair[name] for pair in (tokens, fresh) for name in names]
    return [*pairs, code, other, app.verifier, *filter(None, [app.secret])]


def every_column() -> str:
    """Return the text of every row of every table."""
    texts = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            name = connection.ops.quote_name(table)
            cursor.execute(f"SELECT * FROM {name}")  # noqa: S608 - our own tables
            texts += [str(row) for row in cursor.fetchall()]
    return "\n".join(texts)


@contextmanager
def everything_logged() -> Iterator[io.StringIO]:
    """Log at the level DEBUG to a text."""
    logs.configure({"level": logging.DEBUG, "as_json": True})
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(name)s %(message)s %(args)s"))
    logging.getLogger().addHandler(handler)
    try:
        yield stream
    finally:
        logging.getLogger().removeHandler(handler)
        logs.configure({"level": logging.INFO, "as_json": False})


def pages_of_the_admin(client: Client) -> str:
    """Return the text of the lists and of every row's page."""
    pages = []
    for model in ("recording_oauth/application", "oauth2_provider/refreshtoken"):
        pages.append(response := client.get(f"/admin/{model}/"))
        rows = response.context["cl"].queryset
        pages += [client.get(f"/admin/{model}/{row.pk}/change/") for row in rows]
    assert {page.status_code for page in pages} == {200}
    return "".join(page.content.decode() for page in pages)


@pytest.mark.parametrize("method", METHODS)
def test_no_table_no_log_and_no_page_holds_a_secret(visitor, admin_client, method):
    with everything_logged() as stream:
        secrets = whole_flow(visitor, method)
    tables, written = every_column(), stream.getvalue()
    pages = pages_of_the_admin(admin_client)
    assert "rec_at_" not in tables
    assert "/oauth/token" in written
    assert "random_sha256$" not in pages
    for text in (tables, written, pages):
        assert not [secret for secret in secrets if secret in text]
