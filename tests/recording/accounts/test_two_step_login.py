"""The second step of a login: asked for everywhere, each code once, guesses locked out."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import quote

import pytest
import time_machine
from allauth.mfa.adapter import get_adapter
from allauth.mfa.models import Authenticator
from django.test import Client
from django.utils import timezone

from recording.accounts import second_factors
from tests.factories import UserFactory
from tests.recording.accounts.browsers import (
    LOGIN,
    PASSWORD,
    is_logged_in,
    logged_in,
)
from tests.recording.accounts.two_step import (
    STEP,
    code_of,
    enter,
    is_logged_in_by,
    make_app,
    password_step,
    wrong_code,
)
from tests.recording.oauth.flows import App
from tests.threads import at_once


@pytest.fixture
def app(ada) -> Authenticator:
    return make_app(ada)


# ── The login ───────────────────────────────────────────────────────────────────────


def test_the_password_alone_logs_nobody_in(app):
    client = password_step()
    assert not is_logged_in(client)
    assert client.get("/admin/").status_code == 302
    assert enter(client, wrong_code(app)).status_code == 200
    assert not is_logged_in(client)


@pytest.mark.parametrize(
    ("path", "leads"),
    [
        (LOGIN, "/accounts"),
        (f"{LOGIN}?next=/docs", "/docs"),
        (f"{LOGIN}?next=https://evil.example/", "/accounts"),
        (f"{LOGIN}?next=//evil.example/", "/accounts"),
        (f"{LOGIN}?next={STEP}", "/accounts"),
        (f"{LOGIN}?next=/admin/", "/admin/"),
    ],
)
def test_the_code_logs_in_and_leads_where_the_login_was_for(app, path, leads):
    client = password_step(path)
    before = client.session.session_key
    response = enter(client, code_of(app))
    assert (response.status_code, response["Location"]) == (302, leads)
    assert is_logged_in(client)
    assert client.session.session_key != before


def test_the_second_page_reads_no_address_of_its_own(app):
    client = password_step()
    response = client.post(f"{STEP}?next=/docs", {"code": code_of(app), "next": "/x"})
    assert response["Location"] == "/accounts"


def test_an_application_gets_its_consent_after_both_steps_only(app, ada):
    client = App.registered(Client())
    browser = password_step(f"{LOGIN}?next={quote(client.address())}")
    assert browser.get(client.address())["Location"].startswith(LOGIN)
    page = browser.get(STEP)
    assert "After the login you allow or deny it." in page.content.decode()
    assert "form-action" not in page["Content-Security-Policy"]
    assert enter(browser, code_of(app))["Location"].startswith("/oauth/authorize?")
    assert browser.get(client.address()).status_code == 200


def test_the_second_page_needs_a_first_one(app):
    assert Client().get(STEP)["Location"] == LOGIN
    assert enter(Client(), code_of(app))["Location"] == LOGIN


def test_the_first_step_lasts_for_ten_minutes(app):
    start, client = timezone.now(), password_step()
    with time_machine.travel(start + timedelta(minutes=11)):
        assert enter(client, code_of(app))["Location"] == LOGIN
        assert not is_logged_in(client)


@pytest.mark.parametrize("change", ["password", "inactive"])
def test_the_first_step_ends_with_the_password_and_the_account(app, ada, change):
    client = password_step()
    ada.set_password("another horse")
    ada.is_active = change != "inactive"
    ada.save()
    assert enter(client, code_of(app))["Location"] == LOGIN
    assert not is_logged_in(client)


def test_a_planted_session_takes_no_part_in_the_second_step(app):
    client = Client()
    session = client.session
    session["planted"] = "yes"
    session.save()
    client.cookies["sessionid"] = planted = str(session.session_key)
    client.post(LOGIN, {"username": "ada", "password": PASSWORD})
    thief = Client()
    thief.cookies["sessionid"] = planted
    assert thief.get(STEP)["Location"] == LOGIN


def test_another_account_logs_in_where_one_is_logged_in(app):
    client = logged_in(UserFactory.create(username="eve"))
    client.post(LOGIN, {"username": "ada", "password": PASSWORD})
    assert not is_logged_in(client)
    enter(client, code_of(app))
    assert "<bdi>ada</bdi>" in client.get("/accounts/clients").content.decode()


def test_the_second_page_needs_the_csrf_token(app):
    strict = Client(enforce_csrf_checks=True)
    strict.cookies["sessionid"] = str(password_step().session.session_key)
    assert enter(strict, code_of(app)).status_code == 403


# ── Codes ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("steps", "valid"), [(-2, False), (-1, True), (0, True), (1, True), (2, False)]
)
def test_a_clock_may_differ_by_half_a_minute(app, steps, valid):
    with time_machine.travel(timezone.now(), tick=False):
        used = second_factors.use(app.user, code_of(app, steps=steps))
        assert (used == app) is valid


def test_a_code_works_once_and_so_do_earlier_ones(app):
    with time_machine.travel(timezone.now(), tick=False):
        assert is_logged_in_by(code_of(app))
        assert not is_logged_in_by(code_of(app))
        assert not is_logged_in_by(code_of(app, steps=-1))
        assert is_logged_in_by(code_of(app, steps=1))


@pytest.mark.parametrize("kind", ["app", "recovery"])
@pytest.mark.django_db(transaction=True)
def test_of_eight_uses_of_one_code_at_once_one_succeeds(app, ada, kind):
    code = (
        code_of(app) if kind == "app" else second_factors.renew_recovery_codes(ada)[0]
    )
    used = at_once(8, lambda: second_factors.use(ada, code))
    assert sum(factor is not None for factor in used) == 1


def test_a_recovery_code_replaces_the_app_once(app, ada):
    first, second, *_ = second_factors.renew_recovery_codes(ada)
    assert is_logged_in_by(first.upper().replace("-", " "))
    assert not is_logged_in_by(first)
    assert is_logged_in_by(second)
    assert second_factors.unused_recovery_codes(ada) == 8


def test_only_hashes_and_encrypted_keys_are_stored(app, ada):
    codes = second_factors.renew_recovery_codes(ada)
    stored = str(list(Authenticator.objects.values_list("data", flat=True)))
    assert get_adapter().decrypt(app.data["secret"]) not in stored
    assert not any(code.replace("-", "") in stored for code in codes)


def test_an_account_has_no_use_of_anothers_codes(app, ada):
    eve = UserFactory.create(username="eve", password=PASSWORD)
    assert second_factors.renew_recovery_codes(eve) == []  # they would replace nothing
    make_app(eve)
    code = second_factors.renew_recovery_codes(eve)[0]
    assert not second_factors.use(ada, code)
    assert second_factors.use(eve, code)


# ── Guesses ─────────────────────────────────────────────────────────────────────────


def test_ten_wrong_codes_lock_the_name_for_the_address(app):
    client = password_step(REMOTE_ADDR="192.0.2.5")
    wrong = wrong_code(app)
    for _ in range(9):
        assert enter(client, wrong).status_code == 200
    assert enter(client, wrong).status_code == 429
    app.data["failures"] = 0
    app.save()
    assert enter(client, code_of(app)).status_code == 429
    form = {"username": "ada", "password": PASSWORD}
    assert client.post(LOGIN, form).status_code == 429
    assert not is_logged_in(client)


@pytest.mark.usefixtures("locks_at_three")
def test_the_right_password_does_not_reset_the_count(app):
    wrong = wrong_code(app)
    statuses = [enter(password_step(), wrong).status_code for _ in range(3)]
    assert statuses == [200, 200, 429]


def test_ten_wrong_codes_from_anywhere_lock_the_app_but_no_recovery_code(app, ada):
    recovery, start = second_factors.renew_recovery_codes(ada)[0], timezone.now()
    wrong = wrong_code(app)
    for number in range(2):
        enter(password_step(REMOTE_ADDR=f"192.0.2.{number}"), wrong)
    for _ in range(8):
        assert not second_factors.use(ada, wrong)
    client = password_step(REMOTE_ADDR="192.0.2.99")
    response = enter(client, code_of(app))
    assert response.status_code == 429
    assert int(response["Retry-After"]) == 900
    assert "Use a recovery code" in response.content.decode()
    assert enter(client, recovery).status_code == 302
    with time_machine.travel(start + timedelta(minutes=16)):
        assert is_logged_in_by(code_of(app))


def test_codes_share_the_rate_of_logins(app, settings):
    settings.OAUTH_RATES = settings.OAUTH_RATES | {"login": "2/minute"}
    client = password_step(REMOTE_ADDR="192.0.2.8")
    assert enter(client, wrong_code(app)).status_code == 200
    response = enter(client, code_of(app))
    assert response.status_code == 429
    assert not is_logged_in(client)


@pytest.mark.parametrize(
    "code", ["", " ", "0" * 41, "a\x00b", "٣٣٣٣٣٣", "é" * 16, "-" * 40, "1e5000"]
)
def test_a_malformed_code_is_refused_as_any_other(app, code):
    client = password_step()
    response = enter(client, code)
    assert response.status_code == 200
    assert 'role="alert"' in response.content.decode()
    assert not is_logged_in(client)
