"""An account's two-step login and password in Chromium: allauth's pages under our CSP."""

import time

from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value
from playwright.sync_api import expect

from tests.browser.login import log_in
from tests.factories import UserFactory

OLD, NEW = "correct horse", "battery staple 7"
STEP_S = 30


def code_of(secret: str, *, later: int = 0) -> str:
    step = int(time.time() + later) // STEP_S
    return str(format_hotp_value(hotp_value(secret, step)))


def test_a_two_step_login_is_set_up_and_used_and_the_password_changed(
    live_server, page, complaints, db
):
    UserFactory.create(username="ada", password=OLD)
    page.goto(f"{live_server.url}/accounts/2fa/")
    log_in(page, OLD)
    page.get_by_role("link", name="Activate").press("Enter")
    expect(page.get_by_role("img", name="QR code")).to_be_visible()
    secret = page.get_by_label("Authenticator secret").input_value()
    page.get_by_label("Authenticator code").fill(code_of(secret))
    page.keyboard.press("Enter")
    codes = page.get_by_label("Unused codes").input_value().split()
    assert len(codes) == 10

    page.get_by_role("button", name="Log out").press("Enter")
    page.goto(f"{live_server.url}/accounts/password/change/")
    log_in(page, OLD)
    page.get_by_label("Code").fill(code_of(secret, later=STEP_S))
    page.keyboard.press("Enter")
    page.get_by_label("Current Password").fill(OLD)
    page.get_by_label("New Password", exact=True).fill(NEW)
    page.get_by_label("New Password (again)").fill(NEW)
    expect(page.get_by_label("Disconnect all applications")).to_be_checked()
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_contain_text("Password successfully changed")

    page.get_by_role("button", name="Log out").press("Enter")
    log_in(page, NEW)
    page.get_by_label("Code").fill(codes[0])
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Account of ada")).to_be_visible()
    assert complaints == []
