"""The table of bad inputs in docs/gateway.md: every row is sent, and answers as it says."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest
from django.conf import settings

from gateway import configuration, static_subscriptions
from gateway.configuration.shapes import (
    Configuration,
    StaticSubscription,
    WebhookSettings,
)
from tests.gateway.client import JSON
from webhooks_core.models import Delivery, Endpoint, Event

pytestmark = pytest.mark.django_db

PAGE = (settings.BASE_DIR / "docs" / "gateway.md").read_text()
ROW = re.compile(
    r"^\| `([A-Z]+) (/\S+)`(?: as `([^`]+)`)? \| (?:`(.*)`)? \| (\d{3}) \| `(.*)` \|$",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Row:
    method: str
    path: str
    media_type: str
    body: str
    status: int
    detail: str


ROWS = [
    Row(method, path, media_type or JSON, body, int(status), detail)
    for method, path, media_type, body, status, detail in ROW.findall(PAGE)
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


def test_the_table_is_read():
    assert len(ROWS) >= 30
    assert len(set(ROWS)) == len(ROWS)
    assert {row.status for row in ROWS} >= {400, 404, 405, 409, 415}


@pytest.mark.parametrize("row", ROWS)
def test_a_bad_request_answers_as_the_table_says_and_changes_nothing(acme, ids, row):
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
