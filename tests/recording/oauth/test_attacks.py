"""Attacks of RFC 9700 and malformed requests, each with what must happen instead."""

from typing import Any
from urllib.parse import quote, urlencode

import pytest
from django.test import Client
from oauth2_provider.models import AccessToken

from recording.oauth import grants
from recording.oauth.models import Application, Grant
from recording.oauth.validator import Validator
from tests.recording.accounts.browsers import logged_in
from tests.recording.oauth.flows import (
    FORM,
    ISSUER,
    REDIRECT,
    STATE,
    App,
    basic,
    query_of,
    refusal,
    register,
)

JSON = "application/json"

# ── Codes (RFC 9700 sections 4.2 to 4.5) ────────────────────────────────────────────


@pytest.mark.parametrize("rotations", [0, 1])
def test_a_replayed_code_ends_the_connection_that_it_opened(app, rotations):
    code = app.code()
    tokens = app.exchange(code).json()
    for _ in range(rotations):
        tokens = app.refresh(tokens["refresh_token"]).json()
    other_pair = app.tokens()
    assert refusal(app.exchange(code)) == "invalid_grant"
    assert grants.authenticate(tokens["access_token"]) is None
    assert refusal(app.refresh(tokens["refresh_token"])) == "invalid_grant"
    assert grants.authenticate(other_pair["access_token"])


def test_a_code_belongs_to_its_client(app, visitor):
    code = app.code()
    thief = App.registered(visitor)
    thief.verifier = app.verifier
    assert refusal(thief.exchange(code)) == "invalid_grant"
    tokens = app.exchange(code).json()
    assert refusal(thief.exchange(code)) == "invalid_grant"  # and revokes nothing
    assert grants.authenticate(tokens["access_token"])


@pytest.mark.parametrize(
    "changes",
    [
        *({"code_challenge": each} for each in (None, "", "short", "a" * 44)),
        *({"code_challenge": each} for each in ("a" * 42 + "=", "ä" * 43)),
        *({"code_challenge_method": each} for each in (None, "plain", "s256")),
    ],
)
@pytest.mark.spec("recording", "PKCE with S256 is required")
def test_pkce_cannot_be_downgraded(app, changes):
    received = app.decide(**changes)
    assert received["error"] == "invalid_request"
    assert not Grant.objects.exists()


@pytest.mark.parametrize("verifier", ["x", "a" * 42, "a" * 129, "ä" * 43, "a" * 43])
def test_a_wrong_verifier_gets_nothing(app, verifier):
    response = app.exchange(app.code(), {"code_verifier": verifier})
    assert refusal(response) == "invalid_grant"
    assert not AccessToken.objects.exists()


def test_a_short_verifier_is_refused_even_if_it_matches(app):
    app.verifier = "short"
    assert refusal(app.exchange(app.code())) == "invalid_grant"


# ── Mix-up, response types, redirects (RFC 9700 sections 4.4, 4.11, 4.12) ───────────


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"response_type": "code token"}, "unsupported_response_type"),
        ({"response_type": None}, "invalid_request"),
        ({"scope": "admin"}, "invalid_scope"),
    ],
)
@pytest.mark.spec("recording", "GET /oauth/authorize")
def test_every_error_names_the_issuer_and_returns_the_state(app, changes, error):
    stranger = Client().get(app.address(**changes))
    assert stranger["Location"].startswith("/accounts/login/?next=/oauth/authorize")
    response = app.visitor.get(app.address(**changes))
    assert response.status_code == 303
    received = query_of(response["Location"])
    assert received["error"] == error
    assert (received["iss"], received["state"]) == (ISSUER, STATE)


def test_a_denial_leaves_nothing_and_adds_no_state(app):
    assert "state" not in app.decide("deny", state=None)
    assert not Grant.objects.exists()


@pytest.mark.parametrize("decision", ["allow", "deny"])
def test_a_decision_without_a_login_is_no_decision(app, decision):
    response = Client().post(app.address(), {decision: "yes"})
    assert response["Location"].startswith("/accounts/login")
    assert not Grant.objects.exists()


@pytest.mark.parametrize("form", [{}, {"allow": "yes", "deny": "yes"}, {"ok": "1"}])
def test_a_form_without_one_decision_is_refused(app, form):
    assert app.visitor.post(app.address(), form).status_code == 400
    assert not Grant.objects.exists()


# ── Consent (RFC 9700 sections 4.7, 4.16) ───────────────────────────────────────────


