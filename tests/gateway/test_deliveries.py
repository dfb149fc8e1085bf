"""What reaches subscribers: envelope, headers, signature, retries, and the records of it."""

import hashlib
import hmac
import re
import time
from dataclasses import replace
from datetime import timedelta

import orjson
import pytest
from django.utils import timezone

from tests.clock import travel
from tests.gateway.client import INGEST, stripe_accepts
from tests.receiver import receiver
from tests.threads import at_once
from tests.webhooks_core.engine import dispatch
from webhooks_core import endpoints, profiles
from webhooks_core.models import Delivery, Endpoint
from webhooks_core.profiles import RetryPolicy

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.spec("gateway", "updated_at changes only when the subscription changes")
def test_an_attempt_moves_last_attempt_at_and_a_change_updated_at(acme):
    with receiver(204) as subscriber:
        subscription = acme.create(subscriber.url)
        acme.test(subscription)
        dispatch()
    tried = acme.get(f"/{subscription['id']}")
    assert subscription["last_attempt_at"] is None
    assert tried["last_attempt_at"] > subscription["updated_at"] == tried["updated_at"]
    changed = acme.patch(subscription, description="new")
    assert changed["updated_at"] > tried["last_attempt_at"]
    assert changed["last_attempt_at"] == tried["last_attempt_at"]
    assert acme.get()["items"] == [changed]


