"""Login, consent and connected apps in Chromium: by keyboard, without scripts, under the CSP."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import Page, expect

from tests.factories import UserFactory
from tests.receiver import Receiver, receiver
from tests.recording.oauth.flows import App, query_of
from tests.tools import needs_ipv6


@pytest.fixture
def account(db) -> User:
    return UserFactory.create(
        username="ada", email="ada@example.org", password="correct horse"
    )


Listen = Callable[[str], Receiver]


@pytest.fixture
def listen() -> Iterator[Listen]:
    """Start a native application's own listener: `listen("127.0.0.1")`."""
    with ExitStack() as running:
        yield lambda host: running.enter_context(receiver(200, host=host))


@pytest.fixture
def callback(listen: Listen) -> Receiver:
    return listen("127.0.0.1")


def address_of(server: Receiver) -> str:
    return f"{server.origin}/callback"


def seen(server: Receiver) -> list[str]:
    """Return what the browser brought."""
    paths = [request.path for request in server.requests]
    return [path for path in paths if path.startswith("/callback?")]


def send_on(server: Receiver, address: str) -> None:
    """Redirect who comes to the callback."""
    server.statuses, server.headers["Location"] = [302], address


def log_in(page: Page, name: str = "ada") -> None:
    """Log in by keyboard."""
    page.get_by_label("Username").focus()
    page.keyboard.type(name)
    page.keyboard.press("Tab")
    page.keyboard.type("correct horse")
    page.keyboard.press("Enter")


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", pytest.param("::1", marks=needs_ipv6)]
)
def test_a_person_logs_in_and_allows_by_keyboard(
    live_server, page, complaints, listen, account, host
):
    callback = listen("127.0.0.1" if host == "localhost" else host)
    address = address_of(callback).replace("127.0.0.1", host)
    app = App.registered(Client(), redirect=address)
    page.goto(live_server.url + app.address())
    log_in(page)
    expect(page.get_by_role("heading", name="Allow access?")).to_be_visible()
    expect(page.get_by_text("Notebook")).to_be_visible()
    shown = address.removesuffix("/callback")
    expect(page.get_by_text(shown, exact=True)).to_be_visible()
    page.get_by_role("button", name="Allow", exact=True).focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/callback?*")
    assert app.exchange(query_of(seen(callback)[0])["code"]).status_code == 200
    assert complaints == []


def test_another_account_answers_the_same_request_by_keyboard(
    live_server, page, complaints, callback, account
):
    UserFactory.create(
        username="eve", email="eve@example.org", password="correct horse"
    )
    app = App.registered(Client(), redirect=address_of(callback))
    page.goto(live_server.url + app.address())
    log_in(page)
    page.get_by_role("button", name="Use another account").focus()
    page.keyboard.press("Enter")
    log_in(page, "eve")
    page.get_by_role("button", name="Allow", exact=True).focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/callback?*")
    tokens = app.exchange(query_of(seen(callback)[0])["code"]).json()
    assert tokens["email"] == "eve@example.org"
    assert complaints == []


@pytest.mark.parametrize("decision", ["Allow", "Deny", "an error"])
def test_the_callback_may_send_the_browser_on_to_another_origin(
    live_server, page, complaints, listen, account, decision
):
    last, callback = listen("127.0.0.1"), listen("127.0.0.1")
    end = address_of(last).replace("127.0.0.1", "localhost") + "?end=1"
    send_on(callback, end)
    app = App.registered(Client(), redirect=address_of(callback))
    changes = {"scope": "admin"} if decision == "an error" else {}
    page.goto(live_server.url + app.address(**changes))
    log_in(page)
    if not changes:
        page.get_by_role("button", name=decision, exact=True).click()
    page.wait_for_url(end)
    assert seen(last) == ["/callback?end=1"]
    assert complaints == []


@pytest.mark.parametrize("scheme", ["vscode", "cursor"])
def test_the_callback_may_send_the_browser_on_to_a_program(
    live_server, page, callback, account, scheme
):
    program = f"{scheme}://signpost.example/callback?end=1"
    send_on(callback, program)
    app = App.registered(Client(), redirect=address_of(callback))
    page.goto(live_server.url + app.address())
    log_in(page)
    page.get_by_role("button", name="Allow", exact=True).focus()
    with page.expect_request(program):
        page.keyboard.press("Enter")


def test_the_policy_stops_a_form_of_another_page_that_leads_elsewhere(
    live_server, page, complaints, callback, account
):
    page.goto(live_server.url + "/accounts/login/")
    log_in(page)
    page.get_by_role("button", name="Log out ada").focus()
    page.evaluate(f"document.forms[0].action = '{address_of(callback)}?x=1'")
    with page.expect_event("console"):
        page.keyboard.press("Enter")
    assert seen(callback) == []
    assert any("form-action" in complaint for complaint in complaints)


@pytest.mark.parametrize("width", [320, 1280])
def test_connected_apps_are_seen_and_ended_at_any_width(
    live_server, page, complaints, account, width
):
    visitor = Client()
    visitor.force_login(account, "django.contrib.auth.backends.ModelBackend")
    app = App.registered(visitor, client_name="N" * 100)
    tokens = app.tokens()
    page.set_viewport_size({"width": width, "height": 640})
    page.goto(live_server.url + "/accounts")
    log_in(page)
    overflow = "document.documentElement.scrollWidth - window.innerWidth"
    button = page.get_by_role("button", name=f"Disconnect {'N' * 100}")
    expect(button).to_be_visible()
    assert page.evaluate(overflow) <= 0
    button.click()
    expect(page.get_by_role("status")).to_contain_text("was disconnected")
    assert app.refresh(tokens["refresh_token"]).status_code == 400
    assert complaints == []
