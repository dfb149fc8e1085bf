"""Bad inputs: each is refused as the table says, and changes nothing."""

from typing import NamedTuple

import pytest

from gateway import configuration, static_subscriptions
from gateway.configuration.shapes import (
    Configuration,
    StaticSubscription,
    WebhookSettings,
)
from tests.gateway.client import JSON
from webhooks_core.models import Delivery, Endpoint, Event

pytestmark = pytest.mark.django_db

HOOKS = "/v1/webhooks/subscriptions"
KNOWN = (
    "event_types: unknown event type; known are ingest.completed, audit.policy_violation, "
    "drift.detected, eval.regression, budget.threshold, endpoint.disabled, endpoint.recovered."
)


class Row(NamedTuple):
    method: str
    path: str
    body: str
    status: int
    detail: str
    media_type: str = JSON


# `{yours}`, `{inactive}` and `{static}` are subscriptions of the caller's tenant.
ROWS = [
    Row("POST", HOOKS, "{}", 400, "url is required."),
    Row("POST", HOOKS, '{"url": null}', 400, "url must be a string."),
    Row("POST", HOOKS, '{"url": ""}', 400, "url must not be empty."),
    Row("POST", HOOKS, '{"url": "hooks.example.com"}', 400, "url is malformed."),
    Row(
        "POST",
        HOOKS,
        '{"url": "ftp://hooks.example.com/"}',
        400,
        "url must start with https or http://.",
    ),
    Row(
        "POST",
        HOOKS,
        '{"url": "https://user:word@hooks.example.com/"}',
        400,
        "url must not hold a user name or password.",
    ),
    Row(
        "POST",
        HOOKS,
        '{"url": "https://hooks.example.com/#part"}',
        400,
        "url must not hold a fragment.",
    ),
    Row(
        "POST",
        HOOKS,
        '{"url": "http://10.0.0.1/"}',
        400,
        "url must lead to public addresses only.",
    ),
    Row(
        "POST",
        HOOKS,
        '{"url": "http://169.254.169.254/"}',
        400,
        "url must lead to public addresses only.",
    ),
    Row(
        "POST",
        HOOKS,
        '{"url": "http://[::ffff:10.0.0.1]/"}',
        400,
        "url must lead to public addresses only.",
    ),
    Row(
        "POST", HOOKS, '{"url": "http://127.0.0.1:0/"}', 400, "url must not use port 0."
    ),
    Row(
        "POST",
        HOOKS,
        '{"url": "http://localhost:8000/"}',
        400,
        "url must not lead to this service itself.",
    ),
    Row(
        "POST",
        HOOKS,
        '{"url": "http://localhost:9/", "filter": []}',
        400,
        "filter must be an object.",
    ),
    Row(
        "POST",
        HOOKS,
        '{"url": "http://localhost:9/", "filter": {"type": {"$gt": null}}}',
        400,
        "filter.type.$gt must be a number or a string.",
    ),
    Row(
        "POST",
        HOOKS,
        '{"url": "http://localhost:9/", "event_types": null}',
        400,
        "event_types must be an array of strings.",
    ),
    Row(
        "POST",
        HOOKS,
        '{"url": "http://localhost:9/", "event_types": "ingest.completed"}',
        400,
        "event_types must be an array of strings.",
    ),
    Row(
        "POST",
        HOOKS,
        '{"url": "http://localhost:9/", "event_types": ["x"]}',
        400,
        KNOWN,
    ),
    Row(
        "POST",
        HOOKS,
        '{"url": "http://localhost:9/", "event_types": ["webhook.test"]}',
        400,
        KNOWN,
    ),
    Row(
        "POST",
        HOOKS,
        '{"url": "http://localhost:9/", "description": 7}',
        400,
        "description must be a string.",
    ),
    Row(
        "POST",
        HOOKS,
        '{"url": "http://localhost:9/", "active": 1}',
        400,
        "active must be true or false.",
    ),
    Row(
        "POST",
        HOOKS,
        '{"url": "http://localhost:9/", "active": "true"}',
        400,
        "active must be true or false.",
    ),
    Row(
        "POST",
        HOOKS,
        '{"url": "http://localhost:9/", "active": null}',
        400,
        "active must be true or false.",
    ),
    Row(
        "POST",
        HOOKS,
        '{"url": "http://localhost:9/", "secret": ""}',
        400,
        "secret must have 1 to 256 characters.",
    ),
    Row(
        "POST",
        HOOKS,
        '{"url": "http://localhost:9/", "secret": "whsec_"}',
        400,
        "secret must be more than whsec_ or spaces.",
    ),
    Row(
        "POST",
        HOOKS,
        '{"url": "http://localhost:9/", "secret": 7}',
        400,
        "secret must be a string.",
    ),
    Row(
        "POST",
        HOOKS,
        '{"url": "http://localhost:9/", "secret": "ключ"}',
        400,
        "secret must be printable ASCII.",
    ),
    Row(
        "POST",
        HOOKS,
        "",
        400,
        "The body is empty: send a JSON object, and its Content-Length.",
    ),
    Row("POST", HOOKS, "[]", 400, "The body must be a JSON object."),
    Row(
        "POST",
        HOOKS,
        "{",
        400,
        "The body is not JSON: unexpected end of data (line 1, column 2).",
    ),
    Row(
        "POST",
        HOOKS,
        '{"url": NaN}',
        400,
        "The body is not JSON: unexpected character, expected a JSON value (line 1, column 9).",
    ),
    Row(
        "POST",
        HOOKS,
        "{}",
        415,
        "The body's Content-Type is not supported.",
        "text/plain",
    ),
    Row(
        "PATCH",
        HOOKS + "/{yours}",
        '{"secret": "another"}',
        400,
        "secret cannot be changed here; it is rotated.",
    ),
    Row(
        "PATCH",
        HOOKS + "/{yours}",
        '{"active": "no"}',
        400,
        "active must be true or false.",
    ),
    Row(
        "PATCH",
        HOOKS + "/{static}",
        '{"active": false}',
        409,
        "This subscription is part of the gateway's configuration and read-only.",
    ),
    Row(
        "DELETE",
        HOOKS + "/{static}",
        "",
        409,
        "This subscription is part of the gateway's configuration and read-only.",
    ),
    Row("DELETE", HOOKS + "/{theirs}", "", 404, "There is no such subscription."),
    Row("GET", HOOKS + "/nonsense", "", 404, "There is no such subscription."),
    Row("PUT", HOOKS + "/{yours}", "{}", 405, "The address does not know the method."),
    Row("POST", HOOKS + "/{inactive}/test", "", 409, "The subscription is inactive."),
    Row(
        "GET",
        HOOKS + "/{yours}/deliveries?page_size=x",
        "",
        400,
        "page_size must be an integer of at least 1.",
    ),
    Row("POST", "/v1/ingest", "{}", 400, "text is required."),
    Row("POST", "/v1/ingest", '{"text": ""}', 400, "text must not be empty."),
    Row("POST", "/v1/ingest", '{"text": 7}', 400, "text must be a string."),
    Row("POST", "/v1/ingest", '{"text": "a\\u0000b"}', 400, "text must not hold NUL."),
    Row(
        "POST",
        "/v1/ingest",
        '{"text": "a", "content_type": "application/pdf"}',
        400,
        "content_type must be one of text/plain, text/markdown, text/html.",
    ),
    Row(
        "POST",
        "/v1/ingest",
        '{"text": "a", "title": null}',
        400,
        "title must be a string.",
    ),
    Row(
        "POST",
        "/v1/ingest",
        '{"text": "a", "metadata": []}',
        400,
        "metadata must be an object.",
    ),
    Row("POST", "/v1/events", "{}", 400, "type is required."),
    Row(
        "POST",
        "/v1/events",
        '{"type": "ingest.completed", "data": {}}',
        400,
        "type cannot be published; known are drift.detected, eval.regression.",
    ),
    Row(
        "POST",
        "/v1/events",
        '{"type": "drift.detected", "data": []}',
        400,
        "data must be an object.",
    ),
    Row("POST", "/v1/events?x=1", "{}", 400, "x is not a parameter of this address."),
    Row("POST", "/v1/portal", "{}", 400, "capabilities is required."),
    Row(
        "POST",
        "/v1/portal",
        '{"capabilities": ["manage"]}',
        400,
        "capabilities must have view: no page is shown without.",
    ),
    Row(
        "POST",
        "/v1/portal",
        '{"capabilities": ["view"], "expires_in": 59}',
        400,
        "expires_in must be an integer from 60 to 604800.",
    ),
    Row("DELETE", "/v1/portal/nonsense", "", 404, "There is no such portal link."),
    Row(
        "POST",
        "/v1/ingest",
        "%PDF",
        415,
        "The body's Content-Type is not supported.",
        "application/pdf",
    ),
    Row(
        "POST",
        "/v1/ingest",
        "text=a",
        400,
        "Multipart form parse error - Invalid boundary in multipart: None",
        "multipart/form-data",
    ),
]


