"""Bad inputs: each is refused as the table says, and changes nothing."""

from typing import Any

import pytest

from gateway import configuration, static_subscriptions
from gateway.configuration.shapes import (
    Configuration,
    StaticSubscription,
    WebhookSettings,
)
from gateway.models import Document, GatewayKey, PortalLink
from tests.gateway.client import EVENTS, INGEST, JSON, PATH
from webhooks_core.models import Delivery, Endpoint, Event

pytestmark = pytest.mark.django_db

PORTAL = "/v1/portal"
URL = {"url": "http://localhost:9/"}
KNOWN = (
    "event_types: unknown event type; known are ingest.completed, audit.policy_violation, "
    "drift.detected, eval.regression, budget.threshold, endpoint.disabled, endpoint.recovered."
)
READ_ONLY = "This subscription is part of the gateway's configuration and read-only."
ABSENT = "There is no such subscription."
# What is posted, and why it is a 400.
BODIES: list[tuple[str, Any, str]] = [
    (PATH, {}, "url is required."),
    (PATH, {"url": None}, "url must be a string."),
    (PATH, {"url": ""}, "url must not be empty."),
    (PATH, {"url": "hooks.example.com"}, "url is malformed."),
    (PATH, {"url": "ftp://hooks.example.com/"}, "url must start with https or http://."),
    (PATH, {"url": "https://user:word@hooks.example.com/"}, "url must not hold a user name or password."),
    (PATH, {"url": "https://hooks.example.com/#part"}, "url must not hold a fragment."),
    (PATH, {"url": "http://10.0.0.1/"}, "url must lead to public addresses only."),
    (PATH, {"url": "http://169.254.169.254/"}, "url must lead to public addresses only."),
    (PATH, {"url": "http://[::ffff:10.0.0.1]/"}, "url must lead to public addresses only."),
    (PATH, {"url": "http://127.0.0.1:0/"}, "url must not use port 0."),
    (PATH, {"url": "http://localhost:8000/"}, "url must not lead to this service itself."),
    (PATH, URL | {"filter": []}, "filter must be an object."),
    (PATH, URL | {"filter": {"type": {"$gt": None}}}, "filter.type.$gt must be a number or a string."),
    (PATH, URL | {"event_types": None}, "event_types must be an array of strings."),
    (PATH, URL | {"event_types": "ingest.completed"}, "event_types must be an array of strings."),
    (PATH, URL | {"event_types": ["x"]}, KNOWN),
    (PATH, URL | {"event_types": ["webhook.test"]}, KNOWN),
    (PATH, URL | {"description": 7}, "description must be a string."),
    (PATH, URL | {"active": 1}, "active must be true or false."),
    (PATH, URL | {"active": "True"}, "active must be true or false."),
    (PATH, URL | {"active": None}, "active must be true or false."),
    (PATH, URL | {"secret": ""}, "secret must have 1 to 256 characters."),
    (PATH, URL | {"secret": "whsec_"}, "secret must be more than whsec_ or spaces."),
    (PATH, URL | {"secret": 7}, "secret must be a string."),
    (PATH, URL | {"secret": "ключ"}, "secret must be printable ASCII."),
    (INGEST, {}, "text is required."),
    (INGEST, {"text": ""}, "text must not be empty."),
    (INGEST, {"text": 7}, "text must be a string."),
    (INGEST, {"text": "a\0b"}, "text must not hold NUL."),
    (INGEST, {"text": "a", "content_type": "application/pdf"}, "content_type must be one of text/plain, text/markdown, text/html."),
    (INGEST, {"text": "a", "title": None}, "title must be a string."),
    (INGEST, {"text": "a", "metadata": []}, "metadata must be an object."),
    (EVENTS, {}, "type is required."),
    (EVENTS, {"type": "ingest.completed", "data": {}}, "type cannot be published; known are drift.detected, eval.regression."),
    (EVENTS, {"type": "drift.detected", "data": []}, "data must be an object."),
    (PORTAL, {}, "capabilities is required."),
    (PORTAL, {"capabilities": ["manage"]}, "capabilities must have view: no page is shown without."),
    (PORTAL, {"capabilities": ["view"], "expires_in": 59}, "expires_in must be an integer from 60 to 604800."),
]  # fmt: skip
# Method, path, body, status and text; `{yours}`, `{inactive}` and `{static}` are subscriptions of
# the caller's tenant.
REQUESTS: list[tuple[str, str, bytes, int, str]] = [
    ("POST", PATH, b"", 400, "The body is empty: send a JSON object, and its Content-Length."),
    ("POST", PATH, b"[]", 400, "The body must be a JSON object."),
    ("POST", PATH, b"{", 400, "The body is not JSON: unexpected end of data (line 1, column 2)."),
    ("POST", PATH, b'{"url": NaN}', 400, "The body is not JSON: unexpected character, expected a JSON value (line 1, column 9)."),
    ("PATCH", PATH + "/{yours}", b'{"secret": "another"}', 400, "secret cannot be changed here; it is rotated."),
    ("PATCH", PATH + "/{yours}", b'{"active": "no"}', 400, "active must be true or false."),
    ("PATCH", PATH + "/{static}", b'{"active": false}', 409, READ_ONLY),
    ("DELETE", PATH + "/{static}", b"", 409, READ_ONLY),
    ("DELETE", PATH + "/{theirs}", b"", 404, ABSENT),
    ("GET", PATH + "/nonsense", b"", 404, ABSENT),
    ("PUT", PATH + "/{yours}", b"{}", 405, "The address does not know the method."),
    ("POST", PATH + "/{inactive}/test", b"", 409, "The subscription is inactive."),
    ("GET", PATH + "/{yours}/deliveries?page_size=x", b"", 400, "page_size must be an integer of at least 1."),
    ("POST", f"{EVENTS}?x=1", b"{}", 400, "x is not a parameter of this address."),
    ("DELETE", f"{PORTAL}/nonsense", b"", 404, "There is no such portal link."),
]  # fmt: skip
UNSUPPORTED = "The body's Content-Type is not supported."
MEDIA_TYPES = [
    (PATH, b"{}", "text/plain", 415, UNSUPPORTED),
    (INGEST, b"%PDF", "application/pdf", 415, UNSUPPORTED),
    (
        *(INGEST, b"text=a", "multipart/form-data", 400),
        "Multipart form parse error - Invalid boundary in multipart: None",
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
    tables = (Event, Delivery, Document, GatewayKey, PortalLink)
    return endpoints, [table.objects.count() for table in tables]


def refused(acme, method, path, body, status, detail, kind=JSON):
    before = facts()
    response = acme.call(method, path, body, content_type=kind)
    assert (response.status_code, response.json()) == (status, {"detail": detail})
    assert facts() == before


@pytest.mark.parametrize(("path", "body", "detail"), BODIES)
def test_a_bad_body_is_refused_and_changes_nothing(acme, path, body, detail):
    refused(acme, "POST", path, body, 400, detail)


def test_a_bad_request_is_refused_and_changes_nothing(acme, ids, subtests):
    for method, path, *rest in REQUESTS:
        with subtests.test(method=method, path=path):
            refused(acme, method, path.format(**ids), *rest)


@pytest.mark.parametrize(("path", "body", "kind", "status", "detail"), MEDIA_TYPES)
def test_another_media_type_is_refused(acme, path, body, kind, status, detail):
    refused(acme, "POST", path, body, status, detail, kind)
