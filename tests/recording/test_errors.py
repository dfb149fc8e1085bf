"""The shape of every error, and the order in which faults are told."""

from __future__ import annotations

import os
import subprocess
import sys

import orjson
import pytest
from django.conf import settings
from django.core.exceptions import RequestDataTooBig, TooManyFieldsSent
from django.db import InterfaceError, OperationalError
from django.http import HttpResponse
from django.http.request import UnreadablePostError
from django.test import Client
from redis.exceptions import ConnectionError as RedisConnectionError

from config import errors as config_errors
from recording import authentication, errors
from tests.recording.conftest import URL, error_of
from webhooks_core.models import Endpoint
from webhooks_core.web.parsers import StrictJSONParser

pytestmark = pytest.mark.django_db

ABSENT = "ep_" + "0" * 26
ROUTES = {
    "webhooks": {"GET", "HEAD", "POST"},
    f"webhooks/{ABSENT}": {"PATCH", "DELETE"},
    f"webhooks/{ABSENT}/test": {"POST"},
    f"webhooks/{ABSENT}/deliveries": {"GET", "HEAD"},
    "webhook-events/samples": {"GET", "HEAD"},
}
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "TRACE", "PROPFIND"]
WRONG = [
    (path, method)
    for path, allowed in ROUTES.items()
    for method in METHODS
    if method not in allowed
]


@pytest.mark.parametrize(("path", "method"), WRONG)
@pytest.mark.parametrize("header", ["", "Bearer nonsense"])
@pytest.mark.spec("recording", "wrong method 405 method_not_allowed, before 401")
def test_a_wrong_method_is_405_and_names_the_right_ones(api, path, method, header):
    response = api.send(method, path, headers={"Authorization": header})
    assert response.status_code == 405
    allowed = {name.strip() for name in response["Allow"].split(",")}
    assert allowed == ROUTES[path] | {"OPTIONS"}
    if method != "HEAD":
        error_of(response, 405, "method_not_allowed")


@pytest.mark.parametrize("path", ROUTES)
def test_options_lists_the_methods_without_a_token(path, client):
    response = client.options(f"/v1/{path}")
    assert (response.status_code, response.content) == (204, b"")
    allowed = {name.strip() for name in response["Allow"].split(",")}
    assert allowed == ROUTES[path] | {"OPTIONS"}


def test_head_responds_as_get_without_a_body(api):
    api.create()
    response, head = api.get("webhooks"), api.send("HEAD", "webhooks")
    assert (head.status_code, head.content) == (200, b"")
    assert head["Content-Type"] == response["Content-Type"]
    anonymous = api.send("HEAD", "webhooks", headers={"Authorization": ""})
    assert (anonymous.status_code, anonymous.content) == (401, b"")


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "/nothing",
        "/webhooks/",
        "/webhooks//test",
        "/webhooks/x/test/",
        "/webhooks/x/y",
        "/webhook-events",
        "/webhook-events/samples/",
        "/%00",
        "/%ff",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "OPTIONS"])
@pytest.mark.spec("recording", "unknown address under /v1 404")
@pytest.mark.spec(
    "recording",
    "recording data is read-only through the interface",
    "webhook paths carry /v1, OAuth paths no version",
)
def test_an_unknown_address_is_404_with_or_without_a_token(api, path, method):
    for header in (f"Bearer {api.token}", ""):
        response = api.client.generic(
            method, f"/v1{path}", headers={"Authorization": header}
        )
        error_of(response, 404, "not_found")


@pytest.mark.parametrize("path", ["/v10/webhooks", "/v1webhooks", "/nothing"])
def test_addresses_outside_the_api_keep_django_s_own_page(client, path):
    response = client.get(path)
    assert response.status_code == 404
    assert response["Content-Type"].startswith("text/html")


