import pytest

from tests.clock import travel
from tests.recording.conftest import OTHER_URL, URL, Api
from webhooks_core.models import Delivery, Endpoint, Event
from webhooks_core.publishing import publish

pytestmark = pytest.mark.django_db


def disable():
    assert Endpoint.objects.update(status=2, consecutive_failures=20) == 1


@pytest.fixture
def path(api):
    """The address of a subscription, below /v1/."""
    return f"webhooks/{api.create()['endpoint_id']}"


# ── Create ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("body", [{"url": URL}, {"url": URL, "events": []}])
@pytest.mark.spec("recording", "empty or omitted events receives nothing")
def test_a_subscription_without_events_receives_nothing(api, body):
    assert api.post("webhooks", body).json()["events"] == []
    api.publish()
    assert not Delivery.objects.exists()


@pytest.mark.spec("recording", "webhook.ping is sent only through the test endpoint")
def test_a_listed_ping_is_never_sent_by_an_event(api):
    api.create(events=["webhook.ping"])
    publish(
        profile="recording", owner=api.owner, event_type="webhook.ping", data={"x": 1}
    )
    assert not Delivery.objects.exists()


@pytest.mark.spec("recording", "the secret is returned only once, on creation")
def test_a_repeated_creation_never_shows_a_secret_again(api):
    headers = {"Idempotency-Key": "a-key", "Authorization": f"Bearer {api.token}"}
    made = [api.post("webhooks", {"url": URL}, headers=headers).json() for _ in "ab"]
    assert len({each["secret"] for each in made}) == Endpoint.objects.count() == 2


# ── Update ──────────────────────────────────────────────────────────────────────────


PING, SUMMARY = "webhook.ping", "summary.completed"


@pytest.mark.parametrize("was_disabled", [False, True])
@pytest.mark.parametrize(
    ("body", "url", "events"),
    [
        ({}, URL, []),
        ({"url": OTHER_URL}, OTHER_URL, []),
        ({"url": OTHER_URL, "events": [PING]}, OTHER_URL, [PING]),
        ({"url": URL, "events": [SUMMARY]}, URL, [SUMMARY]),
        ({"url": "", "events": []}, URL, []),
        ({"url": "", "events": [PING]}, URL, [PING]),
        ({"events": [PING]}, URL, [PING]),
    ],
)
@pytest.mark.spec(
    "recording",
    "PATCH answers 200 {item: Subscription}",
    "PATCH rules 1 and 3: omitted or [] clears the events",
    "PATCH rule 2: omitted or empty url keeps the url",
    "PATCH rule 4: a new url re-enables and resets",
    "PATCH rule 4: changing only events does not re-enable",
)
def test_an_update_returns_the_subscription_as_lists_show_it(
    api, path, body, url, events, was_disabled
):
    if was_disabled:
        disable()
    response = api.patch(path, body)
    assert response.status_code == 200, response.content
    subscription = response.json()["item"]
    assert response.json() == {"item": subscription}
    assert api.get("webhooks").json() == {"items": [subscription]}
    assert (subscription["url"], subscription["events"]) == (url, events)
    state = (subscription["status"], subscription["consecutive_failures"])
    assert state == ((2, 20) if was_disabled and url == URL else (1, 0))
    assert subscription["updated_at"] > subscription["created_at"]


# ── Test ────────────────────────────────────────────────────────────────────────────


@pytest.mark.spec("recording", "a disabled endpoint may be skipped without a record")
@pytest.mark.spec("recording", "queued confirms the queue, not the delivery")
def test_a_ping_to_a_disabled_subscription_is_accepted_and_skipped(api, path):
    disable()
    response = api.post(f"{path}/test")
    assert (response.status_code, response.json()["queued"]) == (200, True)
    assert not Delivery.objects.exists()
    assert Event.objects.get().type == "webhook.ping"


@pytest.mark.spec("recording", "times are ISO 8601 in UTC")
def test_times_are_utc_with_microseconds(api):
    with travel("2030-01-02T03:04:05.000006Z", tick=False):
        api.token = Api(api.user).token
        api.create()
        [subscription] = api.get("webhooks").json()["items"]
    assert subscription["created_at"] == "2030-01-02T03:04:05.000006Z"
