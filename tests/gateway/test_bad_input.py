"""Requests that are refused change nothing. The texts of most faults are in the golden contract."""

from typing import Any

import pytest

from gateway import configuration, static_subscriptions
from gateway.models import Document, GatewayKey, PortalLink
from tests.gateway.client import EVENTS, PATH
from tests.gateway.factories import configured, declared
from webhooks_core.models import Delivery, Endpoint, Event

pytestmark = pytest.mark.django_db

PORTAL = "/v1/portal"
READ_ONLY = "This subscription is part of the gateway's configuration and read-only."
OWN = {"url": "http://localhost:8000/"}
# Method, path, body, status and text; `{yours}`, `{inactive}` and `{static}` are subscriptions of
# the caller's tenant.
REQUESTS: list[tuple[str, str, Any, int, str]] = [
    ("POST", PATH, {"url": ""}, 400, "url must not be empty."),
    ("POST", PATH, OWN, 400, "url must not lead to this service itself."),
    ("POST", EVENTS, {"type": "drift.detected", "data": []}, 400, "data must be an object."),
    ("POST", PORTAL, {"capabilities": ["view"], "expires_in": 59}, 400, "expires_in must be an integer from 60 to 604800."),
    ("PATCH", PATH + "/{yours}", {"secret": "another", "active": False}, 400, "secret cannot be changed here; it is rotated."),
    ("PATCH", PATH + "/{yours}", {"active": "no", "url": "https://93.184.216.34/"}, 400, "active must be true or false."),
    ("PATCH", PATH + "/{static}", {"active": False}, 409, READ_ONLY),
    ("PATCH", PATH + "/{static}", b"{", 409, READ_ONLY),
    ("DELETE", PATH + "/{static}", b"", 409, READ_ONLY),
    ("POST", PATH + "/{inactive}/test", b"", 409, "The subscription is inactive."),
]  # fmt: skip


@pytest.fixture
def ids(acme, monkeypatch):
    """What the table's names in braces stand for."""
    publishable = configuration.current().webhooks.publishable
    current = configured(declared(), publishable=publishable)
    monkeypatch.setattr(configuration, "current", lambda: current)
    static_subscriptions.sync(current)
    return {
        "yours": acme.create()["id"],
        "inactive": acme.create(active=False)["id"],
        "static": Endpoint.objects.static("gateway").get().public_id,
    }


def facts():
    """Everything that a refused request must leave alone."""
    endpoints = list(Endpoint.objects.order_by("pk").values())
    tables = (Event, Delivery, Document, GatewayKey, PortalLink)
    return endpoints, [table.objects.count() for table in tables]


def test_a_refused_request_changes_nothing(acme, ids, subtests):
    for method, path, body, status, detail in REQUESTS:
        with subtests.test(method=method, path=path):
            before = facts()
            response = acme.call(method, path.format(**ids), body)
            answer = (response.status_code, response.json())
            assert answer == (status, {"detail": detail})
            assert facts() == before