@pytest.mark.spec("recording", "order: 401 before object, media type and body")
@pytest.mark.parametrize(
    ("method", "path"),
    [(method, path) for path, methods in ROUTES.items() for method in sorted(methods)],
)
def test_a_missing_token_is_reported_before_anything_else(api, method, path):
    response = api.send(
        method,
        path + "?page=x&limit=x",
        b"[[[",
        content_type="text/plain",
        headers={"Authorization": ""},
    )
    assert response.status_code == 401
    if method != "HEAD":
        error_of(response, 401, "unauthorized")


@pytest.mark.spec("recording", "order: object 404 before 415 and malformed body")
def test_an_absent_subscription_is_reported_before_a_wrong_body(api):
    path = f"webhooks/{ABSENT}"
    error_of(api.patch(path, b"[[[", content_type="text/plain"), 404, "not_found")
    error_of(api.patch(path, b"[[["), 404, "not_found")
    error_of(api.patch(path, b"x" * 70_000), 404, "not_found")
    error_of(api.get(f"{path}/deliveries?page=0"), 404, "not_found")


@pytest.mark.spec("recording", "order: 415 before malformed body, body before fields")
def test_the_media_type_is_reported_before_the_body_and_the_body_before_fields(api):
    response = api.post("webhooks", b"[[[", content_type="text/plain")
    error_of(response, 415, "unsupported_media_type")
    assert "JSON" in error_of(api.post("webhooks", b'{"url": '), 400, "bad_request")


@pytest.mark.parametrize("accept", ["text/html", "application/xml", "x", "*/*;q=0"])
@pytest.mark.spec("recording", "Accept is ignored")
def test_accept_and_format_do_not_matter(api, accept):
    headers = {"Accept": accept, "Authorization": f"Bearer {api.token}"}
    response = api.get("webhooks?format=xml", headers=headers)
    assert (response.status_code, response["Content-Type"]) == (200, "application/json")


# ── Our own faults ──────────────────────────────────────────────────────────────────


def fail_with(monkeypatch, error):
    def fail(*, token):
        raise error

    monkeypatch.setattr(
        authentication, "TOKEN_CHECKERS", (lambda token: fail(token=token),)
    )


