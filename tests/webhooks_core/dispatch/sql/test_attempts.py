"""Attempts are stored in batches, whatever a receiver has sent."""

from __future__ import annotations

from datetime import UTC, datetime

import orjson
import pytest

from tests.webhooks_core.dispatch.stepped_dispatcher import SteppedDispatcher, ok
from tests.webhooks_core.factories import EndpointFactory, publish_events
from webhooks_core.dispatch.sql import deliveries
from webhooks_core.dispatch.sql.deliveries import AttemptRow
from webhooks_core.models import Attempt, Delivery

pytestmark = pytest.mark.usefixtures("plain", "commits_at_once")

# What the formats of COPY, of CSV and of SQL give a meaning of its own.
HOSTILE = "\\N \\. \t\r\n\\x41 \\\\ 'quoted' \"twice\" {a,b} %s $1 é \U0001f600"


def attempts_of(count: int) -> list[AttemptRow]:
    EndpointFactory.create(url="http://127.0.0.1:9/hook", max_in_flight=count)
    publish_events(count)
    pks = Delivery.objects.order_by("pk").values_list("pk", flat=True)
    return [
        AttemptRow(
            delivery_id=pk,
            number=number + 1,
            started_at=datetime(2026, 3, 29, 1, 30, 0, number, UTC),
            duration_ms=number,
            outcome="http",
            status_code=number or None,
            error=HOSTILE,
            response_body=bytes(range(256)),
            is_repeated=bool(number % 2),
            details=orjson.dumps({"response": HOSTILE}).decode(),
        )
        for number, pk in enumerate(pks)
    ]


@pytest.mark.parametrize("count", [1, 2, 7])
def test_attempts_are_stored_as_they_are(count):
    rows = attempts_of(count)
    deliveries.insert_attempts(rows)
    stored = Attempt.objects.order_by("pk")
    for row, attempt in zip(rows, stored, strict=True):
        expected = row._asdict() | {"details": orjson.loads(row.details)}
        found = {name: getattr(attempt, name) for name in row._fields}
        assert found | {"response_body": bytes(attempt.response_body)} == expected


def test_more_attempts_than_a_statement_takes_are_stored(monkeypatch):
    monkeypatch.setattr(deliveries, "_max_parameters", lambda: 25)
    rows = attempts_of(5)
    deliveries.insert_attempts(rows)
    assert Attempt.objects.count() == 5


def test_an_attempt_that_is_stored_already_does_not_stop_the_others():
    rows = attempts_of(3)
    dispatcher = SteppedDispatcher()
    requests = dispatcher.claim()
    deliveries.insert_attempts(rows[:1])
    dispatcher.record(requests, ok)
    delivered = Delivery.objects.filter(status=Delivery.Status.DELIVERED)
    assert (delivered.count(), Attempt.objects.count()) == (3, 3)
