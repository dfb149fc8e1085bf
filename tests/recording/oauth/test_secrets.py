"""Codes, tokens, verifiers and client secrets are in no log, no table, no address, no page."""

import io
import logging

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


@pytest.mark.parametrize("method", METHODS)
def test_no_table_holds_a_secret(visitor, method):
    secrets = whole_flow(visitor, method)
    tables = every_column()
    assert "rec_at_" not in tables
    assert not [secret for secret in secrets if secret in tables]


@pytest.mark.parametrize("method", METHODS)
def test_no_log_holds_a_secret_even_at_debug(visitor, method):
    logs.configure({"level": logging.DEBUG, "as_json": True})
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(name)s %(message)s %(args)s"))
    logging.getLogger().addHandler(handler)
    try:
        secrets = whole_flow(visitor, method)
    finally:
        logging.getLogger().removeHandler(handler)
        logs.configure({"level": logging.INFO, "as_json": False})
    written = stream.getvalue()
    assert "/oauth/token" in written
    assert not [secret for secret in secrets if secret in written]


@pytest.mark.parametrize("method", METHODS)
def test_no_admin_page_shows_a_secret(visitor, admin_client, method):
    secrets = whole_flow(visitor, method)
    pages = ""
    for model in ("recording_oauth/application", "oauth2_provider/refreshtoken"):
        response = admin_client.get(f"/admin/{model}/")
        assert response.status_code == 200
        pages += response.content.decode()
        for row in response.context["cl"].queryset:
            detail = admin_client.get(f"/admin/{model}/{row.pk}/change/")
            assert detail.status_code == 200
            pages += detail.content.decode()
    assert not [secret for secret in secrets if secret in pages]
    assert "random_sha256$" not in pages
