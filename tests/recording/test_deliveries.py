"""What reaches the receiver of a recording, when, and the end of an endpoint that fails."""

import hashlib
import hmac
from itertools import repeat

import orjson
import pytest

from recording.webhooks import SUMMARY_COMPLETED_SAMPLE
from tests.products.product import RECORDING, of_account
from tests.receiver import receiver
from tests.recording.conftest import imported
from tests.webhooks_core.engine import dispatch
from webhooks_core import profiles
from webhooks_core.models import Delivery, Endpoint, Event
from webhooks_core.times import iso

pytestmark = pytest.mark.django_db(transaction=True)
PROFILE = profiles.get("recording")


@pytest.mark.spec("recording", "Up to 5 retries at about 1, 5, 15, 15 and 15 minutes")
def test_the_pauses_are_those_of_the_spec_and_at_most_a_tenth_longer():
    for attempts, pause in enumerate((60, 300, 900, 900, 900), start=1):
        delays = {
            PROFILE.retry.delay_after(attempt, retry_after=7200)
            for attempt in repeat(attempts, 50)
        }
        assert all(delay and pause <= delay <= pause * 1.1 for delay in delays)
        assert len(delays) > 1
    assert PROFILE.retry.delay_after(6) is None


@pytest.mark.spec("recording", "limits: 5 seconds, 20 failures, 5 subscriptions")
def test_the_limits_are_those_of_the_spec():
    assert PROFILE.timeout_s == pytest.approx(5)
    assert (PROFILE.disable_after, PROFILE.quota) == (20, 5)


@pytest.mark.spec("recording", "receiving an event: headers, body, signature")
@pytest.mark.spec(
    "recording",
    "every subscribed url receives a signed POST when an event occurs",
    'signature = "sha256=" + hex(HMAC_SHA256(…))',
    "the signed timestamp is the header's, the body its exact bytes",
    "event envelope: all fields always present",
    "the event id is unique, with the prefix evt_",
    "the envelope's created_at is when the event was generated",
)
def test_an_imported_recording_is_delivered_signed_and_recorded_as_delivered(api):
    with receiver(204) as server:
        created = api.create(url=server.url)
        imported(api.user, **SUMMARY_COMPLETED_SAMPLE)
        assert dispatch() == 1
    [request] = server.requests
    [record] = of_account(api).get(f"/{created['endpoint_id']}/deliveries")
    assert request.headers["Content-Type"] == "application/json"
    assert request.headers["X-Recording-Event"] == "summary.completed"
    assert request.headers["X-Recording-Delivery"] == record["id"]
    stamp = RECORDING.verify(request, created["secret"])
    key, signed = created["secret"].encode(), f"{stamp}.".encode() + request.body
    signature = "sha256=" + hmac.new(key, signed, hashlib.sha256).hexdigest()
    assert request.headers["X-Recording-Signature"] == signature
    event, body = Event.objects.get(), orjson.loads(request.body)
    assert list(body.items()) == [
        ("id", event.public_id),
        ("type", "summary.completed"),
        ("created_at", iso(event.created_at)),
        ("data", SUMMARY_COMPLETED_SAMPLE),
    ]
    assert record["event_id"] == event.public_id
    assert event.public_id.startswith("evt_")
    assert (record["status"], record["attempts"], record["last_error"]) == (1, 1, "")
    assert record["delivered_at"].endswith("Z")


@pytest.mark.spec("recording", "After 20 consecutive failed attempts it is disabled")
@pytest.mark.spec("recording", "status: 1 active, 2 disabled")
def test_twenty_failures_disable_and_a_new_url_sends_what_waited(api):
    with receiver(500) as broken, receiver(204) as sound:
        endpoint_id = api.create(url=broken.url)["endpoint_id"]
        Endpoint.objects.update(max_in_flight=1)
        for _ in range(21):
            of_account(api).publish()
        dispatch()
        [subscription] = api.get("webhooks").json()["items"]
        assert subscription["status"] == 2
        assert subscription["consecutive_failures"] >= 20
        of_account(api).publish()  # published while disabled: no record
        assert Delivery.objects.count() == 21
        body = {"url": sound.url, "events": ["summary.completed"]}
        subscription = api.patch(f"webhooks/{endpoint_id}", body).json()["item"]
        assert (subscription["status"], subscription["consecutive_failures"]) == (1, 0)
        dispatch()
    assert len(sound.requests) == 21
    assert set(Delivery.objects.values_list("status", flat=True)) == {1}