@pytest.mark.parametrize(
    "error",
    [
        OperationalError("could not connect to server at 10.0.0.5"),
        InterfaceError("connection already closed"),
        RedisConnectionError("Error 111 connecting to 10.0.0.5"),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.spec("recording", "503 unavailable with Retry-After")
def test_a_needed_service_that_is_away_is_503_and_logged(
    api, monkeypatch, caplog, error
):
    fail_with(monkeypatch, error)
    response = api.get("webhooks")
    message = error_of(response, 503, "unavailable")
    assert int(response["Retry-After"]) > 0
    assert "dependency unavailable" in caplog.text
    assert "10.0.0.5" not in message


@pytest.mark.spec("recording", "500 internal, no detail leaks")
def test_the_unforeseen_is_500_and_leaks_nothing(api, monkeypatch):
    fail_with(monkeypatch, RuntimeError("the secret is whsec_abc"))
    response = api.get("webhooks")
    message = error_of(response, 500, "internal")
    assert b"whsec_abc" not in response.content
    assert message == errors.InternalError.__doc__
    assert response["X-Request-Id"]


@pytest.mark.parametrize("kind", [OperationalError, RuntimeError])
def test_a_failure_in_the_middle_of_a_write_leaves_nothing(api, monkeypatch, kind):
    def fail(*_args: object, **_options: object) -> None:
        raise kind("boom")

    monkeypatch.setattr("webhooks_core.endpoints.EndpointQueue.objects.create", fail)
    assert api.post("webhooks", {"url": URL}).status_code in {500, 503}
    assert not Endpoint.objects.exists()


def test_a_crash_before_the_view_has_the_shape_too(monkeypatch, settings):
    settings.MIDDLEWARE = ["tests.recording.test_errors.Broken"]
    client = Client(raise_request_exception=False)
    for error, status, code in (
        (RuntimeError("x"), 500, "internal"),
        (OperationalError("x"), 503, "unavailable"),
    ):
        monkeypatch.setattr(Broken, "error", error)
        error_of(client.get("/v1/webhooks"), status, code)
    monkeypatch.setattr(Broken, "error", RuntimeError("x"))
    assert client.get("/nothing")["Content-Type"].startswith("text/html")


class Broken:
    """A middleware that fails."""

    error: Exception = RuntimeError("x")

    def __init__(self, get_response) -> None:
        pass

    def __call__(self, request) -> None:
        raise self.error


def test_a_host_that_is_not_ours_is_400(client):
    response = client.get("/v1/webhooks", headers={"Host": "evil.example"})
    error_of(response, 400, "bad_request")
    assert b"evil" not in response.content
    other = client.get("/nothing", headers={"Host": "evil.example"})
    assert other.status_code == 400
    assert other["Content-Type"].startswith("text/html")


def test_too_many_query_parameters_are_400(api):
    path = "webhook-events/samples?" + "&".join("a=1" for _ in range(1500))
    error_of(api.get(path), 400, "bad_request")


def test_a_client_that_goes_away_while_sending_is_400(api, monkeypatch):
    def fail(*_args: object) -> None:
        raise UnreadablePostError("reset by peer")

    monkeypatch.setattr(StrictJSONParser, "parse", fail)
    error_of(api.post("webhooks", {"url": URL}), 400, "bad_request")


def test_the_longest_prefix_owns_an_address(monkeypatch):
    def other(*_args: object) -> HttpResponse:
        return HttpResponse()

    monkeypatch.setitem(config_errors.OWNERS, "/v1/webhooks/subscriptions", other)
    assert config_errors.owner("/v1/webhooks/subscriptions") is other
    assert config_errors.owner("/v1/webhooks/subscriptions/x/test") is other
    assert (
        config_errors.owner("/v1/webhooks/subscriptionsx")
        == errors.HANDLER.response_for
    )
    assert config_errors.owner("/v1") == errors.HANDLER.response_for
    assert config_errors.owner("/") is None


@pytest.mark.spec("recording", "errors: HTTP status and code")
def test_the_codes_are_those_of_the_spec():
    assert {kind().code: kind().status_code for kind in errors.ERRORS.values()} == {
        "bad_request": 400,
        "unauthorized": 401,
        "not_found": 404,
        "method_not_allowed": 405,
        "payload_too_large": 413,
        "unsupported_media_type": 415,
        "too_many_requests": 429,
        "internal": 500,
        "unavailable": 503,
    }


def test_too_large_a_form_elsewhere_is_reported_in_the_shape(rf):
    response = config_errors.bad_request(rf.post("/v1/x"), RequestDataTooBig())
    assert response.status_code == 413
    response = config_errors.bad_request(rf.post("/v1/x"), TooManyFieldsSent())
    assert response.status_code == 400


ASK = """
from django.core.wsgi import get_wsgi_application
get_wsgi_application()
from django.conf import settings
from django.test import Client
from webhooks_core.web import bearer as tokens
response = Client(raise_request_exception=False).get(
    "/v1/webhooks",
    headers={"Authorization": "Bearer " + tokens.make("rec_pat_"), "Host": "localhost"},
)
print(response.status_code, response["Retry-After"], response.content.decode())
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "url", ["postgres://nobody:hidden@127.0.0.1:1/none", "sqlite:////nowhere/none.db"]
)
@pytest.mark.spec("recording", "503 unavailable with Retry-After")
def test_an_unavailable_database_is_503(url):
    process = subprocess.run(
        [sys.executable, "-c", ASK],
        env={"PATH": os.environ["PATH"], "DATABASE_URL": url}
        | {"DJANGO_SETTINGS_MODULE": "config.settings"},
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
        check=True,
    )
    status, retry_after, body = process.stdout.split(maxsplit=2)
    assert (status, retry_after) == ("503", "5")
    assert orjson.loads(body)["error"]["code"] == "unavailable"
    assert "hidden" not in process.stdout + process.stderr
