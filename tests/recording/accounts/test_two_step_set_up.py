"""The page that adds and removes a second step, and what operators can do about it."""

from __future__ import annotations

import re
import time
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
import time_machine
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from recording.accounts import second_factors
from recording.oauth.models import AuthenticatorApp, RecoveryCode
from tests.recording.accounts.two_step import (
    LOGIN,
    PAGE,
    PASSWORD,
    code_at,
    code_of,
    enter,
    is_logged_in,
    is_logged_in_by,
    make_account,
    make_app,
    password_step,
    post,
)


@pytest.fixture
def ada(db):
    return make_account()


@pytest.fixture
def app(ada) -> AuthenticatorApp:
    return make_app(ada)


# ── Setting it up ───────────────────────────────────────────────────────────────────


@pytest.fixture
def visitor(ada) -> Client:
    client = Client()
    client.post(LOGIN, {"username": "ada", "password": PASSWORD})
    return client


def set_up(visitor: Client) -> Any:
    """Set the app up as the page says; return the last page."""
    page = post(visitor, action="start", password=PASSWORD).content.decode()
    (key,) = re.findall(r'<code class="token">([A-Z2-7 ]+)</code>', page)
    assert page.partition("<main")[2].count("<svg") == 1
    assert "style=" not in page
    return post(visitor, code=code_at(key.replace(" ", ""), now=time.time()))


def test_setting_up_shows_recovery_codes_once_and_ends_other_sessions(visitor, ada):
    other = Client()
    other.post(LOGIN, {"username": "ada", "password": PASSWORD})
    page = set_up(visitor)
    codes = re.findall(r"<code>([a-z2-9-]{19})</code>", page.content.decode())
    assert len(codes) == 10
    assert "no-store" in page["Cache-Control"]
    assert codes[0] not in visitor.get(PAGE).content.decode()
    assert not is_logged_in(other)
    assert is_logged_in_by(codes[0])


def test_without_the_first_code_nothing_is_asked_for(visitor, ada):
    post(visitor, action="start", password=PASSWORD)
    assert post(visitor, code="000000x").status_code == 400
    client = Client()
    client.post(LOGIN, {"username": "ada", "password": PASSWORD})
    assert is_logged_in(client)


def test_the_key_of_an_app_is_shown_to_the_session_that_gave_the_password_only(
    visitor, ada
):
    other = Client()
    other.post(LOGIN, {"username": "ada", "password": PASSWORD})
    post(visitor, action="start", password=PASSWORD)
    app = AuthenticatorApp.objects.get()
    response = post(other, code="000000")
    assert (response.status_code, response.content) == (302, b"")
    post(other, code=code_of(app))
    assert second_factors.app_of(ada) is None
    assert post(visitor, code="000000").status_code == 400
    with time_machine.travel(timezone.now() + timedelta(minutes=11)):
        assert post(visitor, code=code_of(app)).status_code == 302
    assert second_factors.app_of(ada) is None


def test_the_code_of_the_set_up_logs_nobody_in(visitor, ada):
    with time_machine.travel(timezone.now(), tick=False):
        set_up(visitor)
        app = AuthenticatorApp.objects.get()
        assert not is_logged_in_by(code_of(app))


@pytest.mark.parametrize("action", ["start", "renew", "remove", "nothing"])
def test_a_wrong_password_changes_nothing_and_counts(visitor, app, action):
    for _ in range(9):
        response = post(visitor, action=action, password="guess")
        assert response.status_code == 400
    assert second_factors.app_of(app.user)
    assert not RecoveryCode.objects.exists()
    assert post(visitor, action=action, password="guess").status_code == 429


@pytest.fixture
def owner(app) -> Client:
    client = password_step()
    enter(client, code_of(app))
    return client


def test_removing_leaves_the_password_alone(owner, app, ada):
    second_factors.renew_recovery_codes(ada)
    response = post(owner, action="remove", password=PASSWORD)
    assert response["Location"] == PAGE
    assert not RecoveryCode.objects.exists()
    client = Client()
    client.post(LOGIN, {"username": "ada", "password": PASSWORD})
    assert is_logged_in(client)


def test_new_recovery_codes_replace_the_old_ones(owner, ada):
    old = second_factors.renew_recovery_codes(ada)[0]
    page = post(owner, action="renew", password=PASSWORD).content.decode()
    new = re.findall(r"<code>([a-z2-9-]{19})</code>", page)
    assert not second_factors.use(ada, old)
    assert second_factors.use(ada, new[0])


def test_an_app_in_use_is_not_replaced(owner, app):
    before = code_of(app)
    assert post(owner, action="start", password=PASSWORD)["Location"] == PAGE
    assert post(owner, code=before)["Location"] == PAGE
    assert code_of(app) == before


def test_the_page_needs_a_login(ada):
    assert Client().get(PAGE).status_code == 302


# ── Operators ───────────────────────────────────────────────────────────────────────


def test_an_operator_removes_a_lost_second_step(app, ada):
    out = StringIO()
    call_command("remove_second_factor", "ada", stdout=out)
    call_command("remove_second_factor", "ada", stdout=out)
    assert out.getvalue().splitlines() == ["removed", "there was none"]
    client = Client()
    client.post(LOGIN, {"username": "ada", "password": PASSWORD})
    assert is_logged_in(client)
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
    post(visitor, action="remove", password=PASSWORD)
    assert visitor.get("/admin/").status_code == 302
