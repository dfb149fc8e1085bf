"""Resend: the same event, the same bytes, a new delivery."""

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.receiver import receiver
from tests.webhooks_core.engine import dispatch
from tests.webhooks_core.factories import (
    DeliveryFactory,
    EndpointFactory,
    publish_event,
    publish_events,
)
from webhooks_core import endpoints, publishing
from webhooks_core.changes import Actor
from webhooks_core.models import Delivery, Endpoint, Event
from webhooks_core.owners import resending
from webhooks_core.owners.repairs import NotReceivingError
from webhooks_core.owners.resending import (
    AT_ONCE,
    RemovedError,
    Selection,
)
from webhooks_core.profiles import NewEvent

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("plain")]
ADA = Actor("owner", "ada")
FAILED, MISSED = Selection.FAILED, Selection.MISSED


def ago(**time: float):
    return timezone.now() - timedelta(**time)


@pytest.fixture
def failed() -> Endpoint:
    """An endpoint with three deliveries that failed for good."""
    target = EndpointFactory.create()
    publish_events(3)
    Delivery.objects.all().fail(error="over")
    return target


def first_delivery() -> Delivery:
    return Delivery.objects.select_related("endpoint", "event").earliest("pk")


def pending_order() -> list[int]:
    rows = Delivery.objects.pending().order_by("next_attempt_at", "pk")
    return list(rows.values_list("pk", flat=True))


def test_a_resend_is_a_new_delivery_of_the_same_bytes(failed):
    with receiver(204) as server:
        Endpoint.objects.update(url=server.url)
        sent = resending.resend(first_delivery(), by=ADA)
        assert dispatch() == 1
    sent.refresh_from_db()
    assert (sent.status, sent.replay_number, sent.trigger) == (1, 1, "manual")
    assert server.requests[0].body == bytes(first_delivery().event.body)
    assert first_delivery().status == Delivery.Status.FAILED


def test_a_resend_is_the_next_request_of_its_endpoint(failed):
    publish_events(3)
    waiting = pending_order()
    sent = resending.resend(first_delivery(), by=ADA)
    assert pending_order() == [sent.pk, *waiting]


def test_a_resend_while_one_is_pending_is_that_one_due_now(failed):
    pending = resending.resend(first_delivery(), by=ADA)
    Delivery.objects.filter(pk=pending.pk).update(next_attempt_at=ago(hours=-1))
    assert resending.resend(first_delivery(), by=ADA) == pending
    pending.refresh_from_db()
    assert pending.next_attempt_at
    assert pending.next_attempt_at <= timezone.now()


def test_a_test_event_is_sent_before_the_backlog():
    target = EndpointFactory.create()
    publish_events(3)
    event = publishing.publish_test(target, NewEvent("thing.made", {}))
    assert pending_order()[0] == Delivery.objects.get(event=event).pk


@pytest.mark.parametrize(
    "off",
    [{"status": 2}, {"active": False}, {"deleted_at": timezone.now()}],
    ids=["disabled", "paused", "deleted"],
)
def test_nothing_is_resent_to_an_endpoint_that_receives_nothing(failed, off):
    delivery = first_delivery()  # read before
    Endpoint.objects.update(**off)
    with pytest.raises(NotReceivingError, match="Nothing is sent: the endpoint is"):
        resending.resend(delivery, by=ADA)
    for selection in Selection:
        with pytest.raises(NotReceivingError):
            resending.resend_since(failed, selection, since=ago(days=1), by=ADA)
    assert Delivery.objects.count() == 3


def test_an_event_that_was_removed_meanwhile_is_not_resent(failed):
    delivery = first_delivery()
    Event.objects.filter(pk=delivery.event_id).delete()
    with pytest.raises(RemovedError):
        resending.resend(delivery, by=ADA)


def test_all_that_failed_is_counted_and_sent_with_room_between(failed):
    since = ago(hours=1)
    assert resending.count(failed, FAILED, since=since) == 3
    assert resending.resend_since(failed, FAILED, since=since, by=ADA) == 3
    due = Delivery.objects.pending().order_by("event")
    times = [row.next_attempt_at for row in due if row.next_attempt_at]
    pause = timedelta(seconds=1 / resending.PER_SECOND)
    assert [times[n + 1] - times[n] for n in (0, 1)] == [pause, pause]
    assert resending.count(failed, FAILED, since=since) == 0
    assert resending.resend_since(failed, FAILED, since=since, by=ADA) == 0


def test_what_arrived_in_another_way_or_lies_outside_the_time_is_left_out(failed):
    first, second, third = Event.objects.order_by("pk")
    DeliveryFactory.create(
        event=first,
        endpoint=failed,
        status=1,
        next_attempt_at=None,
        delivered_at=timezone.now(),
        replay_number=1,
    )
    Event.objects.filter(pk=second.pk).update(created_at=ago(hours=2))
    period = {"since": ago(hours=1), "until": timezone.now()}
    assert resending.count(failed, FAILED, **period) == 1
    assert resending.resend_since(failed, FAILED, **period, by=ADA) == 1
    assert Delivery.objects.pending().get().event == third
    assert resending.count(failed, FAILED, since=ago(hours=3), until=ago(hours=1)) == 1


def test_more_than_at_once_are_left_to_another_call(failed, monkeypatch):
    monkeypatch.setattr(resending, "AT_ONCE", 2)
    since = ago(hours=1)
    for count in (2, 1, 0):
        assert resending.resend_since(failed, FAILED, since=since, by=ADA) == count
    assert AT_ONCE == 5_000


@pytest.fixture
def missed() -> Endpoint:
    """An endpoint that missed two events while it was disabled, and receives again."""
    target = EndpointFactory.create()
    publish_event()
    endpoints.update(target, status=Endpoint.Status.DISABLED)
    publish_events(2)
    publish_event(event_type="thing.lost")  # it would not receive that one
    publish_event(owner="bob")
    return endpoints.update(target, status=Endpoint.Status.ACTIVE)


def test_what_was_missed_is_sent_once(missed):
    since = missed.disabled_at
    publish_event()
    assert resending.count(missed, MISSED, since=since) == 2
    assert resending.resend_since(missed, MISSED, since=since, by=ADA) == 2
    assert resending.resend_since(missed, MISSED, since=since, by=ADA) == 0
    assert Delivery.objects.filter(trigger="manual", replay_number=0).count() == 2
    missed.refresh_from_db()
    assert (missed.disabled_at, missed.enabled_at) == (None, None)


def test_what_the_filter_refuses_was_not_missed(missed):
    endpoints.update(missed, filter={"data": {"n": 2}})
    missed.refresh_from_db()
    assert resending.count(missed, MISSED, since=missed.disabled_at) == 0
    endpoints.update(missed, filter={"data": {"n": 1}})
    missed.refresh_from_db()
    assert resending.count(missed, MISSED, since=missed.disabled_at) == 2


def test_events_from_before_the_endpoint_are_not_missed():
    publish_event()
    assert resending.count(EndpointFactory.create(), MISSED, since=ago(days=1)) == 0


def test_the_time_of_an_outage_stays_while_something_of_it_is_missed(missed):
    since = missed.disabled_at
    Event.objects.filter(type="thing.made").update(created_at=since)
    later = since + timedelta(microseconds=1)
    assert resending.resend_since(missed, MISSED, since=later, by=ADA) == 0
    missed.refresh_from_db()
    assert missed.disabled_at == since
