"""OAuth without its database or cache, and other rare cases."""

from __future__ import annotations

import pytest
from django.core.exceptions import ValidationError
from django.core.handlers.wsgi import WSGIRequest
from django.db import OperationalError
from django.http.request import UnreadablePostError
from django.test import Client, RequestFactory
from redis.exceptions import ConnectionError as RedisConnectionError

from recording.accounts.hashers import RandomSecretHasher
from recording.oauth import parameters
from recording.oauth.errors import InvalidRequestError, PayloadTooLargeError
from recording.oauth.models import Application, AuthMethod
from recording.oauth.views import api
from tests.recording.factories import ApplicationFactory
from tests.recording.oauth.flows import FORM, refusal


@pytest.mark.parametrize(
    ("failure", "status", "code"),
    [
        (
            OperationalError("could not connect: password=x"),
            503,
            "temporarily_unavailable",
        ),
        (RedisConnectionError("redis://secret@host"), 503, "temporarily_unavailable"),
        (ZeroDivisionError("secret"), 500, "server_error"),
    ],
)
def test_an_outage_is_reported_in_the_contracts_shape(
    monkeypatch, failure, status, code
):
    def fail(*args: object) -> None:
        raise failure

    monkeypatch.setattr(api, "_authenticated", fail)
    response = Client().post("/oauth/token", b"", FORM)
    assert refusal(response, status) == code
    assert ("Retry-After" in response) is (status == 503)
    assert "secret" not in response.content.decode()
    assert "password" not in response.content.decode()


def test_a_body_without_a_declared_length_is_measured():
    request = RequestFactory().post("/", b"a" * 70_000, FORM)
    del request.META["CONTENT_LENGTH"]
    with pytest.raises(PayloadTooLargeError):
        parameters.body_of(request)


@pytest.mark.parametrize("digits", [6, 19, 5000])
def test_a_declared_length_of_any_size_is_refused(digits):
    request = RequestFactory().post("/", b"", FORM)
    request.META["CONTENT_LENGTH"] = "9" * digits
    with pytest.raises(PayloadTooLargeError):
        parameters.body_of(request)


def test_a_body_that_ends_early_is_an_invalid_request(monkeypatch):
    def read(*_: object) -> bytes:
        raise UnreadablePostError("gone")

    monkeypatch.setattr(WSGIRequest, "read", read)
    response = Client().post("/oauth/token", b"token=x", FORM)
    assert refusal(response) == "invalid_request"
    assert response.json()["error_description"] == "The body ended early."


def test_too_many_parameters_of_an_address_are_refused(settings):
    settings.DATA_UPLOAD_MAX_NUMBER_FIELDS = 3
    with pytest.raises(InvalidRequestError):
        parameters.read_query(RequestFactory().get("/?a=1&b=1&c=1&d=1"))


def test_the_hash_of_a_client_secret_is_salted_and_never_shown():
    hasher = RandomSecretHasher()
    encoded, again = (hasher.encode("x" * 64, hasher.salt()) for _ in range(2))
    assert encoded != again
    assert hasher.verify("x" * 64, encoded)
    assert not hasher.verify("y" * 64, encoded)
    assert encoded.rpartition("$")[2] not in str(hasher.safe_summary(encoded))


def test_a_confidential_application_has_a_method_with_a_secret(db):
    application = ApplicationFactory.build(
        client_type=Application.CLIENT_CONFIDENTIAL,
        token_endpoint_auth_method=AuthMethod.NONE,
    )
    with pytest.raises(ValidationError, match="secret"):
        application.full_clean()


def test_a_wrong_method_at_the_consent_page_gets_the_right_ones(visitor):
    response = visitor.put("/oauth/authorize")
    assert response.status_code == 405
    assert response["Allow"] == "GET, HEAD, POST"


def test_a_request_without_state_gets_none_back(app):
    assert "state" not in app.decide("deny", state=None)
