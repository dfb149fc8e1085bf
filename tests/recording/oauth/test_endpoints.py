"""What the endpoints and the API do with a connection, with scripts of other sites, in an outage."""

import pytest
from django.core.exceptions import ValidationError
from django.core.handlers.wsgi import WSGIRequest
from django.db import OperationalError
from django.http.request import UnreadablePostError
from django.test import Client, RequestFactory
from django.utils import timezone
from redis.exceptions import ConnectionError as RedisConnectionError

from recording import token_memory
from recording.accounts.hashers import RandomSecretHasher
from recording.accounts.owners import owner_id
from recording.oauth import grants, parameters
from recording.oauth.errors import OAuthError
from recording.oauth.models import Application, AuthMethod
from tests.clock import travel
from tests.recording.factories import ApplicationFactory
from tests.recording.oauth.flows import FORM, ISSUER, App, refusal
from tests.webhooks_core.factories import EndpointFactory

CARRIERS = ["client_secret_basic", "client_secret_post"]


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


# ── The API behind a token ──────────────────────────────────────────────────────────


@pytest.mark.spec("recording", "protected requests carry Authorization: Bearer")
@pytest.mark.spec("recording", "one account per token")
def test_an_access_token_opens_the_api_for_its_account_alone(app):
    tokens = app.tokens()
    headers = bearer(tokens["access_token"])
    assert Client().get("/v1/webhooks", headers=headers).json() == {"items": []}
    refresh = bearer(tokens["refresh_token"])
    assert Client().get("/v1/webhooks", headers=refresh).status_code == 401


def test_an_authentication_costs_one_query_in_some_seconds(
    app, user, django_assert_num_queries
):
    token = app.tokens()["access_token"]
    EndpointFactory.create_batch(
        2, profile="recording", owner=owner_id(user), event_types=()
    )
    Client().get("/v1/webhooks", headers=bearer(token))  # notes the first use
    token_memory.forget()
    with travel(timezone.now(), tick=False):
        for queries in (2, 1):  # who is it, and the list
            with django_assert_num_queries(queries):
                response = Client().get("/v1/webhooks", headers=bearer(token))
    assert len(response.json()["items"]) == 2


# ── Resource indicators (RFC 8707) ──────────────────────────────────────────────────


@pytest.mark.parametrize("path", ["", "/", "/mcp"])
def test_a_token_for_any_address_of_the_server_is_good_everywhere(app, user, path):
    code = app.code(resource=f"{ISSUER}{path}")
    tokens = app.exchange(code, {"resource": f"{ISSUER}/mcp"}).json()
    assert grants.authenticate(tokens["access_token"]) == user
    headers = bearer(tokens["access_token"])
    assert Client().get("/v1/webhooks", headers=headers).status_code == 200
    again = app.refresh(tokens["refresh_token"], resource=ISSUER)
    assert again.status_code == 200


@pytest.mark.parametrize(
    "resource",
    [
        *("https://other.example", f"{ISSUER}.evil", f"{ISSUER}/v1/webhooks"),
        *(f"{ISSUER}/mcp/", f"{ISSUER}/mcp#x", ISSUER.replace("//", "//user@")),
        *(ISSUER.replace("http", "https"), ISSUER.upper(), "//[", "mcp"),
    ],
)
def test_a_foreign_resource_is_an_invalid_target(app, resource):
    assert app.decide(resource=resource)["error"] == "invalid_target"
    assert refusal(app.exchange(app.code(), {"resource": resource})) == "invalid_target"


# ── Revocation (RFC 7009) ───────────────────────────────────────────────────────────


@pytest.mark.parametrize("token", ["access_token", "refresh_token"])
def test_revoking_either_token_ends_the_connection(app, token):
    tokens = app.tokens()
    response = app.revoke(tokens[token], token_type_hint="nonsense")
    assert (response.status_code, response.content) == (200, b"")
    assert refusal(app.refresh(tokens["refresh_token"])) == "invalid_grant"
    headers = bearer(tokens["access_token"])
    response = Client().get("/v1/webhooks", headers=headers)
    assert response.json()["error"]["code"] == "unauthorized"
    assert 'error="invalid_token"' in response["WWW-Authenticate"]


