"""Events about a tenant's subscriptions, for the subscriptions that name them."""

import json

import pytest

from gateway import alerts
from gateway.webhooks import PROFILE
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


def test_a_worker_tells_what_is_an_incident(endpoint, monkeypatch):
    queued: list[tuple[object, ...]] = []
    monkeypatch.setattr(alerts, "async_task", lambda *task: queued.append(task))
    hook = profiles.get(PROFILE).on_notice
    assert hook
    for kind in NoticeKind:
        hook(
            Notice(
                kind=kind,
                profile=PROFILE,
                owner="acme",
                endpoint_id=endpoint.public_id,
            )
        )
    kinds = [kind for _, kind, _ in queued]
    assert kinds == ["disabled", "recovered"]


def test_an_event_reaches_the_subscriptions_that_name_it(endpoint):
    names = {"profile": PROFILE, "event_types": ["endpoint.disabled"]}
    named = EndpointFactory.create(owner="acme", **names)
    EndpointFactory.create(profile=PROFILE, owner="acme", event_types=[])
    EndpointFactory.create(owner="other", **names)
    alerts.tell("disabled", endpoint.public_id)
    assert [delivery.endpoint for delivery in Delivery.objects.all()] == [named]
    data = json.loads(bytes(Event.objects.get().body))["data"]
    assert data["subscription_id"] == endpoint.public_id
    assert data["since"] == "2026-11-24T01:50:10.000000Z"
    assert data["error"] == "HTTP 500"
    assert_valid(
        data, dict(profiles.get(PROFILE).event_types["endpoint.disabled"].schema)
    )


def test_nothing_is_told_of_a_subscription_that_is_gone(endpoint):
    Endpoint.objects.update(deleted_at="2026-11-24T02:00:00Z")
    alerts.tell("disabled", endpoint.public_id)
    assert not Event.objects.exists()
