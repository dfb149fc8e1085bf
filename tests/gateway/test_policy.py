"""The policy writer: denials are stored, and published."""

import orjson
import pytest
from django.db import connection

from gateway import events, policy
from gateway.identity import Caller
from gateway.models import PolicyDecision
from webhooks_core.models import Event
from webhooks_core.times import iso

pytestmark = pytest.mark.django_db


def deny(resource: str = "model:large") -> PolicyDecision:
    return policy.record_denial(
        caller=Caller("acme", "ada"),
        action="chat.completions",
        resource=resource,
        reason="not_found_or_forbidden",
        request_id="req-1",
        trace_id="a" * 32,
    )


def fail(_: PolicyDecision) -> None:
    PolicyDecision.objects.all().delete()
    raise RuntimeError("away")


def break_transaction(_: PolicyDecision) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM no_such_table")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("failure", [fail, break_transaction])
def test_a_failure_to_publish_leaves_the_decision_stored(monkeypatch, caplog, failure):
    monkeypatch.setattr(events, "publish_violation", failure)
    deny()
    assert PolicyDecision.objects.count() == 1
    assert "policy event not published" in caplog.text


def test_a_hostile_resource_is_stored_as_far_as_a_database_can():
    decision = deny("model:" + "\x00\ud800é" + "x" * 1000)
    decision.refresh_from_db()
    assert decision.resource.startswith("model:\ufffd?éxx")
    assert len(decision.resource) == 255


@pytest.mark.spec(
    "gateway",
    "audit.policy_violation: a policy decision denies an action",
    "audit.policy_violation: emitter is the policy writer",
)
def test_a_denial_reaches_the_tenants_subscribers(acme, globex):
    made, theirs = acme.create(), globex.create()
    acme.create(event_types=["ingest.completed"])
    decision = deny()
    assert decision.public_id.startswith("pol_")
    event = Event.objects.get()
    assert orjson.loads(bytes(event.body)) == {
        "id": event.public_id,
        "type": "audit.policy_violation",
        "tenant_id": "acme",
        "created_at": iso(event.created_at),
        "data": {
            "decision_id": decision.public_id,
            "decision": "denied",
            "principal_id": "ada",
            "action": "chat.completions",
            "resource": "model:large",
            "reason": "not_found_or_forbidden",
            "decided_at": iso(decision.created_at),
        },
        "request_id": "req-1",
        "principal_id": "ada",
        "trace_id": "a" * 32,
    }
    assert [item["event_id"] for item in acme.deliveries(made)] == [event.public_id]
    assert globex.deliveries(theirs) == []