def test_nobody_revokes_the_tokens_of_another_client(app, visitor):
    tokens = app.tokens()
    assert app.revoke("rec_at_unknown").status_code == 200
    assert App.registered(visitor).revoke(tokens["access_token"]).status_code == 200
    assert grants.authenticate(tokens["access_token"])


@pytest.mark.parametrize("method", CARRIERS)
@pytest.mark.parametrize("used", CARRIERS)
def test_a_revocation_accepts_the_secret_whichever_method_carries_it(
    visitor, method, used
):
    app = App.registered(visitor, method)
    token = app.tokens()["access_token"]
    for secret, carrier in (("guess", used), ("", "none")):
        other = App(visitor, app.client_id, secret, carrier)
        assert refusal(other.revoke(token), 401) == "invalid_client"
    both = app.revoke(token, client_secret=app.secret)
    assert (both.status_code == 400) is (method == "client_secret_basic")
    token = app.tokens()["access_token"]
    owner = App(visitor, app.client_id, app.secret, used)
    assert owner.revoke(token).status_code == 200
    assert grants.authenticate(token) is None


# ── Scripts of other sites ──────────────────────────────────────────────────────────

ELSEWHERE = {"origin": "https://notebook.example"}
OPEN = [
    *("/.well-known/oauth-authorization-server", "/oauth/register", "/oauth/token"),
    *("/oauth/revoke", "/v1/webhooks", "/v1/webhooks/ep_x", "/mcp"),
]
CLOSED = [
    *("/", "/oauth/authorize", "/accounts/login/", "/admin/"),
    *("/v1/webhooks/subscriptions", "/v2/chat/completions"),
]


@pytest.mark.django_db
@pytest.mark.parametrize("path", OPEN)
def test_scripts_of_any_site_may_call_what_takes_no_cookie(path):
    asks = ELSEWHERE | {
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization, mcp-protocol-version",
    }
    for response in (
        Client().options(path, headers=asks),
        Client().generic("PUT", path, b"{", headers=ELSEWHERE),
    ):
        assert response["Access-Control-Allow-Origin"] == "*"
        assert "Access-Control-Allow-Credentials" not in response
    assert "WWW-Authenticate" in response["Access-Control-Expose-Headers"]


@pytest.mark.django_db
@pytest.mark.parametrize("path", CLOSED)
def test_pages_are_closed_to_scripts_of_other_sites(path):
    for method in ("GET", "OPTIONS"):
        response = Client().generic(method, path, headers=ELSEWHERE)
        assert "Access-Control-Allow-Origin" not in response


# ── Outages and rare cases ──────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("failure", "status", "code"),
    [
        (OperationalError("could not connect: secret"), 503, "temporarily_unavailable"),
        (RedisConnectionError("redis://secret@host"), 503, "temporarily_unavailable"),
        (ZeroDivisionError("secret"), 500, "server_error"),
    ],
)
def test_an_outage_is_reported_in_the_contracts_shape(
    monkeypatch, failure, status, code
):
    def fail(*_: object) -> None:
        raise failure

    monkeypatch.setattr(parameters, "read_form", fail)
    client = Client(raise_request_exception=False)
    response = client.post("/oauth/token", b"", FORM)
    assert refusal(response, status) == code
    assert ("Retry-After" in response) is (status == 503)
    assert "secret" not in response.content.decode()


@pytest.mark.parametrize("length", [None, "9" * 6, "9" * 5000])
def test_a_body_is_measured_whatever_its_declared_length(length):
    request = RequestFactory().post("/", b"a" * 70_000, FORM)
    del request.META["CONTENT_LENGTH"]
    if length:
        request.META["CONTENT_LENGTH"] = length
    with pytest.raises(OAuthError, match="64 KiB"):
        parameters.body_of(request)


def test_a_body_that_ends_early_is_an_invalid_request(monkeypatch):
    def read(*_: object) -> bytes:
        raise UnreadablePostError("gone")

    monkeypatch.setattr(WSGIRequest, "read", read)
    response = Client().post("/oauth/token", b"token=x", FORM)
    assert refusal(response) == "invalid_request"


def test_too_many_parameters_of_an_address_are_refused(settings):
    settings.DATA_UPLOAD_MAX_NUMBER_FIELDS = 3
    with pytest.raises(OAuthError):
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
