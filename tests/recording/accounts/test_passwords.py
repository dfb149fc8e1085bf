"""The password of an account: changed, reset by e-mail, and what ends with it."""

from __future__ import annotations

import re
from typing import Any

import pytest
import time_machine
from django.core import mail
from django.core.cache import cache
from django.test import Client
from django.utils import timezone

from recording.accounts import passwords, personal_tokens
from recording.oauth import access
from tests.factories import UserFactory
from tests.recording.accounts.browsers import PASSWORD as OLD
from tests.recording.accounts.browsers import is_logged_in, log_in, logged_in
from tests.recording.oauth.flows import App

PAGE, RESET = "/accounts/password", "/accounts/password/reset"
NEW = "battery staple 7"


@pytest.fixture
def queued(monkeypatch) -> list[tuple[str, str]]:
    """The tasks that were queued; `send()` runs them as a worker does."""
    calls: list[tuple[str, str]] = []
    monkeypatch.setattr(passwords, "async_task", lambda *call: calls.append(call))
    return calls


def change(client: Client, old: str = OLD, new: str = NEW, **more: str) -> Any:
    form = {"old_password": old, "new_password1": new, "new_password2": new}
    return client.post(PAGE, form | more)


def link_of(queued: list[tuple[str, str]]) -> str:
    """Run what was queued, and return the address in the last e-mail."""
    while queued:
        name, email = queued.pop()
        assert name == "recording.accounts.passwords.send_reset"
        passwords.send_reset(email)
    (found,) = re.findall(r"https?://\S+", str(mail.outbox[-1].body))
    return str(found)


def access_of(client: Client, ada) -> tuple[str, str]:
    """Return an access token of an application, and a personal token."""
    application = App.registered(client).tokens()
    return application["access_token"], personal_tokens.create(user=ada, days=1).text


def are_alive(pair: tuple[str, str]) -> list[bool]:
    return [
        access.authenticate(pair[0]) is not None,
        personal_tokens.authenticate(pair[1]) is not None,
    ]


@pytest.mark.parametrize(
    ("ticked", "alive"), [({"end_access": "on"}, False), ({}, True)]
)
def test_a_change_ends_other_sessions_and_what_the_form_says(ada, ticked, alive):
    mine, other = log_in(), log_in()
    pair, before = access_of(mine, ada), mine.session.session_key
    response = change(mine, **ticked)
    assert (response.status_code, response["Location"]) == (302, PAGE)
    assert [is_logged_in(mine), is_logged_in(other)] == [True, False]
    assert mine.session.session_key != before
    assert are_alive(pair) == [alive, alive]
    assert is_logged_in(log_in(password=NEW))
    assert not is_logged_in(log_in())


def test_the_form_ends_access_unless_somebody_unticks_it(ada):
    assert 'name="end_access" checked' in log_in().get(PAGE).content.decode()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("wrong", NEW, "Your old password was entered incorrectly"),
        (OLD, "ada", "too similar to the username"),
        (OLD, "12345678", "entirely numeric"),
        (OLD, "password", "too common"),
    ],
)
def test_a_change_that_is_refused_changes_nothing(ada, old, new, said):
    mine, other = log_in(), log_in()
    response = change(mine, old, new, end_access="on")
    assert said in response.content.decode()
    assert is_logged_in(mine)
    assert is_logged_in(other)
    assert is_logged_in(log_in())


@pytest.mark.usefixtures("locks_at_three")
def test_guesses_of_the_old_password_count_towards_the_lock(ada):
    mine = log_in()
    statuses = [change(mine, "guess").status_code for _ in range(3)]
    assert statuses == [200, 200, 429]
    assert change(mine).status_code == 429
    assert not is_logged_in(log_in())


def test_changes_and_resets_are_limited_like_logins(ada, settings):
    settings.OAUTH_RATES = settings.OAUTH_RATES | {"login": "1/minute"}
    for path in (PAGE, RESET):
        client = logged_in(ada, REMOTE_ADDR="192.0.2.9")
        client.post(path, {"email": "nobody"})
        assert client.post(path, {"email": "nobody"}).status_code == 429
        cache.clear()


