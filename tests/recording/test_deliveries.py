"""Delivery records: their fields, their pages, and whole deliveries to a real receiver."""

from __future__ import annotations

from datetime import timedelta

import orjson
import pytest
import time_machine
from django.utils import timezone

from recording.library import importing
from recording.webhooks import SUMMARY_COMPLETED_SAMPLE
from tests.receiver import receiver
from tests.signatures import verify_sha256
from webhooks_core.dispatch import dispatcher as engine
from webhooks_core.models import Delivery, Endpoint, Event
from webhooks_core.publishing import publish

pytestmark = pytest.mark.django_db


def ready(api, count=1):
    for number in range(count):
        publish(
            profile="recording",
            owner=api.owner,
            event_type="summary.completed",
            data={"audio_id": f"aud_{number}"},
        )


def records(api, endpoint_id, query=""):
    response = api.get(f"webhooks/{endpoint_id}/deliveries{query}")
    assert response.status_code == 200
    assert list(response.json()) == ["items"]
    return response.json()["items"]


# ── To a real receiver ──────────────────────────────────────────────────────────────


def verify(request, secret):
    verify_sha256(
        secret,
        timestamp=request.headers["X-Recording-Timestamp"],
        signature=request.headers["X-Recording-Signature"],
        body=request.body,
        now=request.at,
        tolerance_s=5,
    )


def dispatch():
    return engine.dispatch(linger=timedelta(0))


@pytest.mark.django_db(transaction=True)
@pytest.mark.spec("recording", "receiving an event: headers, body, signature")
@pytest.mark.spec(
    "recording", "every subscribed url receives a signed POST when an event occurs"
)
def test_an_imported_recording_is_delivered_signed_and_recorded_as_delivered(api):
    with receiver(204) as server:
        created = api.create(url=server.url)
        importing.import_recording(
            account=api.user, raw=orjson.dumps(SUMMARY_COMPLETED_SAMPLE)
        )
        assert dispatch() == 1
    [request] = server.requests
    [record] = records(api, created["endpoint_id"])
    assert request.headers["Content-Type"] == "application/json"
    assert request.headers["X-Recording-Event"] == "summary.completed"
    assert request.headers["X-Recording-Delivery"] == record["id"]
    verify(request, created["secret"])
    body = orjson.loads(request.body)
    assert list(body) == ["id", "type", "created_at", "data"]
    assert body["id"] == record["event_id"] == Event.objects.get().public_id
    assert body["data"] == SUMMARY_COMPLETED_SAMPLE
    assert (record["status"], record["attempts"], record["last_error"]) == (1, 1, "")
    assert record["delivered_at"].endswith("Z")


@pytest.mark.django_db(transaction=True)
@pytest.mark.spec("recording", "attempt fails: attempts, last_error, retry in a minute")
@pytest.mark.spec(
    "recording",
    "consecutive_failures resets after a success",
    "updated_at advances on every delivery attempt",
    "last_error is the latest failure's reason",
    "2xx within 5 seconds: delivered, delivered_at set, failures reset",
)
def test_a_failure_then_a_success_show_in_the_record_and_the_counter(api):
    with receiver(500, 204) as server:
        endpoint_id = api.create(url=server.url)["endpoint_id"]
        ready(api)
        now = timezone.now()
        assert dispatch() == 1
        [record] = records(api, endpoint_id)
        assert (record["status"], record["attempts"]) == (0, 1)
        assert "500" in record["last_error"]
        assert record["delivered_at"] == ""
        [subscription] = api.get("webhooks").json()["items"]
        assert subscription["consecutive_failures"] == 1
        assert subscription["updated_at"] > subscription["created_at"]
        waits = Delivery.objects.get().next_attempt_at
        assert waits is not None
        assert timedelta(seconds=59) < waits - now < timedelta(seconds=70)
        with time_machine.travel(now + timedelta(seconds=70)):
            assert dispatch() == 1
    [record] = records(api, endpoint_id)
    assert (record["status"], record["attempts"]) == (1, 2)
    assert "500" in record["last_error"]  # kept after the success
    [subscription] = api.get("webhooks").json()["items"]
    assert subscription["consecutive_failures"] == 0


@pytest.mark.django_db(transaction=True)
@pytest.mark.spec("recording", "up to 5 retries, then terminal failure (2)")
@pytest.mark.spec(
    "recording", "delivery status: 0 pending, 1 delivered, 2 terminal failure"
)
def test_after_the_sixth_attempt_a_delivery_has_failed(api):
    with receiver(500) as server:
        endpoint_id = api.create(url=server.url)["endpoint_id"]
        ready(api)
        now = timezone.now()
        for minutes in (0, 2, 8, 25, 42, 60):
            with time_machine.travel(now + timedelta(minutes=minutes)):
                assert dispatch() == 1
    [record] = records(api, endpoint_id)
    assert (record["status"], record["attempts"]) == (2, 6)
    assert len(server.requests) == 6


@pytest.mark.django_db(transaction=True)
@pytest.mark.spec("recording", "After 20 consecutive failed attempts it is disabled")
@pytest.mark.spec("recording", "status: 1 active, 2 disabled")
def test_twenty_failures_disable_and_a_new_url_sends_what_waited(api):
    with receiver(500) as broken, receiver(204) as sound:
        endpoint_id = api.create(url=broken.url)["endpoint_id"]
        Endpoint.objects.update(max_in_flight=1)
        ready(api, 21)
        dispatch()
        [subscription] = api.get("webhooks").json()["items"]
        assert subscription["status"] == 2
        assert subscription["consecutive_failures"] >= 20
        ready(api)  # published while disabled: no record
        assert Delivery.objects.count() == 21
        body = {"url": sound.url, "events": ["summary.completed"]}
        subscription = api.patch(f"webhooks/{endpoint_id}", body).json()["item"]
        assert (subscription["status"], subscription["consecutive_failures"]) == (1, 0)
        dispatch()
    assert len(sound.requests) == 21
    assert set(Delivery.objects.values_list("status", flat=True)) == {1}


@pytest.mark.django_db(transaction=True)
@pytest.mark.spec("recording", "test queues a signed event of type webhook.ping")
def test_a_ping_arrives_signed(api):
    with receiver(204) as server:
        created = api.create(url=server.url, events=[])
        event_id = api.post(f"webhooks/{created['endpoint_id']}/test").json()[
            "event_id"
        ]
        dispatch()
    [request] = server.requests
    assert request.headers["X-Recording-Event"] == "webhook.ping"
    assert orjson.loads(request.body)["id"] == event_id
    verify(request, created["secret"])
