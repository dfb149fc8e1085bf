"""The one shape of the gateway's errors, whoever raises them."""

from __future__ import annotations

import re

import pytest
from django.core.exceptions import RequestDataTooBig, TooManyFieldsSent
from django.db import InterfaceError, OperationalError
from django.http import Http404
from django.http.request import UnreadablePostError
from redis.exceptions import ConnectionError as RedisConnectionError
from rest_framework import exceptions

from gateway import errors
from tests.gateway.client import INGEST, PATH, Api
from webhooks_core.web.errors import response
from webhooks_core.web.parsers import PayloadTooLarge

pytestmark = pytest.mark.django_db

OURS = (
    "/v1/ingest",
    PATH,
    "/v1/chat",
    "/v1/embeddings",
    "/v1/usage",
    "/v2",
)


@pytest.mark.parametrize(
    "path",
    [f"{prefix}{rest}" for prefix in OURS for rest in ("/no/such/thing", "/")],
)
def test_an_unknown_address_below_ours_answers_in_our_shape(client, path):
    answer = client.get(path)
    assert answer.status_code == 404
    assert answer.json() == {"detail": "There is nothing at this address."}


def test_the_address_of_an_unnamed_model_is_chats_and_asks_who_calls(client):
    answer = client.get("/v1/models/")
    assert (answer.status_code, list(answer.json())) == (401, ["error"])


@pytest.mark.parametrize("path", ["/v1/nothing", "/v1/webhooks/x/y", "/v1/ingested"])
def test_the_rest_of_v1_is_not_ours(client, path):
    assert list(client.get(path).json()) == ["error"]


def test_a_bad_host_is_400_in_our_shape(client):
    answer = client.get(PATH, headers={"Host": "evil.example"})
    assert (answer.status_code, list(answer.json())) == (400, ["detail"])


def test_what_is_unforeseen_is_500_and_tells_nothing(acme, monkeypatch, caplog):
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("hush")

    monkeypatch.setattr("gateway.subscriptions.Subscriptions.all", fail)
    answer = acme.call("GET", PATH)
    assert answer.status_code == 500
    assert answer.json() == {"detail": "Something went wrong on our side."}
    assert "hush" in caplog.text
    assert answer["X-Request-Id"]


@pytest.mark.parametrize(
    "error", [OperationalError, InterfaceError, RedisConnectionError]
)
def test_a_service_that_is_away_is_503_with_retry_after(
    acme, monkeypatch, error, caplog
):
    def fail(*_: object, **__: object) -> None:
        raise error("hush")

    monkeypatch.setattr("gateway.subscriptions.Subscriptions.all", fail)
    answer = acme.call("GET", PATH)
    assert (answer.status_code, list(answer.json())) == (503, ["detail"])
    assert int(answer["Retry-After"]) > 0
    assert "hush" not in answer.content.decode()
    assert "dependency unavailable" in caplog.text


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (Http404(), 404),
        (exceptions.NotFound(), 404),
        (exceptions.MethodNotAllowed("PUT"), 405),
        (exceptions.ParseError("why"), 400),
        (exceptions.UnsupportedMediaType("x"), 415),
        (exceptions.Throttled(wait=3.2), 429),
        (PayloadTooLarge("why"), 413),
        (RequestDataTooBig(), 413),
        (TooManyFieldsSent(), 400),
        (UnreadablePostError(), 400),
        (errors.ConflictError("why"), 409),
    ],
)
def test_foreign_exceptions_become_ours(error, status):
    translated = errors.HANDLER.translate(error)
    assert translated is not None
    assert translated.status_code == status
    assert list(translated.body) == ["detail"]
    assert translated.detail
    assert errors.HANDLER.translate(RuntimeError()) is None


def test_a_throttled_caller_is_told_whole_seconds():
    translated = errors.HANDLER.translate(exceptions.Throttled(wait=3.2))
    assert translated is not None
    assert translated.headers == {"Retry-After": "4"}


@pytest.mark.parametrize(("status", "kind"), errors.ERRORS.items())
def test_every_kind_has_a_status_and_words_of_its_own(status, kind):
    error = kind()
    assert response(error).status_code == error.status_code == status
    assert re.fullmatch(r"[A-Z].+[.>]", error.detail)
    assert "\n" not in error.detail


def test_a_detail_may_be_any_json():
    error = errors.BadRequestError(["one", "two"])
    assert response(error).content == b'{"detail": ["one", "two"]}'


def test_the_order_of_checks_is_method_identity_object_body(acme):
    stranger = Api(key="nonsense")
    absent = f"{PATH}/whsub_{'0' * 26}"
    assert stranger.call("PUT", absent, b"{").status_code == 405
    assert stranger.call("PATCH", absent, b"{").status_code == 401
    assert (
        acme.call("PATCH", absent, b"{", content_type="text/plain").status_code == 404
    )
    address = f"{PATH}/{acme.create()['id']}"
    assert (
        acme.call("PATCH", address, b"{", content_type="text/plain").status_code == 415
    )
    assert acme.call("PATCH", address, b"{").status_code == 400
    assert (
        acme.call("DELETE", address, b"{", content_type="text/plain").status_code == 204
    )
    assert stranger.call("POST", INGEST, b"{").status_code == 401


def test_accept_is_ignored(acme):
    for accept in ("text/html", "application/xml", "nonsense"):
        answer = acme.call("GET", f"{PATH}?format=api", headers={"Accept": accept})
        assert (answer.status_code, answer["Content-Type"]) == (200, "application/json")
