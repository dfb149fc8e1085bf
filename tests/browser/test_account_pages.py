"""An account's password, two-step login and sessions in Chromium: by keyboard, under the CSP."""

from __future__ import annotations

import time

from playwright.sync_api import Page, expect

from recording.accounts.second_factors import STEP_S
from tests.factories import UserFactory
from tests.recording.accounts.two_step import code_at

OLD, NEW = "correct horse", "battery staple 7"


def log_in(page: Page, password: str) -> None:
    page.get_by_label("User name").fill("ada")
    page.get_by_label("Password").fill(password)
    page.keyboard.press("Enter")


def code_of(key: str, *, later: int = 0) -> str:
    return code_at(key, now=time.time() + later)


def test_a_two_step_login_is_set_up_and_used_and_the_password_changed(
    live_server, page, complaints, db
):
    UserFactory.create(username="ada", password=OLD)
    page.goto(f"{live_server.url}/accounts/two-step")
    log_in(page, OLD)
    page.get_by_role("link", name="Set up an authenticator app").press("Enter")
    expect(page.get_by_role("img", name="QR code")).to_be_visible()
    key = page.locator("code.token").inner_text().replace(" ", "")
    expect(page.get_by_label("Code", exact=True)).to_be_focused()
    page.keyboard.type("000 000x")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("not valid")
    expect(page.get_by_label("Code", exact=True)).to_be_focused()
    page.keyboard.type(code_of(key))
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").locator("li")).to_have_count(10)
    recovery = page.locator(".codes code").first.inner_text()

    page.get_by_role("button", name="Log out").press("Enter")
    page.goto(f"{live_server.url}/accounts/password")
    log_in(page, OLD)
    expect(page.get_by_label("Code", exact=True)).to_be_focused()
    page.keyboard.type(code_of(key, later=STEP_S))
    page.keyboard.press("Enter")
    page.get_by_label("Current password").fill(OLD)
    page.get_by_label("New password", exact=True).fill(NEW)
    page.get_by_label("New password again").fill(NEW)
    expect(page.get_by_label("Disconnect all applications")).to_be_checked()
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_contain_text("The password was changed.")

    page.get_by_role("link", name="Sessions").click()
    expect(page.get_by_role("listitem")).to_contain_text("Chrome on Linux (this one)")
    page.get_by_role("button", name="End Chrome").press("Enter")
    log_in(page, NEW)
    expect(page.get_by_label("Code", exact=True)).to_be_focused()
    page.keyboard.type(recovery)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Account of ada")).to_be_visible()
    errors = "Failed to load resource: the server responded with a status of 400"
    assert [text for text in complaints if not text.startswith(errors)] == []


def test_a_passkey_is_added_and_used(live_server, page, complaints, settings, db):
    settings.BASE_URL = live_server.url
    UserFactory.create(username="ada", password=OLD)
    devices = page.context.new_cdp_session(page)
    devices.send("WebAuthn.enable")
    options = {"protocol": "ctap2", "transport": "internal", "isUserVerified": True}
    options |= {"hasUserVerification": True, "automaticPresenceSimulation": True}
    devices.send("WebAuthn.addVirtualAuthenticator", {"options": options})
    page.goto(f"{live_server.url}/accounts/two-step")
    log_in(page, OLD)
    page.get_by_role("link", name="Add a passkey").press("Enter")
    expect(page.get_by_label("Name of the passkey")).to_be_focused()
    expect(page.get_by_role("button", name="Add the passkey")).to_be_enabled()
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").locator("li")).to_have_count(10)
    page.get_by_role("link", name="Back to the two-step login").press("Enter")
    expect(page.get_by_role("heading", name="Passkey Chrome on Linux")).to_be_visible()
    page.get_by_role("link", name="Rename").press("Enter")
    page.get_by_label("Name of the passkey").fill("My laptop")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Passkey My laptop")).to_be_visible()
    page.get_by_role("button", name="Log out").press("Enter")
    log_in(page, OLD)
    expect(page.get_by_role("button", name="Use a passkey")).to_be_enabled()
    page.get_by_role("button", name="Use a passkey").press("Enter")
    expect(page.get_by_role("heading", name="Account of ada")).to_be_visible()
    assert complaints == []
