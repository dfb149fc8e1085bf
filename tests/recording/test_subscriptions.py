import base64
import re

import pytest

from recording import token_memory
from tests.clock import travel
from tests.recording.conftest import OTHER_URL, URL, Api
from webhooks_core.models import Delivery, Endpoint, Event
from webhooks_core.publishing import publish

pytestmark = pytest.mark.django_db

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


def disable():
    assert Endpoint.objects.update(status=2, consecutive_failures=20) == 1


@pytest.fixture
def path(api):
    """The address of a subscription, below /v1/."""
    return f"webhooks/{api.create()['endpoint_id']}"


def changed(api, path, **body):
    """Change a subscription; return it as the response shows it."""
    response = api.patch(path, body)
    assert response.status_code == 200, response.content
    assert list(response.json()) == ["item"]
    return response.json()["item"]


# ── Create ──────────────────────────────────────────────────────────────────────────


@pytest.mark.spec("recording", "create response")
def test_create_returns_exactly_the_fields_of_the_spec(api):
    response = api.post("webhooks", {"url": URL, "events": ["summary.completed"]})
    assert response.status_code == 201
    body = response.json()
    assert list(body) == ["endpoint_id", "secret", "url", "events", "status"]
    assert re.fullmatch(r"ep_[0-9a-v]{26}", body["endpoint_id"])
    assert (body["url"], body["events"], body["status"]) == (
        URL,
        ["summary.completed"],
        1,
    )
    prefix, secret = body["secret"][:6], body["secret"][6:]
    assert prefix == "whsec_"
    assert len(base64.b64decode(secret, validate=True)) == 32
    assert response["Cache-Control"] == "no-store"


@pytest.mark.spec("recording", "the secret is returned only once, on creation")
def test_the_secret_is_nowhere_but_in_the_create_response(api, path):
    responses = [
        api.get("webhooks"),
        api.patch(path, {}),
        api.get(f"{path}/deliveries"),
        api.post(f"{path}/test"),
    ]
    assert all(response.status_code == 200 for response in responses)
    assert not any(b"whsec_" in response.content for response in responses)


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


# ── List ────────────────────────────────────────────────────────────────────────────


@pytest.mark.spec("recording", "Subscription fields")
@pytest.mark.spec(
    "recording", "GET /v1/webhooks lists the account's subscriptions as items"
)
def test_the_list_shows_each_subscription_with_exactly_the_fields_of_the_spec(
    api, django_assert_num_queries
):
    first, second = api.create(), api.create(url=OTHER_URL, events=[])
    token_memory.forget()
    with django_assert_num_queries(2):  # whose token is it, and the list
        response = api.get("webhooks")
    assert response.status_code == 200
    assert list(response.json()) == ["items"]
    newest, oldest = response.json()["items"]
    assert list(oldest) == [
        "id",
        "url",
        "events",
        "status",
        "consecutive_failures",
        "created_at",
        "updated_at",
    ]
    assert (newest["id"], oldest["id"]) == (second["endpoint_id"], first["endpoint_id"])
    assert (oldest["url"], oldest["events"]) == (URL, ["summary.completed"])
    assert (oldest["status"], oldest["consecutive_failures"]) == (1, 0)
    assert TIME.fullmatch(oldest["created_at"])
    assert TIME.fullmatch(oldest["updated_at"])


# ── Update ──────────────────────────────────────────────────────────────────────────


@pytest.mark.spec("recording", "PATCH answers 200 {item: Subscription}")
def test_an_update_returns_the_subscription_as_lists_show_it(api, path):
    subscription = changed(api, path, url=OTHER_URL, events=["webhook.ping"])
    assert api.get("webhooks").json() == {"items": [subscription]}
    assert subscription["url"] == OTHER_URL
    assert subscription["events"] == ["webhook.ping"]
    assert subscription["updated_at"] > subscription["created_at"]


@pytest.mark.parametrize(
    "body", [{}, {"url": OTHER_URL}, {"events": []}, {"url": "", "events": []}]
)
@pytest.mark.spec("recording", "PATCH rules 1 and 3: omitted or [] clears the events")
def test_omitted_or_empty_events_clear_the_list(api, path, body):
    assert changed(api, path, **body)["events"] == []


@pytest.mark.parametrize(
    "body", [{"events": ["webhook.ping"]}, {"url": "", "events": ["webhook.ping"]}]
)
@pytest.mark.spec("recording", "PATCH rule 2: omitted or empty url keeps the url")
def test_an_omitted_or_empty_url_keeps_the_url(api, path, body):
    subscription = changed(api, path, **body)
    assert (subscription["url"], subscription["events"]) == (URL, ["webhook.ping"])


@pytest.mark.spec("recording", "PATCH rule 4: a new url re-enables and resets")
def test_a_new_url_re_enables_a_disabled_subscription(api, path):
    disable()
    subscription = changed(api, path, url=OTHER_URL, events=["summary.completed"])
    assert (subscription["status"], subscription["consecutive_failures"]) == (1, 0)


@pytest.mark.parametrize("body", [{}, {"url": ""}, {"url": URL}])
@pytest.mark.spec("recording", "PATCH rule 4: changing only events does not re-enable")
def test_without_another_url_a_disabled_subscription_stays_disabled(api, path, body):
    disable()
    subscription = changed(api, path, events=[], **body)
    assert (subscription["status"], subscription["consecutive_failures"]) == (2, 20)
    assert subscription["events"] == []


# ── Delete ──────────────────────────────────────────────────────────────────────────


@pytest.mark.spec("recording", "DELETE answers 200 {ok: true}")
def test_a_deletion_answers_ok(api, path):
    response = api.delete(path)
    assert (response.status_code, response.json()) == (200, {"ok": True})


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