@pytest.fixture
def ids(acme, globex, monkeypatch):
    """What the table's names in braces stand for."""
    declared = StaticSubscription("acme", "http://127.0.0.1:9/static", "s" * 16)
    publishable = configuration.current().webhooks.publishable
    webhooks = WebhookSettings(subscriptions=(declared,), publishable=publishable)
    configured = Configuration(webhooks)
    monkeypatch.setattr(configuration, "current", lambda: configured)
    static_subscriptions.sync(configured)
    return {
        "yours": acme.create()["id"],
        "inactive": acme.create(active=False)["id"],
        "theirs": globex.create()["id"],
        "static": Endpoint.objects.static("gateway").get().public_id,
    }


def facts():
    """Everything that a refused request must leave alone."""
    endpoints = list(Endpoint.objects.order_by("pk").values())
    return endpoints, Event.objects.count(), Delivery.objects.count()


@pytest.mark.parametrize("row", ROWS)
def test_a_bad_request_is_refused_and_changes_nothing(acme, ids, row):
    before = facts()
    path = row.path.format(**ids)
    response = acme.call(
        row.method, path, row.body.encode(), content_type=row.media_type
    )
    assert (response.status_code, response.json()) == (
        row.status,
        {"detail": row.detail},
    )
    assert facts() == before
