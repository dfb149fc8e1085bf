"""Attacks of RFC 9700, each with what must happen instead."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from oauth2_provider.models import AccessToken

from recording.oauth import access
from recording.oauth.models import Application, Grant
from recording.oauth.validator import Validator
from tests.recording.accounts.browsers import PASSWORD, logged_in
from tests.recording.oauth.flows import (
    ISSUER,
    REDIRECT,
    STATE,
    App,
    query_of,
    refusal,
    register,
)

# ── Codes (RFC 9700 sections 4.2 to 4.5) ────────────────────────────────────────────


def test_a_replayed_code_revokes_what_it_minted(app):
    code = app.code()
    tokens = app.exchange(code).json()
    other_pair = app.tokens()
    assert refusal(app.exchange(code)) == "invalid_grant"
    assert access.authenticate(tokens["access_token"]) is None
    assert app.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"
    assert access.authenticate(other_pair["access_token"])


def test_a_replayed_code_revokes_rotated_tokens_too(app):
    code = app.code()
    tokens = app.refresh(app.exchange(code).json()["refresh_token"]).json()
    app.exchange(code)
    assert access.authenticate(tokens["access_token"]) is None
    assert app.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"


def test_a_code_belongs_to_its_client(app, visitor):
    code = app.code()
    thief = App.registered(visitor)
    thief.verifier = app.verifier
    assert thief.exchange(code).json()["error"] == "invalid_grant"
    assert app.exchange(code).status_code == 200


def test_the_replay_of_another_clients_code_revokes_nothing(app, visitor):
    code = app.code()
    tokens = app.exchange(code).json()
    assert App.registered(visitor).exchange(code).json()["error"] == "invalid_grant"
    assert access.authenticate(tokens["access_token"])


@pytest.mark.parametrize(
    "changes",
    [
        {"code_challenge": None},
        {"code_challenge": ""},
        {"code_challenge_method": None},
        {"code_challenge_method": "plain"},
        {"code_challenge_method": "s256"},
        {"code_challenge": "short"},
        {"code_challenge": "a" * 44},
        {"code_challenge": "a" * 42 + "="},
        {"code_challenge": "ä" * 43},
    ],
)
@pytest.mark.spec("recording", "PKCE with S256 is required")
def test_pkce_cannot_be_downgraded(app, changes):
    received = app.decide(**changes)
    assert received["error"] == "invalid_request"
    assert "code" not in received
    assert not Grant.objects.exists()


@pytest.mark.parametrize("verifier", ["x", "a" * 42, "a" * 129, "ä" * 43, "a" * 43])
def test_a_wrong_verifier_gets_nothing(app, verifier):
    response = app.exchange(app.code(), {"code_verifier": verifier})
    assert refusal(response) == "invalid_grant"
    assert not AccessToken.objects.exists()


def test_a_short_verifier_is_refused_even_if_it_matches(app):
    app.verifier = "short"
    assert app.exchange(app.code()).json()["error"] == "invalid_grant"


# ── Mix-up, response types, redirects (RFC 9700 sections 4.4, 4.11, 4.12) ───────────


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"response_type": "code token"}, "unsupported_response_type"),
        ({"response_type": "id_token"}, "unsupported_response_type"),
        ({"response_type": None}, "invalid_request"),
        ({"scope": "admin"}, "invalid_scope"),
    ],
)
@pytest.mark.spec("recording", "GET /oauth/authorize")
def test_every_error_names_the_issuer_and_returns_the_state(app, changes, error):
    response = app.visitor.get(app.address(**changes))
    assert response.status_code == 303
    received = query_of(response["Location"])
    assert received["error"] == error
    assert (received["iss"], received["state"]) == (ISSUER, STATE)


def test_a_denial_names_the_issuer_and_leaves_nothing(app):
    received = app.decide("deny")
    assert received["error"] == "access_denied"
    assert (received["iss"], received["state"]) == (ISSUER, STATE)
    assert not Grant.objects.exists()


def test_a_response_mode_cannot_move_the_code_elsewhere(app):
    address = app.address() + "&response_mode=fragment"
    location = app.visitor.post(address, {"allow": "yes"})["Location"]
    assert "#" not in location


def test_nobody_is_redirected_before_the_login(app):
    response = Client().get(app.address(response_type="token"))
    assert response.status_code == 302
    assert response["Location"].startswith("/accounts/login/?next=/oauth/authorize")


@pytest.mark.parametrize("decision", ["allow", "deny"])
def test_a_decision_without_a_login_is_no_decision(app, decision):
    response = Client().post(app.address(), {decision: "yes"})
    assert response["Location"].startswith("/accounts/login/")
    assert not Grant.objects.exists()


@pytest.mark.parametrize("form", [{}, {"allow": "yes", "deny": "yes"}, {"ok": "1"}])
def test_a_form_without_one_decision_is_refused(app, form):
    assert app.visitor.post(app.address(), form).status_code == 400
    assert not Grant.objects.exists()


# ── Consent (RFC 9700 sections 4.7, 4.16) ───────────────────────────────────────────


def test_consent_needs_the_csrf_token(app, account):
    strict = logged_in(account, enforce_csrf_checks=True)
    response = strict.post(app.address(), {"allow": "yes"})
    assert response.status_code == 403
    assert "Nothing was changed." in response.content.decode()
    assert not Grant.objects.exists()


def test_reading_the_consent_page_grants_nothing(app):
    response = app.visitor.get(
        app.address() + "&allow=yes&approval_prompt=auto&prompt=none"
    )
    assert response.status_code == 200
    assert not Grant.objects.exists()


def test_consent_is_asked_again_although_a_token_lives(app):
    app.tokens()
    assert app.visitor.get(app.address() + "&approval_prompt=auto").status_code == 200


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


def test_the_clients_name_is_text_and_nothing_else(visitor):
    name = '<script>alert(1)</script> & "friends"'
    app = App.registered(visitor, client_name=name)
    page = visitor.get(app.address()).content.decode()
    assert "<script>alert" not in page
    assert "&lt;script&gt;" in page


def test_the_clients_name_stands_apart_from_our_own_words(visitor):
    name = "Signpost Support - click Allow to keep your account"
    page = visitor.get(App.registered(visitor, client_name=name).address())
    before, _, rest = page.content.decode().partition('<blockquote class="quote">')
    claim, _, after = rest.partition("</blockquote>")
    assert name in claim
    assert name not in before + after
    assert "Nobody has checked this name." in after
    nameless = visitor.get(App.registered(visitor, client_name="").address())
    assert "An application without a name" in nameless.content.decode()


@pytest.mark.parametrize(
    "name",
    [
        "a\x00b",
        "a\nb",
        "a\u202eb",
        "a\u2066b",
        "a\u200bb",
        "a\u00adb",
        "\ufeffa",
        "a\ue000",
        "\U000e0041",
        "\u3164",
        "\u2800",
        "a\u034fb",
        "\ufe0f",
        "\u0301a",
        "a" + "\u0301" * 5,
        "a" + "\u0301" * 4 + "\u200d" + "\u0301" * 4,
        "\u200da",
        "a\u200c",
        "a\u200d b",
        "a\u200d\u200db",
        "a\u200d😀",
        "$\u200d$",
        "😀\u200c😀",
        "می\u200bشود",
        "🏴\U000e0067\U000e007f",
        "x" * 101,
        7,
        True,
        ["a"],
    ],
)
@pytest.mark.django_db
def test_a_name_that_could_deceive_is_refused(name):
    response = register({"redirect_uris": [REDIRECT], "client_name": name})
    assert refusal(response) == "invalid_client_metadata"


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("Notes\u2028\u2029 from\u00a0work ", "Notes from work"),
        ("\u3000メモ\u3000アプリ", "メモ アプリ"),
        ("Cafe\u0301 עברית ไทยน้ำ 1\ufe0f\u20e3 😀", None),
        ("a" + "\u0301" * 4, None),
        ("می\u200cشود متن\u200cی", None),
        ("क्\u200dष र\u200d्य ශ්\u200dරී ക്\u200cഷ", None),
        ("👩🏽\u200d💻 👨\u200d👩\u200d👧\u200d👦 ❤️\u200d🔥 🏳️\u200d🌈 🙂\u200d↔️", None),
        ("\u2028 \u00a0", ""),
    ],
)
@pytest.mark.django_db
def test_an_honest_name_is_kept_on_one_line(name, stored):
    body = register({"redirect_uris": [REDIRECT], "client_name": name}).json()
    expected = name if stored is None else stored
    row = Application.objects.get(client_id=body["client_id"])
    assert row.name == body.get("client_name", "") == expected


@pytest.mark.parametrize(
    "next_",
    [
        "https://evil.example/",
        "//evil.example",
        "/\\evil.example",
        "javascript:alert(1)",
    ],
)
def test_the_login_leads_to_no_other_site(account, next_):
    form = {"login": "ada", "password": PASSWORD, "next": next_}
    response = Client().post("/accounts/login/", form)
    assert response["Location"] == "/accounts"


def test_the_login_leads_back_to_a_long_request(app, account):
    address = app.address(state="s" * 3000)
    visitor = Client()
    login = visitor.get(address)["Location"]
    form = {"login": "ada", "password": PASSWORD}
    assert visitor.post(login, form)["Location"] == address


# ── Accounts that were switched off ─────────────────────────────────────────────────


def test_an_inactive_user_has_no_access_no_refresh_and_no_code(app, account):
    tokens, code = app.tokens(), app.code()
    account.is_active = False
    account.save()
    assert access.authenticate(tokens["access_token"]) is None
    assert app.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"
    assert app.exchange(code).json()["error"] == "invalid_grant"
    assert app.visitor.get(app.address()).status_code == 302


def test_a_deleted_user_has_no_exchange(app, account, monkeypatch):
    code, validate = app.code(), Validator.confirm_redirect_uri

    def delete_meanwhile(*args: Any, **kwargs: Any) -> bool:
        account.delete()
        return bool(validate(*args, **kwargs))

    monkeypatch.setattr(Validator, "confirm_redirect_uri", delete_meanwhile)
    assert refusal(app.exchange(code)) == "invalid_grant"
    assert not AccessToken.objects.exists()
