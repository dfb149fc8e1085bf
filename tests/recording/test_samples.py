import orjson
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.products.product import RECORDING, WRONG_COUNTS
from webhooks_core.models import Event

pytestmark = pytest.mark.django_db

PATH = "webhook-events/samples?event=summary.completed"


def test_a_synthetic_ping_has_a_ping_s_data(api):
    [sample] = api.get("webhook-events/samples?event=webhook.ping").json()
    assert sample["type"] == "webhook.ping"
    assert list(sample["data"]) == ["endpoint_id"]


@pytest.mark.spec("recording", "recent payloads when available, newest first")
@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("", 3),
        ("&limit=1", 1),
        ("&limit=10", 10),
        ("&limit=11", 10),
        ("&limit=" + "9" * 40, 10),
    ],
)
@pytest.mark.spec("recording", "samples: a top-level array of payloads")
def test_stored_events_are_shown_to_the_byte_newest_first(api, query, count):
    events = api.publish(12)
    response = api.get(PATH + query)
    newest = [bytes(event.body) for event in reversed(events)][:count]
    assert response.content == b"[" + b",".join(newest) + b"]"
    assert len(response.json()) == count


@pytest.mark.spec("recording", "events (pings too) are stored even without subscribers")
def test_pings_are_samples_too(api):
    endpoint_id = api.create(events=[])["endpoint_id"]
    event_id = api.post(f"webhooks/{endpoint_id}/test").json()["event_id"]
    [sample] = api.get("webhook-events/samples?event=webhook.ping").json()
    assert sample["id"] == event_id


@pytest.mark.spec("recording", "samples: one synthetic payload, prefix evt_sample_")
def test_another_account_s_events_are_never_shown(api, stranger):
    api.publish(2)
    [sample] = stranger.get(PATH + "&limit=10").json()
    assert sample["id"].startswith("evt_sample_")
    assert Event.objects.count() == 2


@pytest.mark.parametrize(
    "query",
    [
        "?event=",
        "?limit=0",
        "?event=SUMMARY.COMPLETED",
        "?event=summary.completed%00",
        "?event=%00",
        "?event=%ED%A0%80",
        "?event=summary.completed&event=nope",
        "?event=" + "x" * 5000,
        "?type=summary.completed",
    ],
)
@pytest.mark.spec("recording", "samples: event is required; unknown type 400")
def test_a_missing_or_unknown_type_is_refused(api, query):
    response = api.get(f"webhook-events/samples{query}")
    message = RECORDING.error(response, 400)
    assert "event" in message
    assert len(message) < 200


@pytest.mark.parametrize("value", WRONG_COUNTS)
@pytest.mark.spec("recording", "samples limit default 3, max 10; below 1: 400")
def test_a_wrong_limit_is_refused(api, value):
    response = api.get(f"{PATH}&limit={value}")
    assert "limit" in RECORDING.error(response, 400)


def test_samples_cost_the_same_queries_however_many(api):
    api.get(PATH)
    counts = []
    for count in (1, 9):
        api.publish(count)
        with CaptureQueriesContext(connection) as queries:
            assert orjson.loads(api.get(PATH + "&limit=10").content)
        # A look-up of the token is remembered for some seconds.
        counts.append(sum("personaltoken" not in query["sql"] for query in queries))
    assert counts == [1, 1]
