"""The deliveries of an owner: by state, event and time; one with its attempts."""

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.webhooks_core.factories import (
    AttemptFactory,
    DeliveryFactory,
    EndpointFactory,
    EventFactory,
)
from webhooks_core.admin import endpoints as admin
from webhooks_core.models import Attempt, Delivery, Endpoint
from webhooks_core.owners import deliveries
from webhooks_core.owners.deliveries import State

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("plain", "commits_at_once"),
]
ENDED = {"next_attempt_at": None}
DELIVERED = {**ENDED, "status": 1, "delivered_at": timezone.now()}
FAILED = {**ENDED, "status": 2, "last_error": "HTTP 500"}


@pytest.fixture
def target() -> Endpoint:
    return EndpointFactory.create()


def newest(**options) -> list[Delivery]:
    options = {"size": 10} | options
    return deliveries.newest(Endpoint.objects.all(), **options)


def test_each_state_finds_its_own(target):
    made = {
        State.PENDING: DeliveryFactory.create(endpoint=target),
        State.DELIVERED: DeliveryFactory.create(endpoint=target, **DELIVERED),
        State.FAILED_UNDELIVERED: DeliveryFactory.create(endpoint=target, **FAILED),
    }
    for state, delivery in made.items():
        assert newest(state=state) == [delivery]
    arrived = EventFactory.create()
    old = DeliveryFactory.create(endpoint=target, event=arrived, **FAILED)
    DeliveryFactory.create(endpoint=target, event=arrived, **DELIVERED)
    assert newest(state=State.FAILED) == [*(old, made[State.FAILED_UNDELIVERED])]
    assert newest(state=State.FAILED_UNDELIVERED) == [made[State.FAILED_UNDELIVERED]]
    assert len(newest()) == 5


def test_of_several_endpoints_the_newest_follow_each_other(target):
    other = EndpointFactory.create()
    made = [DeliveryFactory.create(endpoint=each) for each in (target, other) * 3]
    first = newest(size=4)
    assert first == made[:1:-1]
    assert newest(size=4, before=first[-1].pk) == made[1::-1]
    assert newest(before=made[0].pk) == []


def test_the_chart_has_a_bar_for_each_hour_of_a_day(
    target, monkeypatch, django_assert_num_queries
):
    now = timezone.now()
    delivery = DeliveryFactory.create(endpoint=target)
    for outcome, hours in (("ok", 0), ("http", 0), ("ok", 5), ("ok", 30)):
        at = now - timedelta(hours=hours)
        AttemptFactory.create(delivery=delivery, outcome=outcome, started_at=at)
    with django_assert_num_queries(1):
        chart = admin.last_day(now)
    assert (len(chart["bars"]), chart["ok"], chart["failed"]) == (24, 2, 1)
    assert chart["bars"][-1]["title"] == f"{now:%H}:00 UTC: 1 successful, 1 failed"
    assert (
        chart["bars"][-1]["ok_height"] + chart["bars"][-1]["failed_height"]
        == admin.HEIGHT
    )
    assert not chart["is_cut"]
    assert chart["title"] == "2 successful and 1 failed attempts in 24 hours"
    monkeypatch.setattr(admin, "MAX_ATTEMPTS", 2)
    Attempt.objects.update(started_at=now)
    assert admin.last_day(now)["is_cut"]
    Attempt.objects.all().delete()
    assert admin.last_day(now)["bars"][0]["ok_height"] == 0
