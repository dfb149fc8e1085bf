"""E-mails to an account about its webhooks."""

import pytest
from django.contrib.auth.models import User
from django.core import mail

from recording import alerts
from recording.webhooks import PROFILE
from tests.factories import UserFactory
from tests.webhooks_core.factories import EndpointFactory
from webhooks_core import profiles
from webhooks_core.models import Endpoint
from webhooks_core.profiles import Notice, NoticeKind

pytestmark = pytest.mark.django_db


@pytest.fixture
def endpoint() -> Endpoint:
    user = UserFactory.create(username="ada", email="ada@example.com")
    return EndpointFactory.create(
        profile=PROFILE,
        owner=str(user.pk),
        url="https://hooks.example.com/ada",
        status=Endpoint.Status.DISABLED,
        disabled_at="2026-11-24T01:58:46Z",
        consecutive_failures=3,
        failed_attempts=3,
        alike_failures=3,
        failing_since="2026-11-24T01:48:46Z",
        last_attempt_at="2026-11-24T01:58:46Z",
        last_outcome="http",
        last_error="HTTP 500",
        last_response="internal detail",
    )


@pytest.fixture
def queued(monkeypatch) -> list[tuple[str, ...]]:
    tasks: list[tuple[str, ...]] = []
    monkeypatch.setattr(alerts, "async_task", lambda *task: tasks.append(task))
    return tasks


def notice(kind: NoticeKind) -> Notice:
    return Notice(kind=kind, profile=PROFILE, owner="1", endpoint_id="ep_1")


@pytest.mark.parametrize("kind", alerts.SUBJECTS)
def test_the_profile_has_a_worker_send_an_email(queued, kind):
    hook = profiles.get(PROFILE).on_notice
    assert hook
    hook(notice(kind))
    assert queued == [("recording.alerts.send_email", kind.value, "ep_1")]


def test_nothing_is_queued_without_a_mail_server(queued, settings):
    settings.SENDS_EMAIL = False
    alerts.on_notice(notice(NoticeKind.DISABLED))
    assert queued == []


def test_the_email_says_since_when_why_and_what_to_do(endpoint, settings):
    settings.BASE_URL = "https://signpost.example"
    alerts.send_email("disabled", endpoint.public_id)
    [message] = mail.outbox
    assert (message.to, message.subject) == (
        ["ada@example.com"],
        "Signpost: your webhook is disabled",
    )
    for words in (
        "https://hooks.example.com/ada",
        "HTTP 500",
        "Account: ada",
        f"https://signpost.example/accounts/webhooks/endpoints/{endpoint.public_id}",
    ):
        assert words in message.body


def test_the_response_of_an_internal_receiver_is_left_out(endpoint):
    alerts.send_email("disabled", endpoint.public_id)
    Endpoint.objects.update(trusted=True)
    alerts.send_email("disabled", endpoint.public_id)
    shown, hidden = (message.body for message in mail.outbox)
    assert "internal detail" in shown
    assert "internal detail" not in hidden


def test_nobody_is_written_to_who_has_no_address_or_is_gone(endpoint):
    for change in ({"email": ""}, {"email": "ada@example.com", "is_active": False}):
        User.objects.update(**change)
        alerts.send_email("disabled", endpoint.public_id)
    Endpoint.objects.update(owner="0")
    alerts.send_email("disabled", endpoint.public_id)
    alerts.send_email("disabled", "ep_gone")
    assert mail.outbox == []
