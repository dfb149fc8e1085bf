"""The page of an account: its tokens and connected applications, and nobody else's."""

import pytest
from django.test import Client

from recording.accounts import personal_tokens
from recording.models import PersonalToken
from recording.oauth.models import Application
from tests.factories import UserFactory
from tests.recording.accounts.browsers import logged_in

pytestmark = pytest.mark.django_db

POSTS = ("/accounts/tokens", "/accounts/tokens/revoke", "/accounts/disconnect")


@pytest.fixture
def browser(ada) -> Client:
    return logged_in(ada)


@pytest.fixture
def stranger() -> Client:
    return logged_in(UserFactory.create(username="eve"))


@pytest.mark.parametrize("path", ["/accounts", *POSTS])
def test_the_page_needs_a_login_and_no_cache_keeps_it(db, path):
    response = getattr(Client(), "post" if path in POSTS else "get")(path)
    assert response["Location"].startswith("/accounts/login/?next=/accounts")
    assert "no-store" in response["Cache-Control"]


@pytest.mark.parametrize("path", POSTS)
def test_a_change_is_a_post_with_a_csrf_token(ada, path):
    # A login leads to the address that asked for it, as a form's does when its session has ended.
    assert logged_in(ada).get(path)["Location"] == "/accounts"
    strict = logged_in(ada, enforce_csrf_checks=True)
    assert strict.post(path, {"name": "x", "days": "1"}).status_code == 403
    assert not PersonalToken.objects.exists()


def test_a_new_token_is_shown_once(browser, ada):
    form = {"name": "<b>CI", "days": "7"}
    page = browser.post("/accounts/tokens", form, follow=True)
    assert page.redirect_chain == [("/accounts", 302)]  # a reload sends no form
    [row] = PersonalToken.objects.all()
    text = page.content.decode().partition(' id="token">')[2].partition("<")[0]
    assert personal_tokens.authenticate(text) == ada
    again = browser.get("/accounts").content.decode()
    assert "&lt;b&gt;CI" in again
    assert row.display_prefix in again
    assert text not in again


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"days": "0"}, "greater than or equal to 1"),
        ({"days": "366"}, "less than or equal to 365"),
        ({"days": "many"}, "whole number"),
        ({}, "required"),
        ({"days": "1", "name": "a\tb"}, "cannot be shown"),
        ({"days": "1", "name": "x" * 101}, "at most 100"),
    ],
)
def test_a_wrong_token_is_refused_beside_its_field(browser, form, words):
    page = browser.post("/accounts/tokens", form)
    assert page.status_code == 400
    assert words in page.content.decode()
    assert not PersonalToken.objects.exists()


def test_only_its_user_revokes_a_token(browser, stranger, ada):
    created = personal_tokens.create(user=ada, days=1)
    form = {"token": created.token.pk}
    assert stranger.post("/accounts/tokens/revoke", form).status_code == 404
    assert browser.post("/accounts/tokens/revoke", {"token": "x"}).status_code == 404
    assert personal_tokens.authenticate(created.text) == ada
    page = browser.post("/accounts/tokens/revoke", form, follow=True)
    assert "The token was revoked." in page.content.decode()
    assert "Revoked, valid until" in page.content.decode()
    assert personal_tokens.authenticate(created.text) is None


def test_an_account_disconnects_its_own_connections_alone(app, stranger):
    tokens, form = app.tokens(), {"client_id": app.client_id}
    stranger.post("/accounts/disconnect", form)
    assert app.client_id not in stranger.get("/accounts").content.decode()
    assert app.visitor.post("/accounts/disconnect", {}).status_code == 404
    page = app.visitor.get("/accounts").content.decode()
    assert f'name="client_id" value="{app.client_id}"' in page
    assert "<code>http://127.0.0.1" in page
    tokens = app.refresh(tokens["refresh_token"]).json()
    page = app.visitor.post("/accounts/disconnect", form, follow=True)
    assert "was disconnected." in page.content.decode()
    assert "No application acts for your account." in page.content.decode()
    assert app.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"
    assert Application.objects.filter(client_id=app.client_id).exists()