def test_the_admins_own_page_leads_here(ada):
    response = log_in().get("/admin/password_change/")
    assert response["Location"] == PAGE


# ── Reset by e-mail ─────────────────────────────────────────────────────────────────


def test_a_reset_ends_every_session_and_logs_nobody_in(ada, queued, settings):
    settings.BASE_URL = "https://signpost.example"
    signed_in, stranger = log_in(), Client()
    pair = access_of(signed_in, ada)
    stranger.post(RESET, {"email": "ADA@example.org"}, headers={"Host": "localhost"})
    link = link_of(queued)
    assert link.startswith("https://signpost.example/accounts/password/reset/")
    page = stranger.get(link.removeprefix("https://signpost.example"), follow=True)
    form = {"new_password1": NEW, "new_password2": NEW, "end_access": "on"}
    address = page.redirect_chain[-1][0]
    assert stranger.post(address, form)["Location"] == "/accounts/login"
    assert not is_logged_in(stranger)
    assert not is_logged_in(signed_in)
    assert are_alive(pair) == [False, False]
    assert is_logged_in(log_in(password=NEW))
    again = Client().get(link.removeprefix("https://signpost.example"))
    assert "This link is not valid." in again.content.decode()


def test_every_address_gets_the_same_answer_after_the_same_work(
    ada, queued, django_assert_num_queries
):
    pages = []
    for email in ("ada@example.org", "nobody@example.org"):
        client = Client()
        with django_assert_num_queries(0):
            response = client.post(RESET, {"email": email})
        assert response["Location"] == "/accounts/password/reset/sent"
        pages.append(client.get(response["Location"]).content)
        assert queued.pop()[1] == email
    assert pages[0] == pages[1]


def test_nobody_unknown_inactive_or_flooded_gets_an_email(ada):
    UserFactory.create(email="off@example.org", password=OLD, is_active=False)
    UserFactory.create(email="machine@example.org", password=None)
    for name in ("off", "machine", "nobody", "ada", "ada", "ADA"):
        passwords.send_reset(f"{name}@example.org")
    assert [message.to for message in mail.outbox] == [["ada@example.org"]]


def test_an_account_gets_one_email_a_minute_from_all_workers(ada):
    with time_machine.travel(timezone.now(), tick=False) as clock:
        for _ in range(3):
            cache.clear()  # without a Redis each process has a cache of its own
            passwords.send_reset("ada@example.org")
        assert len(mail.outbox) == 1
        clock.shift(61)
        passwords.send_reset("ada@example.org")
    assert len(mail.outbox) == 2


@pytest.mark.parametrize("tail", ["", "/sent", "/MQ/x"])
def test_without_email_there_is_no_reset(ada, settings, tail):
    assert RESET in Client().get("/accounts/login").content.decode()
    settings.SENDS_EMAIL = False
    assert Client().get(RESET + tail).status_code == 404
    assert Client().post(RESET + tail).status_code == 404
    assert RESET not in Client().get("/accounts/login").content.decode()


@pytest.mark.parametrize("uid", ["MQ", "x", "OTk5OTk5OTk5OTk5OTk5OTk5OTk5", "AA"])
def test_a_link_that_was_made_up_opens_nothing(ada, uid):
    for token in ("set-password", "abc-123", "%00"):
        response = Client().get(f"{RESET}/{uid}/{token}")
        assert "This link is not valid." in response.content.decode()


def test_the_log_holds_no_token_of_a_link(ada, queued, caplog):
    client = Client()
    client.post(RESET, {"email": "ada@example.org"})
    path = link_of(queued).partition("/accounts")[2]
    client.get(f"/accounts{path}")
    assert "/accounts/password/reset/" in caplog.text
    assert path.rpartition("/")[2] not in caplog.text
