"""The page that adds and removes a second step, and what operators can do about it."""

from __future__ import annotations

import re
import time
from datetime import timedelta
from io import StringIO
from typing import Any
from urllib.parse import quote

import pytest
import time_machine
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal import auth as totp
from cryptography.fernet import Fernet
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from recording.accounts import second_factors
from tests.recording.accounts.browsers import PASSWORD, is_logged_in, log_in
from tests.recording.accounts.two_step import (
    PAGE,
    code_at,
    code_of,
    enter,
    is_logged_in_by,
    make_app,
    password_step,
)


@pytest.fixture
def app(ada) -> Authenticator:
    return make_app(ada)


# ── Setting it up ───────────────────────────────────────────────────────────────────

APP, REMOVE, CODES = f"{PAGE}/app", f"{PAGE}/app/remove", f"{PAGE}/recovery-codes"
CODE = re.compile("<code>([a-z2-9-]{19})</code>")


@pytest.fixture
def visitor(ada) -> Client:
    return log_in()


def key_of(page: Any) -> str:
    (key,) = re.findall(r'<code class="token">([A-Z2-7 ]+)</code>', page)
    return str(key).replace(" ", "")


def set_up(visitor: Client) -> Any:
    """Set the app up as the page says; return the last page."""
    page = visitor.get(APP)
    assert "no-store" in page["Cache-Control"]
    assert page.content.count(b"data:image/svg+xml;base64,") == 1
    code = code_at(key_of(page.content.decode()), now=time.time())
    return visitor.post(APP, {"code": code})


def test_setting_up_shows_recovery_codes_once_and_ends_other_sessions(visitor, ada):
    other = log_in()
    page = set_up(visitor)
    codes = CODE.findall(page.content.decode())
    assert len(codes) == 10
    assert "no-store" in page["Cache-Control"]
    assert codes[0] not in visitor.get(PAGE).content.decode()
    assert "Unused recovery codes: 10" in visitor.get(PAGE).content.decode()
    assert not is_logged_in(other)
    assert is_logged_in_by(codes[0])


@pytest.mark.parametrize("code", ["", "000000x", "٣٣٣٣٣٣", "0" * 99_999, "\0"])
def test_without_the_first_code_nothing_is_asked_for(visitor, ada, code):
    key = key_of(visitor.get(APP).content.decode())
    page = visitor.post(APP, {"code": code}).content.decode()
    assert 'role="alert"' in page
    assert key_of(page) == key
    assert is_logged_in(log_in())


def test_the_key_of_an_app_is_shown_to_its_session_only_and_kept_encrypted(
    visitor, ada, settings
):
    other, key = log_in(), key_of(visitor.get(APP).content.decode())
    code = code_at(key, now=time.time())
    assert key not in other.post(APP, {"code": code}).content.decode()
    assert not second_factors.are_asked_for(ada)
    assert key not in str(dict(visitor.session.items()))
    settings.WEBHOOK_SECRET_KEYS = [Fernet.generate_key().decode()]
    assert visitor.post(APP, {"code": code}).status_code == 200
    assert not second_factors.are_asked_for(ada)


def test_an_app_that_was_added_meanwhile_stays(visitor, ada, monkeypatch):
    key, activate = key_of(visitor.get(APP).content.decode()), totp.TOTP.activate

    def add_another_first(account: Any, secret: str) -> Any:
        activate(account, totp.generate_totp_secret())
        return activate(account, secret)

    monkeypatch.setattr(totp.TOTP, "activate", add_another_first)
    response = visitor.post(APP, {"code": code_at(key, now=time.time())})
    assert response["Location"] == PAGE


def test_the_code_of_the_set_up_logs_nobody_in(visitor, ada):
    with time_machine.travel(timezone.now(), tick=False):
        set_up(visitor)
        app = Authenticator.objects.get(type="totp")
        assert not is_logged_in_by(code_of(app))


@pytest.fixture
def owner(app) -> Client:
    client = password_step()
    enter(client, code_of(app))
    return client


@pytest.mark.parametrize(
    "path", ["app", "app/remove", "passkeys", "passkeys/1/remove", "recovery-codes"]
)
def test_a_change_needs_a_login_of_the_last_ten_minutes(owner, app, path, settings):
    settings.BASE_URL = "https://signpost.example"
    path = f"{PAGE}/{path}"
    with time_machine.travel(timezone.now() + timedelta(minutes=11)):
        for response in (owner.get(path), owner.post(path)):
            assert response["Location"] == f"/accounts/confirm?next={quote(path, '')}"
        stranger = Client().post(path)
        assert stranger["Location"].startswith("/accounts/login?next=")
        assert Authenticator.objects.get() == app
        confirmed = owner.post(response["Location"], {"password": PASSWORD})
        assert confirmed["Location"] == path
        assert owner.get(path).headers.get("Location") in {None, REMOVE}


@pytest.mark.usefixtures("locks_at_three")
def test_guesses_of_the_password_count_towards_the_lock(owner, app):
    guess = {"password": "guess", "next": REMOVE}
    statuses = [owner.post("/accounts/confirm", guess).status_code for _ in range(3)]
    assert statuses == [400, 400, 429]
    assert Authenticator.objects.get() == app


def test_removing_leaves_the_password_alone(owner, app, ada):
    second_factors.renew_recovery_codes(ada)
    assert "Remove it now" in owner.get(REMOVE).content.decode()
    assert owner.post(REMOVE)["Location"] == PAGE
    assert not Authenticator.objects.exists()
    assert is_logged_in(log_in())
    assert owner.post(REMOVE).status_code == 404


def test_new_recovery_codes_replace_the_old_ones(owner, ada):
    old = second_factors.renew_recovery_codes(ada)[0]
    assert "of which 10 are unused" in owner.get(CODES).content.decode()
    new = CODE.findall(owner.post(CODES).content.decode())
    assert not second_factors.use(ada, old)
    assert second_factors.use(ada, new[0])


def test_without_a_second_step_there_are_no_recovery_codes(visitor):
    assert 'role="alert"' in visitor.post(CODES).content.decode()
    assert not Authenticator.objects.exists()


def test_an_app_in_use_is_not_replaced(owner, app):
    before = code_of(app)
    assert owner.get(APP)["Location"] == REMOVE
    assert owner.post(APP, {"code": before})["Location"] == REMOVE
    assert code_of(app) == before


# ── Operators ───────────────────────────────────────────────────────────────────────


def test_an_operator_removes_a_lost_second_step(app, ada):
    out = StringIO()
    call_command("remove_second_factor", "ada", stdout=out)
    call_command("remove_second_factor", "ada", stdout=out)
    assert out.getvalue().splitlines() == ["removed", "there was none"]
    assert is_logged_in(log_in())
    with pytest.raises(CommandError, match="no user named"):
        call_command("remove_second_factor", "nobody")


def test_the_admin_can_be_open_to_two_step_logins_only(visitor, settings):
    assert visitor.get("/admin/").status_code == 200
    settings.REQUIRE_STAFF_SECOND_FACTOR = True
    page = visitor.get("/admin/", follow=True)
    assert page.wsgi_request.path == PAGE
    assert "needs a two-step login" in page.content.decode()
    set_up(visitor)
    assert visitor.get("/admin/").status_code == 200
    visitor.post(REMOVE)
    assert visitor.get("/admin/").status_code == 302