def test_consent_needs_the_csrf_token(app, user):
    strict = logged_in(user, enforce_csrf_checks=True)
    response = strict.post(app.address(), {"allow": "yes"})
    assert response.status_code == 403
    assert not Grant.objects.exists()


def test_consent_is_always_asked(app):
    app.tokens()
    query = "&allow=yes&approval_prompt=auto&prompt=none&response_mode=fragment"
    response = app.visitor.get(app.address() + query)
    assert response.status_code == 200
    assert not Grant.objects.filter(token_family=None).exists()
    location = app.visitor.post(app.address() + query, {"allow": "yes"})["Location"]
    assert "#" not in location


def test_the_form_cannot_change_what_was_asked(app, visitor):
    other = App.registered(visitor, redirect="http://127.0.0.1:9/evil")
    form = other.authorize_query() | {"allow": "yes"}
    response = visitor.post(app.address(), form)
    assert response["Location"].startswith(REDIRECT)
    assert Grant.objects.get().application.client_id == app.client_id


def test_the_consent_page_cannot_be_framed_or_kept(app):
    response = app.visitor.get(app.address())
    assert response["X-Frame-Options"] == "DENY"
    policy = response["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in policy
    assert "form-action" not in policy  # the callback may lead anywhere
    assert "no-store" in response["Cache-Control"]
    assert response["Referrer-Policy"] == "same-origin"


# ── Accounts that were switched off ─────────────────────────────────────────────────


def test_an_inactive_user_has_no_access_no_refresh_and_no_code(app, user):
    tokens, code = app.tokens(), app.code()
    user.is_active = False
    user.save()
    assert grants.authenticate(tokens["access_token"]) is None
    assert refusal(app.refresh(tokens["refresh_token"])) == "invalid_grant"
    assert refusal(app.exchange(code)) == "invalid_grant"
    assert app.visitor.get(app.address()).status_code == 302


def test_a_deleted_user_has_no_exchange(app, user, monkeypatch):
    code, validate = app.code(), Validator.confirm_redirect_uri

    def delete_meanwhile(*args: Any, **kwargs: Any) -> bool:
        user.delete()
        return bool(validate(*args, **kwargs))

    monkeypatch.setattr(Validator, "confirm_redirect_uri", delete_meanwhile)
    assert refusal(app.exchange(code)) == "invalid_grant"
    assert not AccessToken.objects.exists()


# ── Malformed requests: no 500, and nothing changes ─────────────────────────────────


@pytest.mark.parametrize("name", ["code", "client_id", "grant_type", "redirect_uri"])
def test_a_malformed_token_request_changes_nothing(app, name):
    code = app.code()
    form = app.exchange_form(code) | {"client_id": app.client_id}
    repeated = f"{urlencode(form)}&{name}=x"
    assert refusal(Client().post("/oauth/token", repeated, FORM)) == "invalid_request"
    in_address = Client().post("/oauth/token?" + urlencode(form), "", FORM)
    assert refusal(in_address) == "invalid_request"
    as_json = Client().post("/oauth/token", form, JSON)
    assert refusal(as_json) == "invalid_request"
    assert app.exchange(code).status_code == 200


@pytest.mark.parametrize("name", ["client_id", "redirect_uri", "state", "scope"])
def test_a_repeated_parameter_of_the_address_goes_nowhere(app, name):
    assert app.visitor.get(app.address() + f"&{name}=x").status_code == 400


def body_with(**members: str) -> bytes:
    named = "".join(f', "{name}": {value}' for name, value in members.items())
    return b'{"redirect_uris": ["http://127.0.0.1/"]' + named.encode() + b"}"


BODIES: list[bytes] = [
    *(b"", b"{", b"[]", b"null", b'"text"', b"[" * 65_000, b"\xff\xfe"),
    b'{"redirect_uris":' + b"[" * 10_000,
    b'{"redirect_uris": "\\u0000"}',
    b'{"redirect_uris": ["http://127.0.0.1/\\ud800"]}',
    b'{"redirect_uris": []}',
    b'{"redirect_uris": {"a": 1}}',
    *(
        body_with(grant_types=value)
        for value in ('["password"]', '["refresh_token"]', '"x"', "[{}]", "[]")
    ),
    *(body_with(response_types=value) for value in ('[["code"]]', '["token"]', "[]")),
    *(body_with(scope=value) for value in ('"admin"', '["mcp:connect"]')),
    *(
        body_with(token_endpoint_auth_method=value)
        for value in ('"private_key_jwt"', "{}")
    ),
    body_with(client_name="1e999"),
]


@pytest.mark.parametrize(
    "body", BODIES, ids=[str(number) for number in range(len(BODIES))]
)
@pytest.mark.django_db
def test_a_hostile_registration_changes_nothing(body):
    errors = {"invalid_client_metadata", "invalid_redirect_uri"}
    assert refusal(register(body)) in errors
    assert not Application.objects.exists()


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/oauth/register", JSON), ("/oauth/token", FORM), ("/oauth/revoke", FORM)],
)
@pytest.mark.django_db
def test_an_oversized_body_is_refused(path, kind):
    for size in (65_537, 3_000_000):
        assert refusal(Client().post(path, b"[" * size, kind), 413) == "invalid_request"


