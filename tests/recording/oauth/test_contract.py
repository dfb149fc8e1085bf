"""The OAuth half of the specification, sentence by sentence."""

from datetime import timedelta

import pytest
from django.utils import timezone
from oauth2_provider.models import AccessToken

from config import errors
from recording.oauth import grants
from tests.clock import travel
from tests.recording.oauth.flows import (
    ISSUER,
    METHODS,
    REDIRECT,
    STATE,
    App,
    refusal,
    register,
)

GRANTS = ["authorization_code", "refresh_token"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.django_db
@pytest.mark.spec(
    "recording",
    "registration: redirect_uris and client_name",
    "registration: none, client_secret_basic and client_secret_post",
    "registration: scope mcp:connect",
    "public clients receive no secret, confidential clients do",
    "POST /oauth/register",
)
def test_only_confidential_clients_receive_a_secret(method):
    metadata = {
        "redirect_uris": [REDIRECT],
        "client_name": "Notebook",
        "token_endpoint_auth_method": method,
        "grant_types": GRANTS,
        "response_types": ["code"],
        "scope": "mcp:connect",
    }
    response = register(metadata | {"software_id": "ignored"})
    assert response.status_code == 201
    assert response["Cache-Control"] == "no-store"
    body = response.json()
    secret = body.pop("client_secret", None)
    assert bool(secret) is (method != "none")
    assert body.pop("client_secret_expires_at", None) == (0 if secret else None)
    assert body.pop("client_id")
    issued = body.pop("client_id_issued_at")
    assert abs(issued - timezone.now().timestamp()) < 60
    assert body == metadata


@pytest.mark.spec(
    "recording",
    "registration: grant types authorization_code, refresh_token",
    "registration: response type code",
)
@pytest.mark.parametrize(
    ("grants", "responses", "registered"),
    [
        ([*GRANTS, "urn:ietf:params:oauth:grant-type:device_code"], ["code"], GRANTS),
        (["implicit", *GRANTS[::-1], "password"], ["token", "code"], GRANTS),
        ([*GRANTS, "urn:ietf:params:oauth:grant-type:jwt-bearer"], ["code"], GRANTS),
        (["client_credentials", *GRANTS[:1] * 2], ["code", "none"], GRANTS[:1]),
        (GRANTS[:1], ["code id_token", "code", "id_token"], GRANTS[:1]),
        (["", *GRANTS], ["code", "CODE", ""], GRANTS),
    ],
)
@pytest.mark.django_db
def test_unsupported_types_are_left_out_and_the_response_says_what_was_registered(
    grants, responses, registered
):
    body = {"redirect_uris": [REDIRECT], "client_name": None, "grant_types": grants}
    body |= {"response_types": responses}
    response = register(body)
    assert response.status_code == 201, response.content
    assert response.json()["grant_types"] == registered
    assert response.json()["response_types"] == ["code"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.spec(
    "recording",
    "an application connects one account by OAuth 2.1 with PKCE",
    "token_type is Bearer",
    "the token response holds scope and email",
    "POST /oauth/token: code exchange",
    "POST /oauth/token: refresh",
)
def test_a_code_and_a_refresh_give_the_token_response_of_the_specification(
    visitor, method
):
    app = App.registered(visitor, method)
    received = app.decide()
    assert (received["state"], received["iss"]) == (STATE, ISSUER)
    exchange = app.exchange(received["code"])
    refresh = app.refresh(exchange.json()["refresh_token"])
    tokens = set()
    for response in (exchange, refresh):
        assert response.status_code == 200
        assert response["Content-Type"] == "application/json"
        assert response["Cache-Control"] == "no-store"
        body = response.json()
        tokens |= {body["access_token"], body["refresh_token"]}
        assert body.pop("access_token").startswith("rec_at_")
        assert body.pop("refresh_token").startswith("rec_rt_")
        assert body == {
            "token_type": "Bearer",
            "expires_in": 3600,
            "scope": "mcp:connect",
            "email": "ada@example.org",
        }
    assert len(tokens) == 4


@pytest.mark.spec("recording", "email may be empty and authorizes nothing")
def test_a_missing_email_is_the_empty_text(app, user):
    user.email = ""
    user.save()
    assert app.tokens()["email"] == ""


@pytest.mark.spec(
    "recording", "an access token is valid for 1 hour, expires_in is 3600"
)
def test_an_access_token_lives_an_hour(app, user):
    token = app.tokens()["access_token"]
    assert grants.authenticate(token) == user
    with travel(timezone.now() + timedelta(minutes=59, seconds=50)):
        assert grants.authenticate(token) == user
    with travel(timezone.now() + timedelta(minutes=60, seconds=1)):
        assert grants.authenticate(token) is None


@pytest.mark.spec("recording", "a refresh token is valid for 90 days")
def test_a_refresh_token_lives_ninety_days_from_each_rotation(app):
    start, first = timezone.now(), app.tokens()["refresh_token"]
    with travel(start + timedelta(days=89, hours=23)):
        second = app.refresh(first)
        assert second.status_code == 200
    with travel(start + timedelta(days=179)):
        third = app.refresh(second.json()["refresh_token"])
        assert third.status_code == 200
    with travel(start + timedelta(days=179 + 90, minutes=1)):
        late = app.refresh(third.json()["refresh_token"])
    assert refusal(late) == "invalid_grant"


def test_a_code_lives_sixty_seconds(app):
    start = timezone.now()
    with travel(start, tick=False):
        code = app.code()
    with travel(start + timedelta(seconds=60), tick=False):
        response = app.exchange(code)
    assert refusal(response) == "invalid_grant"
    assert not AccessToken.objects.exists()


@pytest.mark.parametrize("scope", ["mcp:connect mcp:connect", " mcp:connect ", ""])
def test_a_scope_that_is_repeated_is_granted_once(app, scope):
    tokens = app.tokens(scope=scope)
    assert tokens["scope"] == "mcp:connect"
    again = app.refresh(tokens["refresh_token"], scope=scope)
    assert again.json()["scope"] == "mcp:connect"
    assert set(AccessToken.objects.values_list("scope", flat=True)) == {"mcp:connect"}


def test_no_token_request_widens_the_scope(app):
    code = app.code()
    response = app.exchange(code, {"scope": "mcp:connect admin"})
    assert refusal(response) == "invalid_scope"
    tokens = app.exchange(code).json()
    assert tokens["scope"] == "mcp:connect"
    response = app.refresh(tokens["refresh_token"], scope="admin")
    assert refusal(response) == "invalid_scope"


def test_a_token_without_the_scope_authenticates_nobody(app):
    token = app.tokens()["access_token"]
    AccessToken.objects.update(scope="")
    assert grants.authenticate(token) is None


@pytest.mark.parametrize(
    ("form", "error"),
    [
        ({}, "invalid_request"),
        ({"grant_type": "client_credentials"}, "unsupported_grant_type"),
        ({"grant_type": "authorization_code"}, "invalid_request"),
        ({"grant_type": "refresh_token"}, "invalid_request"),
        ({"grant_type": "refresh_token", "refresh_token": "x"}, "invalid_grant"),
    ],
)
@pytest.mark.spec("recording", "OAuth errors: a top-level error, error_description")
def test_the_token_endpoint_names_the_fault(app, form, error):
    response = app.post("/oauth/token", form)
    assert refusal(response) == error
    assert isinstance(response.json()["error_description"], str)


@pytest.mark.parametrize("missing", ["code", "redirect_uri", "code_verifier"])
def test_a_code_exchange_needs_each_parameter(app, missing):
    response = app.exchange(app.code(), {missing: ""})
    assert refusal(response) == "invalid_request"
    assert missing in response.json()["error_description"]


@pytest.mark.parametrize("changed", ["redirect_uri", "code_verifier", "code"])
def test_a_wrong_value_is_an_invalid_grant_and_leaves_the_code_usable(app, changed):
    code = app.code()
    response = app.exchange(code, {changed: "http://127.0.0.1:4567/other"})
    assert refusal(response) == "invalid_grant"
    assert app.exchange(code).status_code == 200


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("used", METHODS)
@pytest.mark.spec(
    "recording", "POST /oauth/token: the client's registered authentication"
)
def test_only_the_registered_authentication_is_accepted(visitor, method, used):
    app = App.registered(visitor, method)
    code = app.code()
    impostor = App(
        visitor, app.client_id, app.secret or "guess", used, verifier=app.verifier
    )
    response = impostor.exchange(code)
    if used == method:
        assert response.status_code == 200
    else:
        assert refusal(response, 401) == "invalid_client"
        assert response["WWW-Authenticate"].startswith("Basic ")
        assert app.exchange(code).status_code == 200


def test_an_unknown_client_learns_no_more_than_a_wrong_secret(confidential):
    unknown, wrong = (
        App(confidential.visitor, client_id, "x", confidential.method).refresh("x")
        for client_id in ("nobody", confidential.client_id)
    )
    assert unknown.status_code == wrong.status_code == 401
    assert unknown.json() == wrong.json()


def test_basic_with_something_else_in_the_body_is_refused(confidential, app):
    response = confidential.refresh("x", client_secret=confidential.secret)
    assert refusal(response) == "invalid_request"
    response = confidential.refresh("x", client_id=app.client_id)
    assert refusal(response, 401) == "invalid_client"


def test_an_address_beside_the_endpoints_is_an_error_of_oauth(client):
    response = client.get("/oauth/token/more")
    assert refusal(response, 404) == "invalid_request"


@pytest.mark.parametrize(
    ("status", "code"), [(400, "invalid_request"), (500, "server_error")]
)
def test_what_django_refuses_is_an_error_of_oauth(rf, status, code):
    request = rf.post("/oauth/token")
    refuse = errors.bad_request if status == 400 else errors.server_error
    response = refuse(request, *([ValueError()] if status == 400 else []))
    assert response.status_code == status
    assert f'"error": "{code}"'.encode() in response.content
