"""What a person sees on the way to the consent: who asks, as whom, and what was wrong."""

from __future__ import annotations

from html import escape
from typing import Any
from urllib.parse import quote

import pytest
from django.test import Client

from tests.factories import UserFactory
from tests.recording.accounts.browsers import LOGIN, PASSWORD
from tests.recording.oauth.flows import App, query_of

NAME = '<b>Note</b> & "book"'


@pytest.fixture
def asker(visitor) -> App:
    return App.registered(visitor, client_name=NAME)


def log_in(browser: Client, page: Any, name: str, password: str) -> Any:
    """Fill in the login page that a browser was sent to."""
    form = {"login": name, "password": password}
    return browser.post(page.wsgi_request.get_full_path(), form)


@pytest.mark.parametrize("name", ["Notebook", ""])
def test_the_consent_page_names_what_it_gives_access_to(visitor, name):
    page = visitor.get(App.registered(visitor, client_name=name).address())
    text = page.content.decode()
    assert "read your recordings and manage your webhooks" in text
    assert "see your e-mail address (<bdi>ada@example.org</bdi>)" in text


# ── As whom ─────────────────────────────────────────────────────────────────────────


def test_another_account_takes_over_the_same_request(asker):
    UserFactory.create(username="eve", email="eve@example.org", password=PASSWORD)
    browser = asker.visitor
    address = asker.address(state="s" * 3000)
    consent = browser.get(address).content.decode()
    assert "Use another account" in consent
    assert f'name="next" value="{escape(address)}"' in consent
    page = browser.post("/accounts/logout/", {"next": address}, follow=True)
    assert page.wsgi_request.path == LOGIN
    response = log_in(browser, page, "eve", PASSWORD)
    assert response["Location"] == address
    assert "<bdi>eve</bdi>" in browser.get(address).content.decode()
    code = query_of(browser.post(address, {"allow": "yes"})["Location"])["code"]
    assert asker.exchange(code).json()["email"] == "eve@example.org"


def test_a_logout_leads_to_no_other_site(visitor):
    response = visitor.post("/accounts/logout/", {"next": "https://evil.example/"})
    assert response["Location"] == LOGIN


# ── A visitor who is logged in already ──────────────────────────────────────────────


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_logged_in_user_goes_on_from_the_login_page(app, method):
    for next_address in (
        "/docs",
        "/accounts?a=b",
        app.address(state="s" * 3000),
    ):
        response = app.visitor.generic(method, f"{LOGIN}?next={quote(next_address)}")
        assert (response.status_code, response["Location"]) == (302, next_address)
        assert "no-store" in response["Cache-Control"]


@pytest.mark.parametrize(
    "next_address",
    [
        None,
        "",
        "https://evil.example/",
        "//evil.example",
        "/\\evil.example",
        "javascript:alert(1)",
        "https://evil.example/oauth/authorize?x=1",
        "//evil.example/oauth/authorize?x=1",
    ],
)
def test_the_login_page_redirects_to_no_other_site(visitor, next_address):
    query = "" if next_address is None else f"?next={quote(next_address)}"
    response = visitor.get(LOGIN + query)
    assert (response.status_code, response["Location"]) == (302, "/accounts")


def test_a_person_without_rights_in_the_admin_is_not_sent_in_circles(visitor):
    response = visitor.get(f"{LOGIN}?next=/admin/", follow=True)
    assert "no rights in the admin" in response.content.decode()
    assert response.wsgi_request.path == "/accounts"


# ── What was wrong ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("address", "shown_address"),
    [
        ("https://evil.example/cb?a=1&b=2", "https://evil.example/cb?a=1&amp;b=2"),
        ('https://x/"><script>alert(1)</script>', None),
        ("javascript:alert(1)", "javascript:alert(1)"),
        ("https://\u0430pp.example/", "https://%D0%B0pp.example/"),
        ("https://x/\u202egpj.exe", "https://x/%E2%80%AEgpj.exe"),
        ("Your account is locked", "Your%20account%20is%20locked"),
        ("https://x/" + "y" * 2000, "https://x/" + "y" * 490 + "…<"),
    ],
)
@pytest.mark.parametrize("logged_in", [True, False])
def test_the_error_page_shows_the_address_that_was_not_registered(
    app, logged_in, address, shown_address
):
    browser = app.visitor if logged_in else Client()
    response = browser.get(app.address(redirect_uri=address))
    assert response.status_code == 400
    text = response.content.decode()
    assert "The application did not register this redirect_uri." in text
    assert f"<code>{shown_address or escape(address)}" in text
    assert "<script" not in text
    assert address not in text or shown_address == address
    assert f'href="{address[:10]}' not in text


def test_an_unknown_application_has_no_address_shown(visitor):
    query = "client_id=nobody&redirect_uri=https://evil.example/"
    text = visitor.get(f"/oauth/authorize?{query}").content.decode()
    assert "The application is not known here." in text
    assert "evil.example" not in text