@pytest.mark.parametrize("path", ["/oauth/token", "/oauth/revoke"])
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"grant_type=authorization_code&code=%00&client_id=%00&redirect_uri=%00&code_verifier=%00",
        b"client_id=a%00b&token=x&grant_type=refresh_token&refresh_token=x",
        b"client_id=%ff%fe&token=%ff&grant_type=refresh_token&refresh_token=%ff",
        b"%zz=%zz&grant_type=%zz&client_id=%zz&token=%zz",
        b"grant_type=urn:ietf:params:oauth:grant-type:device_code&client_id=x&token=x",
        b"client_id=" + b"a" * 5000,
        b"&".join(b"a%d=1" % number for number in range(2000)),
        b"[" * 60_000,
        "client_id=ünïcödé&token=ß&grant_type=refresh_token&refresh_token=ß".encode(),
    ],
)
@pytest.mark.django_db
def test_a_hostile_form_is_an_error_of_the_client(path, body):
    response = Client().post(path, body, FORM)
    assert response.status_code in {400, 401}
    errors = {"invalid_request", "invalid_client", "unsupported_grant_type"}
    assert response.json()["error"] in errors


@pytest.mark.parametrize(
    "value",
    [
        *("Basic", "Basic ", "Basic !!!", "Basic " + "A" * 9, "Basic bm9jb2xvbg=="),
        *("Basic " + "/" * 20, "Basic OnNlY3JldA==", "Bearer abc", "Digest x"),
        *(basic("a\x00b", "x"), basic("ü" * 50, "ß")),
    ],
)
@pytest.mark.django_db
def test_hostile_client_credentials_are_an_invalid_client(value):
    body = "grant_type=refresh_token&refresh_token=x"
    headers = {"authorization": value}
    response = Client().post("/oauth/token", body, FORM, headers=headers)
    assert refusal(response, 401) == "invalid_client"
    assert response["WWW-Authenticate"].startswith("Basic ")


@pytest.mark.parametrize(
    "query",
    [
        *("", "client_id=%00", "client_id=%zz&redirect_uri=%"),
        "client_id=x&redirect_uri=" + quote("[" * 1000),
        "client_id=" + "a" * 4097,
        "&".join(f"a{number}=1" for number in range(1100)),
        *("client_id=%ff&redirect_uri=%ff", "client_id=%ed%a0%80"),
    ],
)
def test_a_hostile_address_is_a_page_with_an_error(visitor, query):
    response = visitor.get("/oauth/authorize?" + query)
    assert response.status_code == 400
    assert response["Content-Type"].startswith("text/html")


@pytest.mark.parametrize("value", ["a\x00b", "a\r\nSet-Cookie: x=1", "a\tb"])
def test_control_characters_in_the_state_go_nowhere(app, value):
    assert app.visitor.get(app.address(state=value)).status_code == 400


def test_a_state_of_any_printable_text_comes_back_unchanged(app):
    state = "ünï \"<>'&+%20#?/\\ \u2028 {}" + "x" * 500
    assert app.decide(state=state)["state"] == state


def test_links_never_follow_the_host_header(app, settings):
    settings.ALLOWED_HOSTS = ["*"]
    headers = {"host": "evil.example", "x-forwarded-host": "evil.example"}
    for path in ("authorization-server", "protected-resource"):
        response = Client().get(f"/.well-known/oauth-{path}", headers=headers)
        assert "evil.example" not in response.content.decode()
    response = app.visitor.post(app.address(), {"allow": "yes"}, headers=headers)
    assert query_of(response["Location"])["iss"] == ISSUER
