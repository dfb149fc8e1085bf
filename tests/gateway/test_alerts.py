"""Alerts of a tenant: its address, and events for the subscriptions that name them."""

from __future__ import annotations

import json

import pytest
from django.core import mail

from gateway import alerts, configuration
from gateway.configuration.shapes import AlertEmail, Configuration, WebhookSettings
from gateway.models import TenantAlerts
from gateway.webhooks import PROFILE, matches
from tests.documented import assert_valid
from tests.webhooks_core.factories import EndpointFactory
from webhooks_core import profiles
from webhooks_core.models import Delivery, Endpoint, Event
from webhooks_core.profiles import Notice, NoticeKind

pytestmark = pytest.mark.django_db


@pytest.fixture
def endpoint() -> Endpoint:
    return EndpointFactory.create(
        profile=PROFILE,
        owner="acme",
        url="https://hooks.example.com/acme",
        status=Endpoint.Status.DISABLED,
        consecutive_failures=3,
        failed_attempts=3,
        alike_failures=3,
        failing_since="2026-11-24T01:48:46Z",
        disabled_at="2026-11-24T01:50:10Z",
        last_attempt_at="2026-11-24T01:50:10Z",
        last_outcome="http",
        last_error="HTTP 500",
    )


@pytest.fixture
def declared(monkeypatch) -> None:
    emails = (AlertEmail("acme", "ops@acme.example"),)
    current = Configuration(WebhookSettings(alert_emails=emails))
    monkeypatch.setattr(configuration, "current", lambda: current)


def test_the_events_are_for_subscriptions_that_name_them_alone():
    for kind in ("failing", "disabled", "recovered"):
        assert not matches([], f"endpoint.{kind}")
        assert not matches(["ingest.completed"], f"endpoint.{kind}")
        assert matches([f"endpoint.{kind}"], f"endpoint.{kind}")
    assert matches([], "ingest.completed")


def test_a_disabled_subscription_that_was_not_reported_causes_both_events(
    endpoint, monkeypatch
):
    queued: list[tuple[object, ...]] = []
    monkeypatch.setattr(alerts, "async_task", lambda *task: queued.append(task))
    hook = profiles.get(PROFILE).on_notice
    assert hook
    for kind, is_first in ((NoticeKind.DISABLED, True), (NoticeKind.ENABLED, False)):
        hook(
            Notice(
                kind=kind,
                profile=PROFILE,
                owner="acme",
                endpoint_id=endpoint.public_id,
                is_first=is_first,
            )
        )
    assert queued == [
        ("gateway.alerts.tell", ["failing", "disabled"], endpoint.public_id)
    ]


def test_an_event_reaches_the_subscriptions_that_name_it(endpoint):
    named = EndpointFactory.create(
        profile=PROFILE, owner="acme", event_types=["endpoint.disabled"]
    )
    EndpointFactory.create(profile=PROFILE, owner="acme", event_types=[])
    EndpointFactory.create(
        profile=PROFILE, owner="other", event_types=["endpoint.disabled"]
    )
    alerts.tell(["failing", "disabled"], endpoint.public_id)
    assert [delivery.endpoint for delivery in Delivery.objects.all()] == [named]
    event = Event.objects.get(type="endpoint.disabled")
    data = json.loads(bytes(event.body))["data"]
    assert data["subscription_id"] == endpoint.public_id
    assert data["since"] == "2026-11-24T01:50:10.000000Z"
    assert data["error"] == "HTTP 500"
    assert data["message"].startswith("Disabled since")
    kind = profiles.get(PROFILE).event_types["endpoint.disabled"]
    assert_valid(data, dict(kind.schema))
    assert mail.outbox == []


@pytest.mark.usefixtures("declared")
def test_one_email_goes_to_the_address_of_the_tenant(endpoint):
    alerts.tell(["failing", "disabled"], endpoint.public_id)
    [message] = mail.outbox
    assert message.to == ["ops@acme.example"]
    assert message.subject == "Signpost: a webhook is disabled"
    assert "Disabled since" in message.body
    assert endpoint.public_id in message.body


@pytest.mark.usefixtures("declared")
def test_the_address_of_the_admin_comes_before_that_of_the_configuration():
    assert alerts.alert_email("acme") == "ops@acme.example"
    assert alerts.alert_email("other") == ""
    row = TenantAlerts.objects.create(tenant="acme", email="night@acme.example")
    assert alerts.alert_email("acme") == "night@acme.example"
    row.email = ""
    row.save()
    assert alerts.alert_email("acme") == ""


@pytest.mark.usefixtures("declared")
def test_nothing_is_told_of_a_subscription_that_is_gone(endpoint, settings):
    Endpoint.objects.update(deleted_at="2026-11-24T02:00:00Z")
    alerts.tell(["failing"], endpoint.public_id)
    assert not Event.objects.exists()
    Endpoint.objects.update(deleted_at=None)
    settings.SENDS_EMAIL = False
    alerts.tell(["failing"], endpoint.public_id)
    assert Event.objects.count() == 1
    assert mail.outbox == []


def test_the_admin_keeps_addresses(admin_client):
    address = "/admin/gateway/tenantalerts/add/"
    fields = {"tenant": "acme", "email": "ops@acme.example"}
    assert admin_client.post(address, fields).status_code == 302
    assert TenantAlerts.objects.get().email == "ops@acme.example"
    assert (
        admin_client.post(address, fields | {"tenant": "b", "email": "x"}).status_code
        == 200
    )
