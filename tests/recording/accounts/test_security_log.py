"""The security log of an account: what it holds, who sees it, and who gets an e-mail."""

from __future__ import annotations

from copy import copy
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from allauth.mfa.models import Authenticator
from allauth.mfa.webauthn.internal.auth import WebAuthn
from django.core import mail
from django.core.management import call_command
from django.utils import timezone

from recording.accounts import security_log
from recording.models import PersonalToken, SecurityEvent
from recording.oauth import prune
from tests.factories import UserFactory
from tests.recording.accounts.browsers import FIREFOX, PASSWORD, log_in
from tests.recording.oauth.flows import App

PAGE = "/accounts/security-log"

pytestmark = pytest.mark.django_db


@pytest.fixture
def worker(monkeypatch, django_capture_on_commit_callbacks) -> Any:
    """Collect what is queued while it is open, and run it as a worker does."""
    tasks: list[tuple[Any, dict[str, str]]] = []
    monkeypatch.setattr(
        security_log, "async_task", lambda *task, **more: tasks.append((task, more))
    )

    class Worker:
        def __enter__(self) -> None:
            self.commit = django_capture_on_commit_callbacks(execute=True)
            self.commit.__enter__()

        def __exit__(self, *error: object) -> None:
            self.commit.__exit__(*error)
            while tasks:
                (name, *arguments), more = tasks.pop(0)
                getattr(security_log, name.rpartition(".")[2])(*arguments, **more)

    return Worker()


def kinds(account: Any) -> list[str]:
    rows = SecurityEvent.objects.filter(account=account).order_by("pk")
    return list(rows.values_list("kind", flat=True))


def test_logins_are_recorded_with_address_and_device(ada, worker):
    with worker:
        for name in ("ada", "ada", "nobody"):
            log_in(name, "wrong")
    client = log_in(headers={"User-Agent": FIREFOX}, REMOTE_ADDR="192.0.2.7")
    client.get(PAGE)
    assert kinds(ada) == ["login_failed", "login"]
    assert SecurityEvent.objects.count() == 2
    failed, login = SecurityEvent.objects.order_by("pk")
    assert (failed.count, login.count) == (2, 1)
    assert (login.address, login.user_agent) == ("192.0.2.7", FIREFOX)
    page = client.get(PAGE).content.decode()
    assert "Wrong password or code" in page
    assert "2 times" in page
    assert "Firefox on Linux" in page


@pytest.mark.usefixtures("locks_at_three")
def test_a_lock_is_recorded_once_a_day(ada, worker):
    with worker:
        for _ in range(5):
            log_in(password="wrong")
    assert kinds(ada) == ["login_failed", "locked"]
    with time_machine.travel(timezone.now() + timedelta(days=1)), worker:
        log_in(password="wrong")
    assert kinds(ada) == ["login_failed", "locked", "login_failed"]


def test_a_connection_is_recorded_from_consent_to_its_end(ada, worker):
    client = log_in()
    with worker:
        app = App.registered(client)
        pair = app.tokens()
        for _ in range(2):
            pair = app.refresh(pair["refresh_token"]).json()
        app.revoke(pair["refresh_token"])
        app.revoke(pair["refresh_token"])
    assert kinds(ada) == ["login", "consent", "connected", "refreshed", "disconnected"]
    assert SecurityEvent.objects.get(kind="refreshed").count == 2
    subjects = SecurityEvent.objects.exclude(kind="login").values_list("subject")
    assert set(subjects) == {("Notebook",)}
    (message,) = mail.outbox
    assert message.to == ["ada@example.org"]
    assert message.subject == "Signpost: An application was connected"
    assert "An application was connected: Notebook." in message.body
    assert "/accounts/security-log" in message.body


@pytest.mark.parametrize("kind", ["token_reused", "code_replayed"])
def test_an_alarm_is_recorded_and_mailed_once(ada, worker, settings, kind):
    settings.OAUTH_REFRESH_LEEWAY = 0
    app = App.registered(log_in())
    code = app.code()
    pair = app.exchange(code).json()
    assert app.refresh(pair["refresh_token"]).status_code == 200
    with worker:
        for _ in range(3):
            again = (
                app.refresh(pair["refresh_token"])
                if kind == "token_reused"
                else app.exchange(code)
            )
            assert again.json()["error"] == "invalid_grant"
    alarm = SecurityEvent.objects.get(kind=kind)
    assert (alarm.account, alarm.count) == (ada, 3)
    assert [message.subject for message in mail.outbox] == [f"Signpost: {alarm}"]


