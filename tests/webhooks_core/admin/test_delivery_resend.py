"""Deliveries are history: one can only be resent, retried now or cancelled."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.utils import timezone

from tests.webhooks_core.admin.delivery_pages import (
    LIST,
    change,
    make,
    operate,
    resend_chosen,
)
from tests.webhooks_core.admin.looking import nothing_changes, page
from tests.webhooks_core.engine import only_delivery
from tests.webhooks_core.factories import EndpointFactory, publish_event, publish_events
from webhooks_core import endpoints
from webhooks_core.admin import deliveries
from webhooks_core.dispatch.sql.deliveries import claim
from webhooks_core.models import Delivery, Endpoint

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("plain")]


@pytest.fixture
def delivery(plain) -> Delivery:
    EndpointFactory.create()
    publish_event()
    return only_delivery()


def test_resending_queues_a_copy_and_is_logged(admin_client, delivery):
    Delivery.objects.all().fail(error="over")
    answer = admin_client.post(f"{LIST}{delivery.pk}/resend/")
    replay = Delivery.objects.get(trigger="manual")
    assert answer.headers["Location"] == change(replay)
    entry = LogEntry.objects.get()
    assert entry.object_id == str(delivery.pk)
    assert entry.change_message == f"Resent as {replay.public_id}."
    assert f"Queued again as {replay.public_id}." in page(admin_client, change(replay))
    assert replay.public_id in page(admin_client, change(delivery))


def test_chosen_deliveries_are_resent_oldest_first(admin_client):
    EndpointFactory.create()
    publish_events(3)
    Delivery.objects.all().fail(error="over")
    firsts = list(Delivery.objects.order_by("pk"))
    assert "Queued 3 of 3 again." in resend_chosen(admin_client, *firsts)
    copies = Delivery.objects.filter(replay_number=1).order_by("pk")
    assert [row.event_id for row in copies] == [row.event_id for row in firsts]
    assert list(copies.order_by("next_attempt_at")) == list(copies)
    assert LogEntry.objects.count() == 3


def test_too_many_at_once_are_refused(admin_client, monkeypatch):
    make(3)
    monkeypatch.setattr(deliveries, "RESENT_AT_ONCE", 2)
    first = Delivery.objects.earliest("pk")
    with nothing_changes():
        text = resend_chosen(admin_client, first, select_across=1)
    assert "choose at most 2 at once" in text


@pytest.mark.parametrize("state", ["deleted", "product gone"])
def test_nothing_is_resent_to_an_endpoint_that_receives_nothing(
    admin_client, delivery, state
):
    if state == "deleted":
        endpoints.delete(Endpoint.objects.get())
    else:
        Endpoint.objects.update(profile="gone")
        assert "This cannot be signed" in page(admin_client, change(delivery))
    with nothing_changes():
        assert "Nothing was queued" in operate(admin_client, delivery, "resend")
        assert "Queued 0 of 1 again." in resend_chosen(admin_client, delivery)


def test_a_pending_delivery_is_not_doubled_but_due_now(admin_client, delivery):
    Delivery.objects.update(next_attempt_at=timezone.now() + timedelta(hours=1))
    for operation in ("resend", "retry-now"):
        text = operate(admin_client, delivery, operation)
        assert "Its next attempt is due now." in text
        due = only_delivery().next_attempt_at
        assert due is not None
        assert due <= timezone.now()
    assert "Queued 1 of 1" in resend_chosen(admin_client, delivery)
    assert Delivery.objects.count() == 1


def test_a_pending_delivery_is_cancelled(admin_client, delivery):
    assert "/cancel/" in page(admin_client, change(delivery))
    text = operate(admin_client, delivery, "cancel")
    assert "Cancelled: it is not sent any more." in text
    cancelled = only_delivery()
    assert (cancelled.status, cancelled.last_error) == (2, "cancelled")
    assert LogEntry.objects.get().change_message == "Cancelled."
    assert Endpoint.objects.get().consecutive_failures == 0


@pytest.mark.parametrize("operation", ["retry-now", "cancel"])
@pytest.mark.parametrize("state", ["ended", "claimed"])
def test_what_does_not_wait_is_neither_retried_nor_cancelled(
    admin_client, delivery, operation, state
):
    if state == "ended":
        Delivery.objects.all().fail(error="over")
    else:
        claim([delivery.pk], lease=1)
    with nothing_changes():
        assert "Nothing was changed" in operate(admin_client, delivery, operation)
