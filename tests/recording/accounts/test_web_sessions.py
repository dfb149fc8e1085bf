"""The sessions of an account: listed without their keys, ended by their account alone."""

from __future__ import annotations

from datetime import timedelta

import pytest
import time_machine
from django.db import OperationalError
from django.test import Client
from django.utils import timezone

from recording.accounts import devices, web_sessions
from recording.oauth import prune
from recording.oauth.models import WebSession
from tests.factories import UserFactory
from tests.recording.accounts.browsers import (
    FIREFOX,
    LOGIN,
    PASSWORD,
    is_logged_in,
    log_in,
)

PAGE = "/accounts/sessions"


def listed(client: Client) -> list[web_sessions.Listed]:
    sessions: list[web_sessions.Listed] = client.get(PAGE).context["sessions"]
    return sessions


def key_of(client: Client) -> str:
    key = client.session.session_key
    assert key
    return key


def test_a_session_shows_its_device_address_and_times(ada):
    start = timezone.now()
    client = log_in(headers={"User-Agent": FIREFOX}, REMOTE_ADDR="192.0.2.7")
    (session,) = listed(client)
    assert (session.device, session.address) == ("Firefox on Linux", "192.0.2.7")
    assert session.is_current
    assert session.created_at == session.used_at
    with time_machine.travel(start + timedelta(hours=3)):
        client.get(PAGE)
        (session,) = listed(client)
        assert session.used_at
        assert session.created_at
        assert session.used_at - session.created_at > timedelta(hours=2)
    page = client.get(PAGE).content.decode()
    assert key_of(client) not in page
    assert "Firefox on Linux (this one)" in page


def test_sessions_of_the_admin_are_the_same_sessions(ada):
    client = log_in(path=f"{LOGIN}?next=/admin/")
    assert client.get("/admin/").status_code == 200
    assert len(listed(client)) == 1


def test_one_other_session_is_ended(ada):
    mine, other, third = log_in(), log_in(), log_in()
    target = next(one for one in listed(other) if one.is_current)
    response = mine.post(PAGE, {"session": target.id}, follow=True)
    assert "The session was ended." in response.content.decode()
    assert list(map(is_logged_in, (mine, other, third))) == [True, False, True]


def test_all_others_are_ended(ada):
    UserFactory.create(username="eve", password=PASSWORD)
    mine, other, eve = log_in(), log_in(), log_in("eve")
    mine.post(PAGE, {"others": "yes"})
    assert list(map(is_logged_in, (mine, other, eve))) == [True, False, True]


def test_ending_the_own_session_logs_out(ada):
    mine = log_in()
    response = mine.post(PAGE, {"session": listed(mine)[0].id})
    assert response["Location"] == "/accounts/login"
    assert not is_logged_in(mine)


@pytest.mark.parametrize("public_id", ["", "x", "a\x00b", "é" * 40])
def test_an_unknown_session_is_not_found(ada, public_id):
    assert log_in().post(PAGE, {"session": public_id}).status_code == 404


def test_nobody_ends_a_session_of_another_account(ada):
    UserFactory.create(username="eve", password=PASSWORD)
    mine, eve = log_in(), log_in("eve")
    for stolen in (listed(mine)[0].id, key_of(mine)):
        assert eve.post(PAGE, {"session": stolen}).status_code == 404
    assert is_logged_in(mine)


def test_a_login_gives_the_session_another_key(ada):
    client = Client()
    client.get(LOGIN)
    session = client.session
    session["planted"] = "yes"
    session.save()
    planted = str(session.session_key)
    client.cookies["sessionid"] = planted
    client.post(LOGIN, {"username": "ada", "password": PASSWORD})
    assert key_of(client) != planted
    assert not WebSession.objects.filter(session_key=planted).exists()


def test_a_session_ends_two_weeks_after_its_login_however_often_it_is_used(ada):
    start, client = timezone.now(), log_in()
    for days in (5, 10, 13):
        with time_machine.travel(start + timedelta(days=days)):
            assert is_logged_in(client)
    with time_machine.travel(start + timedelta(days=14, minutes=1)):
        assert not is_logged_in(client)
        assert prune.prune()["sessions"] == 1


def test_a_session_that_is_ended_during_a_request_stays_ended(ada, monkeypatch):
    client = log_in()
    now = timezone.now() + timedelta(hours=1)
    listed = web_sessions.listed

    def end_first(account, **options):
        web_sessions.end_others(account)
        return listed(account, **options)

    with time_machine.travel(now):
        monkeypatch.setattr(web_sessions, "listed", end_first)
        assert client.get(PAGE).status_code == 200
        monkeypatch.undo()
        assert not is_logged_in(client)


def test_a_page_opens_although_the_use_of_its_session_cannot_be_stored(
    ada, monkeypatch, caplog
):
    client = log_in()

    def fail(self) -> None:
        raise OperationalError("read-only")

    monkeypatch.setattr(web_sessions.SessionStore, "save", fail)
    with time_machine.travel(timezone.now() + timedelta(hours=1)):
        assert is_logged_in(client)
    assert "use of a session not stored" in caplog.text


def test_an_account_that_is_switched_off_loses_its_sessions(ada):
    client = log_in()
    ada.is_active = False
    ada.save()
    ada.is_active = True
    ada.save()
    assert not is_logged_in(client)


def test_a_login_during_a_deactivation_leaves_no_session(ada, monkeypatch):
    note_use = web_sessions._note_use

    def deactivate_first(request):
        ada.is_active = False
        ada.save()
        note_use(request)

    with monkeypatch.context() as patch:
        patch.setattr(web_sessions, "_note_use", deactivate_first)
        client = log_in()
    assert not WebSession.objects.filter(account=ada).exists()
    ada.is_active = True
    ada.save()
    assert not is_logged_in(client)


def test_sessions_of_an_earlier_password_are_not_listed(ada):
    log_in()
    ada.set_password("another horse")
    ada.save()
    assert web_sessions.listed(ada, current=None) == []


def test_no_text_of_a_session_is_its_key(ada):
    log_in()
    row = WebSession.objects.get(account=ada)
    assert row.session_key not in str(row)


@pytest.mark.parametrize(
    ("user_agent", "words"),
    [
        ("", "Unknown browser"),
        (
            (
                "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like "
                "Gecko) Chrome/130.0 Safari/537.36 Edg/130.0"
            ),
            "Edge on Windows",
        ),
        (
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1 "
                "(KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1"
            ),
            "Safari on iPhone",
        ),
        (
            (
                "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) "
                "Chrome/130.0 Mobile Safari/537.36"
            ),
            "Chrome on Android",
        ),
        ("curl/8.5.0", "curl"),
        ("<script>", "Unknown browser"),
    ],
)
def test_a_browser_is_told_in_plain_words(user_agent, words):
    assert devices.described(user_agent) == words
