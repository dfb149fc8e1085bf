"""Endpoints that end, alone or with their owner: nothing is sent, and their rows go."""

from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from tests.receiver import receiver
from tests.running import until
from tests.threads import started
from tests.webhooks_core.engine import dispatch, running_dispatcher
from tests.webhooks_core.factories import (
    DispatcherLeaseFactory,
    EndpointFactory,
    publish_event,
    publish_events,
)
from webhooks_core import endpoints, tasks
from webhooks_core.models import (
    Delivery,
    Endpoint,
    EndpointQueue,
    Event,
    OwnerRemoval,
    deliveries,
)
from webhooks_core.upkeep import removal
from webhooks_core.upkeep.removal import end_owner

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("plain"),
]
ALICE = {"profile": "plain", "owner": "alice"}


def test_a_deletion_fails_a_long_backlog_in_short_steps(monkeypatch):
    monkeypatch.setattr(deliveries, "FAILED_AT_ONCE", 3)
    endpoint = EndpointFactory.create()
    publish_events(10)
    assert endpoints.delete(endpoint)
    assert set(Delivery.objects.values_list("status", "last_error")) == {
        (2, "endpoint deleted")
    }


def test_what_a_deletion_left_waiting_is_failed_by_the_dispatcher(monkeypatch):
    monkeypatch.setattr(deliveries, "FAILED_AT_ONCE", 3)
    EndpointFactory.create()
    publish_events(10)
    Endpoint.objects.update(deleted_at=timezone.now())
    assert dispatch() == 0
    assert not Delivery.objects.pending().exists()


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has one writer")
def test_results_of_an_endpoint_that_others_lock_delay_no_other_results():
    with receiver(204) as server, receiver(204) as other:
        locked = EndpointFactory.create(url=server.url)
        EndpointFactory.create(url=other.url, owner="bob")
        publish_event()
        publish_event("bob")
        server.gate.clear()
        with running_dispatcher():
            until(lambda: server.requests, "a request in flight")
            with transaction.atomic():
                Endpoint.objects.select_for_update().get(pk=locked.pk)
                server.gate.set()
                started(publish_event, "bob").result()
                delivered = Delivery.objects.filter(status=1).values_list
                until(
                    lambda: list(delivered("event__owner", flat=True)) == ["bob"] * 2,
                    "both of bob's",
                )
            until(lambda: delivered("pk").count() == 3, "the result that was locked")
    assert not Delivery.objects.exclude(attempts=1).exists()


def test_an_owner_with_requests_in_flight_is_left_to_a_later_call(monkeypatch):
    EndpointFactory.create()
    publish_event()
    lease = DispatcherLeaseFactory.create()
    Delivery.objects.update(claimed_by=lease.pk)
    end_owner(**ALICE)
    assert tasks.remove_ended_owners() == 0
    assert Delivery.objects.get().claimed_by == lease.pk
    monkeypatch.setattr(removal, "SETTLED_AFTER", timedelta(0))
    assert tasks.remove_ended_owners() == 1
    left = (Endpoint, EndpointQueue, Event, Delivery, OwnerRemoval)
    assert [model.objects.count() for model in left] == [0] * 5


def test_an_owner_that_has_come_back_keeps_what_is_new():
    EndpointFactory.create()
    publish_event()
    end_owner(**ALICE)
    back = EndpointFactory.create()
    new = publish_event()
    assert tasks.remove_ended_owners() == 1
    assert Endpoint.objects.get() == back
    assert Delivery.objects.get().event == new
    assert Event.objects.get() == new
