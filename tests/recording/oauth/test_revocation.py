"""Revocation (RFC 7009): which tokens end, and who may end them."""

from __future__ import annotations

import pytest

from recording.oauth import access
from tests.recording.oauth.flows import App, refusal

CARRIERS = ["client_secret_basic", "client_secret_post"]


@pytest.mark.parametrize("token", ["access_token", "refresh_token"])
def test_revoking_either_token_ends_the_connection(app, token):
    tokens = app.tokens()
    response = app.revoke(tokens[token], token_type_hint="nonsense")
    assert (response.status_code, response.content) == (200, b"")
    assert access.authenticate(tokens["access_token"]) is None
    assert app.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"


def test_revoking_an_unknown_token_is_no_error(app):
    assert app.revoke("rec_at_unknown").status_code == 200


def test_nobody_revokes_the_tokens_of_another_client(app, visitor):
    tokens = app.tokens()
    assert App.registered(visitor).revoke(tokens["access_token"]).status_code == 200
    assert access.authenticate(tokens["access_token"])


@pytest.mark.parametrize("method", CARRIERS)
@pytest.mark.parametrize("used", CARRIERS)
def test_a_revocation_accepts_the_secret_whichever_method_carries_it(
    visitor, method, used
):
    app = App.registered(visitor, method)
    token = app.tokens()["access_token"]
    assert App(visitor, app.client_id, "guess", used).revoke(token).status_code == 401
    assert App(visitor, app.client_id).revoke(token).status_code == 401
    assert access.authenticate(token)
    assert (
        App(visitor, app.client_id, app.secret, used).revoke(token).status_code == 200
    )
    assert access.authenticate(token) is None


@pytest.mark.parametrize("used", CARRIERS)
def test_a_client_without_a_secret_revokes_without_one(app, used):
    token = app.tokens()["access_token"]
    impostor = App(app.visitor, app.client_id, "guess", used)
    assert impostor.revoke(token).json()["error"] == "invalid_client"
    assert access.authenticate(token)


def test_a_revocation_with_two_secrets_is_refused(confidential):
    token = confidential.tokens()["access_token"]
    response = confidential.revoke(token, client_secret=confidential.secret)
    assert refusal(response) == "invalid_request"
    assert access.authenticate(token)
