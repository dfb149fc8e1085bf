"""Malformed, oversized, repeated, forged and too many requests."""

from __future__ import annotations

import gzip
import secrets
from datetime import timedelta
from typing import Any
from urllib.parse import quote, urlencode

import pytest
import time_machine
from django.test import Client
from django.utils import timezone

from recording.oauth.models import Application
from tests.recording.oauth.flows import (
    FORM,
    ISSUER,
    REDIRECT,
    App,
    basic,
    query_of,
    refusal,
    register,
)

CALLBACK, JSON = {"redirect_uris": [REDIRECT]}, "application/json"
# By address, the media type of its body.
KINDS = {"/oauth/register": JSON}
KINDS |= dict.fromkeys(("/oauth/token", "/oauth/revoke"), FORM)


# ── Where tokens may stand (RFC 6750 section 2, RFC 9700 section 4.3) ───────────────


def test_parameters_in_the_address_of_the_token_endpoint_are_refused(app):
    code = app.code()
    form = app.exchange_form(code) | {"client_id": app.client_id}
    response = Client().post("/oauth/token?" + urlencode(form), "", FORM)
    assert refusal(response) == "invalid_request"
    assert app.exchange(code).status_code == 200


@pytest.mark.parametrize(
    "name", ["code", "client_id", "grant_type", "redirect_uri", "code_verifier"]
)
def test_a_repeated_parameter_is_refused(app, name):
    form = app.exchange_form("x") | {"client_id": app.client_id}
    body = f"{urlencode(form)}&{name}=x"
    assert refusal(Client().post("/oauth/token", body, FORM)) == "invalid_request"


@pytest.mark.parametrize(
    "name",
    ["client_id", "redirect_uri", "state", "scope", "code_challenge", "response_type"],
)
def test_a_repeated_parameter_of_the_address_goes_nowhere(app, name):
    response = app.visitor.get(app.address() + f"&{name}=x")
    assert response.status_code == 400


# ── Hostile bodies ──────────────────────────────────────────────────────────────────

BODIES: list[Any] = [
    b"",
    b"{",
    b"[]",
    b"null",
    b'"text"',
    b"[" * 65_000,
    b'{"redirect_uris":' + b"[" * 10_000,
    b"\xff\xfe",
    b'{"redirect_uris": "\\u0000"}',
    b'{"redirect_uris": ["http://127.0.0.1/\\ud800"]}',
    b'{"redirect_uris": []}',
    b'{"redirect_uris": {"a": 1}}',
    b'{"redirect_uris": ["http://127.0.0.1/"], "grant_types": ["password"]}',
    b'{"redirect_uris": ["http://127.0.0.1/"], "grant_types": ["refresh_token"]}',
    b'{"redirect_uris": ["http://127.0.0.1/"], "grant_types": "authorization_code"}',
    b'{"redirect_uris": ["http://127.0.0.1/"], "grant_types": [{}]}',
    b'{"redirect_uris": ["http://127.0.0.1/"], "grant_types": ["authorization_code", 7]}',
    b'{"redirect_uris": ["http://127.0.0.1/"], "grant_types": ["refresh_token", "x"]}',
    b'{"redirect_uris": ["http://127.0.0.1/"], "response_types": [["code"]]}',
    b'{"redirect_uris": ["http://127.0.0.1/"], "response_types": ["token"]}',
    b'{"redirect_uris": ["http://127.0.0.1/"], "response_types": []}',
    b'{"redirect_uris": ["http://127.0.0.1/"], "scope": "admin"}',
    b'{"redirect_uris": ["http://127.0.0.1/"], "scope": ["mcp:connect"]}',
    b'{"redirect_uris": ["http://127.0.0.1/"], "token_endpoint_auth_method": "private_key_jwt"}',
    b'{"redirect_uris": ["http://127.0.0.1/"], "token_endpoint_auth_method": {}}',
    b'{"redirect_uris": ["http://127.0.0.1/"], "client_name": 1e999}',
]


@pytest.mark.parametrize(
    "body", BODIES, ids=[str(number) for number in range(len(BODIES))]
)
@pytest.mark.django_db
def test_a_hostile_registration_changes_nothing(body):
    errors = {"invalid_client_metadata", "invalid_redirect_uri"}
    assert refusal(register(body)) in errors
    assert not Application.objects.exists()


@pytest.mark.parametrize(("path", "kind"), KINDS.items())
@pytest.mark.parametrize("size", [65_537, 100_000, 3_000_000])
@pytest.mark.django_db
def test_an_oversized_body_is_refused(path, kind, size):
    assert refusal(Client().post(path, b"[" * size, kind), 413) == "invalid_request"


@pytest.mark.parametrize(("path", "kind"), KINDS.items())
@pytest.mark.django_db
def test_an_encoded_body_is_refused(path, kind):
    headers = {"Content-Encoding": "gzip"}
    response = Client().post(path, gzip.compress(b"{}"), kind, headers=headers)
    assert refusal(response, 415) == "invalid_request"
    assert response["Access-Control-Allow-Origin"] == "*"


@pytest.mark.parametrize("path", ["/oauth/token", "/oauth/revoke"])
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"grant_type=authorization_code&code=%00&client_id=%00&redirect_uri=%00&code_verifier=%00",
        b"client_id=a%00b&token=x&grant_type=refresh_token&refresh_token=x",
        b"client_id=%ff%fe&token=%ff&grant_type=refresh_token&refresh_token=%ff",
        b"%zz=%zz&grant_type=%zz&client_id=%zz&token=%zz",
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
    assert response.json()["error"] in {"invalid_request", "invalid_client"}