@pytest.mark.spec("gateway", "Webhook event envelope")
def test_an_ingested_document_arrives_in_an_envelope_of_exactly_eight_fields(acme):
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    with receiver(204) as subscriber:
        acme.create(subscriber.url)
        response = acme.call(
            "POST",
            INGEST,
            {"text": "Ships give way.", "title": "Harbour"},
            headers={
                "X-Request-Id": "req-7",
                "traceparent": f"00-{trace}-00f067aa0ba902b7-01",
            },
        )
        assert dispatch() == 1
    body = orjson.loads(subscriber.requests[0].body)
    assert re.fullmatch(r"evt_[0-9a-v]{26}", body["id"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", body["created_at"])
    expected = {
        "id": body["id"],
        "type": "ingest.completed",
        "tenant_id": "acme",
        "created_at": body["created_at"],
        "data": response.json(),
        "request_id": "req-7",
        "principal_id": "ada",
        "trace_id": trace,
    }
    assert list(body.items()) == list(expected.items())


@pytest.mark.spec("gateway", "Delivery headers")
@pytest.mark.spec("gateway", "X-Gateway-Signature: t=<unix_ts>,v1=<hex_hmac_sha256>")
@pytest.mark.spec("gateway", "management paths carry /v1, chat /v2, the signature v1")
def test_a_delivery_carries_its_headers_and_stripe_verifies_it(acme):
    with receiver(204) as subscriber:
        secret = acme.create(subscriber.url)["secret"]
        before = int(time.time())
        response = acme.ingest()
        dispatch()
    [request] = subscriber.requests
    body = orjson.loads(request.body)
    assert body["request_id"] == response["X-Request-Id"]
    assert re.fullmatch(r"[0-9a-f]{32}", body["trace_id"])
    stamp = request.headers["X-Gateway-Timestamp"]
    assert before <= int(stamp) <= time.time()
    expected = hmac.new(
        secret.encode(), stamp.encode() + b"." + request.body, hashlib.sha256
    ).hexdigest()
    assert request.headers["X-Gateway-Signature"] == f"t={stamp},v1={expected}"
    assert request.headers["X-Gateway-Event"] == "ingest.completed"
    assert request.headers["X-Gateway-Delivery"] == body["id"]
    assert request.headers["Content-Type"] == "application/json"
    assert stripe_accepts(request, secret)
    assert not stripe_accepts(request, secret + "x")
    assert not stripe_accepts(replace(request, body=request.body + b" "), secret)


@pytest.mark.spec(
    "gateway", "default 3 attempts, backoff 0.5 s doubling, capped at 30 s"
)
def test_the_default_policy_is_the_specifications():
    policy = profiles.get("gateway").retry
    assert (policy.max_attempts, policy.delays, policy.jitter) == (3, (0.5, 1.0), 0)
    assert profiles.get("gateway").timeout_s == 10
    long = RetryPolicy.exponential(base=0.5, cap=30, max_attempts=10)
    assert long.delays == (0.5, 1, 2, 4, 8, 16, 30, 30, 30)


@pytest.mark.spec("gateway", "Inactive subscriptions do not receive events")
def test_an_inactive_subscription_receives_nothing_then_or_later(acme):
    with receiver(204) as subscriber:
        subscription = acme.create(subscriber.url)
        acme.patch(subscription, active=False)
        refused = acme.test(subscription)
        answer = refused.status_code, refused.json()["detail"]
        assert answer == (409, "The subscription is inactive.")
        acme.ingest("one")
        assert dispatch() == 0
        acme.patch(subscription, active=True)
        assert dispatch() == 0
        acme.ingest("two")
        assert dispatch() == 1
    assert acme.deliveries(subscription)[0]["status"] == "delivered"
    assert len(subscriber.requests) == len(acme.deliveries(subscription)) == 1


def test_what_waits_ends_as_failed_with_the_reason(acme):
    with receiver(500) as subscriber:
        subscription = acme.create(subscriber.url)
        acme.ingest()
        dispatch()
        acme.patch(subscription, active=False)
        acme.patch(subscription, active=True)
        with travel(timezone.now() + timedelta(minutes=1)):
            assert dispatch() == 0
    delivery = Delivery.objects.get()
    assert (delivery.status, delivery.attempts) == (Delivery.Status.FAILED, 1)
    assert delivery.last_error == "endpoint inactive"
    assert len(subscriber.requests) == 1


@pytest.mark.spec(
    "gateway",
    "event_types: an empty list means all",
    "every matching active subscription in the tenant",
)
def test_events_go_to_every_matching_subscription_of_the_tenant_alone(acme, globex):
    all_types = acme.create()["id"]
    matching = acme.create(event_types=["drift.detected", "ingest.completed"])["id"]
    acme.create(event_types=["drift.detected"])
    acme.create(active=False)
    globex.create()
    acme.ingest()
    receiving = Delivery.objects.values_list("endpoint__public_id", flat=True)
    assert set(receiving) == {all_types, matching}


@pytest.mark.spec("gateway", "enabled")
def test_switched_off_webhooks_send_nothing_and_leave_the_api_working(
    acme, monkeypatch
):
    disabled = replace(profiles.get("gateway"), enabled=False)
    monkeypatch.setitem(profiles.PROFILES, "gateway", disabled)
    with receiver(204) as subscriber:
        subscription = acme.create(subscriber.url)
        assert acme.ingest().status_code == 201
        assert acme.test(subscription).status_code == 409
        assert dispatch() == 0
    assert acme.patch(subscription, description="works")["description"] == "works"
    assert acme.deliveries(subscription) == []
    assert subscriber.requests == []


@pytest.mark.spec("gateway", "Delivery semantics 3")
@pytest.mark.spec(
    "gateway", "a slow or failing subscriber never delays or fails the request"
)
def test_a_subscriber_that_cannot_be_reached_fails_nobody(acme, free_port):
    acme.create(f"http://127.0.0.1:{free_port}/hook")
    assert acme.ingest().status_code == 201
    assert dispatch() == 1
    assert Delivery.objects.get().last_error == "the connection was refused"


# ── Rotation: two signatures while the old secret is honoured ───────────────────────


@pytest.mark.spec("gateway", "X-Gateway-Signature during a rotation: two v1=")
@pytest.mark.spec("gateway", "A rotation without overlap ends every older secret")
def test_a_rotated_secret_signs_beside_the_old_one_until_the_overlap_ends(acme):
    with receiver(204) as subscriber:
        subscription = acme.create(subscriber.url)
        new = rotate(subscription["id"], overlap=2)
        acme.test(subscription)
        dispatch()
        with travel(timezone.now() + timedelta(hours=2, seconds=1)):
            acme.test(subscription)
            dispatch()
        last = rotate(subscription["id"])
        acme.test(subscription)
        dispatch()
    both, after, ended = subscriber.requests
    assert both.headers["X-Gateway-Signature"].count("v1=") == 2
    assert stripe_accepts(both, new)
    assert stripe_accepts(both, subscription["secret"])
    assert after.headers["X-Gateway-Signature"].count("v1=") == 1
    assert stripe_accepts(after, new, tolerance=None)
    assert not stripe_accepts(after, subscription["secret"], tolerance=None)
    # The first one still had an overlap, and so had the second.
    assert stripe_accepts(ended, last)
    assert not stripe_accepts(ended, new)
    assert not stripe_accepts(ended, subscription["secret"])


def test_the_oldest_of_too_many_secrets_end(acme):
    subscription = acme.create()
    secrets = [rotate(subscription["id"], overlap=168) for _ in range(12)]
    left = Endpoint.objects.get().secrets(now=timezone.now())
    assert left == secrets[:1:-1]


def test_of_rotations_at_once_one_secret_is_left(acme):
    subscription = acme.create()
    target = Endpoint.objects.get()
    secrets = at_once(4, lambda: endpoints.rotate_secret(target))
    assert len(set(secrets)) == 4
    [left] = target.secrets(now=timezone.now())
    assert left in secrets
    assert acme.get(f"/{subscription['id']}")["updated_at"] > subscription["updated_at"]


def rotate(subscription_id: str, *, overlap: int = 0) -> str:
    """Rotate with an overlap in hours."""
    target = Endpoint.objects.get(public_id=subscription_id)
    return endpoints.rotate_secret(target, overlap=timedelta(hours=overlap))
