"""Ranges of ids: no row of a time is left out, in whatever order transactions got their ids."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import time_machine

from tests.webhooks_core.factories import EndpointFactory, publish_event
from webhooks_core.models import Delivery, Event
from webhooks_core.owners import failures, id_ranges
from webhooks_core.owners.id_ranges import IdRange, created_between

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("plain")]

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def rows(monkeypatch) -> list[Delivery]:
    """Deliveries of 0, 2, 4 … 10 o'clock, if ids may be one off."""
    monkeypatch.setattr(id_ranges, "CONCURRENT", 1)
    EndpointFactory.create()
    for hour in range(0, 12, 2):
        with time_machine.travel(NOON + hour * HOUR, tick=False):
            publish_event()
    return list(Delivery.objects.order_by("pk"))


def test_a_range_is_wider_than_the_time_by_an_hour_and_some_ids(rows):
    pks = [row.pk for row in rows]
    at = NOON + 4 * HOUR
    assert created_between(Delivery, at) == (pks[2] - 1, None)
    assert created_between(Delivery, at, profile="plain") == (pks[2] - 1, None)
    assert created_between(Delivery, until=at) == (None, pks[3] + 1)
    assert created_between(Event, at).first == rows[2].event_id - 1
    assert created_between(Delivery) == IdRange()


def test_behind_the_last_row_a_range_has_no_more_than_what_may_be_late(rows):
    last = rows[-1].pk
    assert created_between(Delivery, NOON + 48 * HOUR) == (last, None)
    assert created_between(Delivery, until=NOON + 48 * HOUR) == (None, last + 2)
    Delivery.objects.all().delete()
    assert created_between(Delivery, NOON) == (0, None)


def test_what_failed_since_a_time_is_found_whatever_its_id(rows):
    Delivery.objects.pending().fail(error="over")
    late, early = rows[2:4]
    # The transaction of the later one got its id first.
    Delivery.objects.filter(pk=late.pk).update(public_id="dlv_later")
    Delivery.objects.filter(pk=early.pk).update(
        public_id=late.public_id, created_at=late.created_at
    )
    Delivery.objects.filter(pk=late.pk).update(
        public_id=early.public_id, created_at=early.created_at
    )
    assert failures.count(NOON + 4 * HOUR, most=10).found == 4
    assert failures.count(NOON + 48 * HOUR, most=10).found == 0
