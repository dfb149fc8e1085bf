"""Events about a tenant's subscriptions, and those that an operator emits."""

import json
from io import StringIO

import orjson
import pytest
from django.core.management import CommandError, call_command

from gateway import alerts
from gateway.event_types import EVENT_TYPES
from gateway.webhooks import PROFILE
from tests.documented import assert_valid
from tests.gateway.client import stripe_accepts
from tests.receiver import receiver
from tests.webhooks_core.engine import dispatch
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


# ── Events of an operator: every defined type, with given data or the sample ──────────


def emit(event_type: str, *arguments: str, tenant: str = "acme") -> str:
    out = StringIO()
    call_command("emit_event", event_type, "--tenant", tenant, *arguments, stdout=out)
    return out.getvalue().strip()


@pytest.mark.django_db(transaction=True)
@pytest.mark.spec("gateway", "Events: every type")
def test_an_operator_can_emit_every_defined_type(acme):
    event_types = [name for name in EVENT_TYPES if name != "webhook.test"]
    with receiver(204) as subscriber:
        subscription = acme.create(subscriber.url, event_types=event_types)
        emitted = {emit(event_type): event_type for event_type in event_types}
        dispatch()
    assert len(subscriber.requests) == len(event_types)
    for request in subscriber.requests:
        assert stripe_accepts(request, subscription["secret"])
        body = orjson.loads(request.body)
        assert body["type"] == emitted.pop(body["id"])
        assert body["data"] == EVENT_TYPES[body["type"]].sample
        assert (body["tenant_id"], body["principal_id"]) == ("acme", "system")


def test_emitted_data_may_be_given_and_come_from_a_file(tmp_path):
    emit("drift.detected", "--data", '{"value":1}')
    file = tmp_path / "data.json"
    file.write_text('{"value":2.5}')
    emit("drift.detected", "--file", str(file))
    one, two = Event.objects.order_by("id").values_list("body", flat=True)
    assert b'"data":{"value":1}' in bytes(one)
    assert b'"data":{"value":2.5}' in bytes(two)


@pytest.mark.parametrize(
    ("event_type", "arguments", "words"),
    [
        ("webhook.test", (), "invalid choice"),
        ("drift.detected", ("--tenant", "a b"), "tenant: "),
        ("drift.detected", ("--file", "/none"), "No such file"),
        ("drift.detected", ("--data", "{"), "--data: not JSON"),
        ("drift.detected", ("--data", "[]"), "a JSON object"),
        ("drift.detected", ("--data", '{"a": "\ud800"}'), "--data: not JSON"),
        (
            "drift.detected",
            ("--data", '{"a":' + "[" * 253 + "]" * 253 + "}"),
            "nested too deeply",
        ),
    ],
)
def test_what_cannot_be_emitted_is_told_and_stores_nothing(
    event_type, arguments, words
):
    with pytest.raises(CommandError, match=words):
        emit(event_type, *arguments)
    assert not Event.objects.exists()
