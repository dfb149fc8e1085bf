"""The policy writer: denials are stored, and published when a publisher is wired."""

from __future__ import annotations

from typing import Any

import pytest

from gateway import policy
from gateway.identity import Caller
from gateway.models import PolicyDecision

pytestmark = pytest.mark.django_db

ADA = Caller("acme", "ada")


@pytest.fixture(autouse=True)
def unwired():
    before = list(policy._publishers)
    policy.wire(None)
    yield
    policy._publishers[:] = before


def deny(**fields) -> PolicyDecision:
    given: dict[str, Any] = {
        "caller": ADA,
        "action": "chat.completions",
        "resource": "model:large",
        "reason": "not_found_or_forbidden",
        "request_id": "req-1",
        "trace_id": "a" * 32,
    }
    return policy.record_denial(**(given | fields))


@pytest.mark.spec("gateway", "audit.policy_violation: emitter is the policy writer")
def test_a_denial_is_stored_with_who_what_and_why():
    decision = deny()
    assert PolicyDecision.objects.values(
        "tenant", "principal", "action", "resource", "reason", "allowed", "request_id"
    ).get() == {
        "tenant": "acme",
        "principal": "ada",
        "action": "chat.completions",
        "resource": "model:large",
        "reason": "not_found_or_forbidden",
        "allowed": False,
        "request_id": "req-1",
    }
    assert decision.public_id.startswith("pol_")


def test_a_wired_publisher_is_given_the_decision():
    given: list[PolicyDecision] = []
    policy.wire(given.append)
    decision = deny()
    assert given == [decision]


def test_a_publisher_that_fails_leaves_the_decision_stored(caplog):
    def fail(_: PolicyDecision) -> None:
        PolicyDecision.objects.all().delete()
        raise RuntimeError("away")

    policy.wire(fail)
    deny()
    assert PolicyDecision.objects.count() == 1
    assert "policy event not published" in caplog.text


def test_a_hostile_resource_is_stored_as_far_as_a_database_can():
    decision = deny(resource="model:" + "\x00\ud800é" + "x" * 1000)
    decision.refresh_from_db()
    assert decision.resource.startswith("model:\ufffd?éxx")
    assert len(decision.resource) == 255