@pytest.mark.parametrize(
    "value",
    [
        "Basic",
        "Basic ",
        "Basic !!!",
        "Basic " + "A" * 9,
        "Basic bm9jb2xvbg==",
        "Basic " + "/" * 20,
        "Basic OnNlY3JldA==",
        "Basic AGE6eA==",
        "Bearer abc",
        "Digest x",
        basic("a\x00b", "x"),
        basic("ü" * 50, "ß"),
    ],
)
@pytest.mark.django_db
def test_hostile_client_credentials_are_an_invalid_client(value):
    body = "grant_type=refresh_token&refresh_token=x"
    response = Client().post(
        "/oauth/token", body, FORM, headers={"authorization": value}
    )
    assert refusal(response, 401) == "invalid_client"
    assert response["WWW-Authenticate"].startswith("Basic ")


@pytest.mark.parametrize(
    "query",
    [
        "",
        "client_id=%00",
        "client_id=%zz&redirect_uri=%",
        "client_id=" + "a" * 4097,
        "client_id=x&redirect_uri=" + quote("[" * 1000),
        "a" * 6000,
        "&".join(f"a{number}=1" for number in range(1100)),
        "client_id=%ff&redirect_uri=%ff",
        "client_id=%ed%a0%80",
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


# ── Host and addresses ──────────────────────────────────────────────────────────────


@pytest.mark.django_db
def test_links_never_follow_the_host_header(settings):
    settings.ALLOWED_HOSTS = ["*"]
    for path in ("authorization-server", "protected-resource"):
        headers = {"host": "evil.example", "x-forwarded-host": "evil.example"}
        response = Client().get(f"/.well-known/oauth-{path}", headers=headers)
        assert "evil.example" not in response.content.decode()


def test_the_issuer_of_a_redirect_never_follows_the_host_header(app, settings):
    settings.ALLOWED_HOSTS = ["*"]
    response = app.visitor.post(
        app.address(), {"allow": "yes"}, headers={"host": "evil.example"}
    )
    assert query_of(response["Location"])["iss"] == ISSUER


# ── Guessing ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["register", "token", "authorize"])
def test_a_throttle_says_when_to_try_again(app, settings, name):
    settings.OAUTH_RATES = dict.fromkeys(settings.OAUTH_RATES, "") | {name: "2/minute"}
    settings.CACHES = {"default": settings.CACHES["default"]}
    app.visitor.defaults["REMOTE_ADDR"] = f"192.0.2.{secrets.randbelow(250)}"
    call = {
        "register": lambda: app.visitor.post("/oauth/register", b"{}", JSON),
        "token": lambda: app.visitor.post("/oauth/token", b"", FORM),
        "authorize": lambda: app.visitor.get(app.address()),
    }[name]
    responses = [call() for _ in range(3)]
    assert [response.status_code == 429 for response in responses] == [0, 0, 1]
    assert 1 <= int(responses[-1]["Retry-After"]) <= 60


def test_forwarded_addresses_do_not_reset_a_throttle(app, settings):
    settings.OAUTH_RATES = settings.OAUTH_RATES | {"token": "2/minute"}
    client = Client(REMOTE_ADDR=f"198.51.100.{secrets.randbelow(250)}")
    for number in range(3):
        headers = {"X-Forwarded-For": f"10.0.0.{number}"}
        response = client.post("/oauth/token", b"", FORM, headers=headers)
    assert response.status_code == 429


def test_addresses_of_one_ipv6_network_share_every_limit(account, settings):
    settings.OAUTH_RATES = settings.OAUTH_RATES | {"token": "2/minute"}
    settings.OAUTH_CLIENTS_PER_ADDRESS = 2
    network = f"2001:db8:{secrets.randbelow(65_536):x}:1"
    peers = [f"{network}::{number:x}" for number in range(1, 12)]

    def post(peer: str, path: str, body: Any = b"", kind: str = FORM) -> int:
        return Client().post(path, body, kind, REMOTE_ADDR=peer).status_code

    assert [post(peer, "/oauth/token") == 429 for peer in peers[:3]] == [0, 0, 1]
    codes = [post(peer, "/oauth/register", CALLBACK, JSON) for peer in peers[:3]]
    assert codes == [201, 201, 429]


def test_an_address_registers_no_more_clients_than_the_cap(visitor, settings):
    settings.OAUTH_CLIENTS_PER_ADDRESS = 3
    apps = [App.registered(visitor) for _ in range(3)]
    apps[0].tokens()
    apps.append(App.registered(visitor))
    response = register(CALLBACK)
    assert response.status_code == 429
    assert response["Retry-After"] == "3600"
    assert register(CALLBACK, REMOTE_ADDR="192.0.2.9").status_code == 201
    with time_machine.travel(timezone.now() + timedelta(minutes=61)):
        assert register(CALLBACK).status_code == 201
    names = set(Application.objects.values_list("client_id", flat=True))
    assert names & {app.client_id for app in apps} == {apps[0].client_id}


def test_the_users_of_a_hosted_client_share_its_address_without_limit(
    visitor, settings
):
    settings.OAUTH_CLIENTS_PER_ADDRESS = 2
    for _ in range(5):
        assert App.registered(visitor, "client_secret_post").tokens()