def test_changes_of_password_tokens_and_second_step_are_recorded(ada, worker):
    client = log_in()
    new = {"new_password1": "battery staple 7", "new_password2": "battery staple 7"}
    WebAuthn.add(ada, "Phone", {})
    with worker:
        client.post("/accounts/tokens", {"name": "CI", "days": "7"})
        token = PersonalToken.objects.get().pk
        client.post("/accounts/tokens/revoke", {"token": token})
        client.post("/accounts/sessions", {"others": "yes"})
        client.post("/accounts/password", {"old_password": PASSWORD} | new)
        call_command("remove_second_factor", "ada")
    assert kinds(ada) == [
        "login",
        "token_created",
        "token_revoked",
        "sessions_ended",
        "password_changed",
        "second_step_removed",
    ]
    assert [message.subject for message in mail.outbox] == [
        "Signpost: The password was changed",
        "Signpost: The second step was removed",
    ]


@pytest.mark.parametrize(
    "kind", ["app_added", "app_removed", "passkey_added", "passkey_removed"]
)
def test_a_change_of_the_second_step_is_mailed(ada, worker, kind):
    with worker:
        security_log.record(security_log.Kind(kind), ada)
    (message,) = mail.outbox
    assert message.subject == f"Signpost: {security_log.Kind(kind).label}"


def test_one_passkey_goes_alone_and_the_last_with_all(ada):
    client = log_in()
    first, last = [WebAuthn.add(ada, f"Key {number}", {}).instance for number in "12"]
    other = WebAuthn.add(UserFactory.create(), "Other", {}).instance

    def remove(passkey: Authenticator) -> int:
        address = f"/accounts/two-step/passkeys/{passkey.pk}/remove"
        return client.post(address).status_code

    assert [remove(row) for row in (other, first, last)] == [404, 302, 302]
    assert list(Authenticator.objects.all()) == [other]
    assert kinds(ada)[-2:] == ["passkey_removed", "second_step_removed"]
    assert SecurityEvent.objects.get(kind="passkey_removed").subject == "Key 1"


def test_all_applications_are_disconnected_after_a_question(ada):
    client = log_in()
    app = App.registered(client)
    pair = app.tokens()
    asked = client.post("/accounts/clients", {"all": "ask"})
    assert 'value="confirmed"' in asked.content.decode()
    assert app.refresh(pair["refresh_token"]).status_code == 200
    client.post("/accounts/clients", {"all": "confirmed"})
    assert "No application acts" in client.get("/accounts/clients").content.decode()
    assert app.refresh(pair["refresh_token"]).status_code == 400
    assert "disconnected" in kinds(ada)


def test_nobody_sees_the_log_of_another_account(ada):
    client = log_in()
    eve = UserFactory.create(username="eve")
    security_log.record(security_log.Kind.LOCKED, eve)
    assert "locked" not in client.get(PAGE).content.decode()
    assert client.post(PAGE).status_code == 405


def test_pages_hold_fifty_events_and_lead_to_older_ones(ada):
    client = log_in()
    row = SecurityEvent(account=ada, kind=security_log.Kind.TOKEN_CREATED)
    SecurityEvent.objects.bulk_create(copy(row) for _ in range(60))
    first = client.get(PAGE)
    assert len(first.context["rows"]) == 50
    older = client.get(f"{PAGE}?before={first.context['older']}")
    assert len(older.context["rows"]) == 11
    assert older.context["older"] is None
    for text in ("x", "-1", "1" * 40, "\x00", "٣"):
        assert len(client.get(PAGE, {"before": text}).context["rows"]) == 50


def test_without_a_broker_the_event_is_recorded(
    ada, monkeypatch, django_capture_on_commit_callbacks
):
    def fail(*_: Any) -> None:
        raise ConnectionError

    monkeypatch.setattr(security_log, "async_task", fail)
    with django_capture_on_commit_callbacks(execute=True):
        security_log.record(security_log.Kind.CONNECTED, ada)
    assert kinds(ada) == ["connected"]


def test_old_events_are_deleted(ada, settings):
    settings.SECURITY_LOG_DAYS = 30
    for days in (29, 31):
        SecurityEvent.objects.create(
            account=ada, kind="login", at=timezone.now() - timedelta(days=days)
        )
    assert prune.prune()["security events"] == 1


def test_operators_read_the_log_and_change_nothing(admin_client, ada):
    security_log.record(security_log.Kind.LOCKED, ada)
    row = SecurityEvent.objects.get(account=ada)
    page = admin_client.get("/admin/recording/securityevent/").content.decode()
    assert "Logins were locked" in page
    address = f"/admin/recording/securityevent/{row.pk}/"
    assert admin_client.get(f"{address}change/").status_code == 200
    assert admin_client.post(f"{address}delete/").status_code == 403
