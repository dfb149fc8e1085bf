"""What reaches the receiver of a recording, and the end of an endpoint that fails."""

import orjson
import pytest

from recording.library import importing
from recording.webhooks import SUMMARY_COMPLETED_SAMPLE
from tests.products.product import RECORDING, of_account
from tests.receiver import receiver
from tests.webhooks_core.engine import dispatch
from webhooks_core.models import Delivery, Endpoint, Event

pytestmark = pytest.mark.django_db(transaction=True)


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
    [record] = of_account(api).get(f"/{created['endpoint_id']}/deliveries")
    assert request.headers["Content-Type"] == "application/json"
    assert request.headers["X-Recording-Event"] == "summary.completed"
    assert request.headers["X-Recording-Delivery"] == record["id"]
    RECORDING.verify(request, created["secret"])
    body = orjson.loads(request.body)
    assert list(body) == ["id", "type", "created_at", "data"]
    assert body["id"] == record["event_id"] == Event.objects.get().public_id
    assert body["data"] == SUMMARY_COMPLETED_SAMPLE
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
