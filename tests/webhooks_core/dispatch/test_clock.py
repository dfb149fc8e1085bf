"""Machines whose wall clocks disagree share the database's clock."""

from datetime import timedelta

import pytest
import time_machine
from django.db import connection
from django.utils import timezone

from tests.receiver import receiver
from tests.webhooks_core.dispatch.stepped_dispatcher import (
    SteppedDispatcher,
    failed,
    ok,
)
from tests.webhooks_core.engine import dispatch
from tests.webhooks_core.factories import EndpointFactory, publish_event
from webhooks_core import endpoints
from webhooks_core.changes import ENGINE
from webhooks_core.database.clock import clock
from webhooks_core.dispatch import leases
from webhooks_core.models import Delivery, DispatcherLease, Endpoint, EndpointQueue
from webhooks_core.owners import resending
from webhooks_core.upkeep.sweep import SweepReport, sweep

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("plain"),
    pytest.mark.skipif(
        connection.vendor == "sqlite", reason="an SQLite database is on this machine"
    ),
]


@pytest.fixture(params=[1, -1], ids=["an hour ahead", "an hour behind"])
def another_machine(request):
    """Move this machine's wall clock, within a block."""
    return lambda: time_machine.travel(timezone.now() + timedelta(hours=request.param))


def test_another_machine_leaves_a_live_lease_and_its_claims_alone(another_machine):
    EndpointFactory.create()
    publish_event()
    live = SteppedDispatcher()
    [request] = live.claim()
    with another_machine():
        assert DispatcherLease.objects.live().count() == 1
        assert sweep(retention_s=0) == SweepReport()
        successor = leases.acquire()
        assert successor is not None
        assert successor.slot == 1
    leases.renew(live.lease)
    live.record([request], ok)
    assert Delivery.objects.values_list("status", "attempts").get() == (1, 1)


def test_what_another_machine_publishes_is_due_at_once(another_machine):
    with receiver(204) as server:
        target = EndpointFactory.create(url=server.url)
        with another_machine():
            publish_event()
        assert dispatch() == 1
        with another_machine():
            resending.resend(
                Delivery.objects.select_related("endpoint").get(), by=ENGINE
            )
        assert dispatch() == 1
        publish_event()
        endpoints.update(target, status=Endpoint.Status.DISABLED)
        with another_machine():
            endpoints.update(target, status=Endpoint.Status.ACTIVE)
        assert dispatch() == 1


def test_a_retry_is_due_at_the_same_time_for_every_machine(another_machine):
    EndpointFactory.create()
    publish_event()
    with another_machine():
        dispatcher = SteppedDispatcher()
        dispatcher.attempt(failed)
        dispatcher.finish()
    due = EndpointQueue.objects.get().next_due_at
    assert due is not None
    assert timedelta(minutes=-30) < due - clock.measure() <= timedelta(minutes=1)


def test_the_time_counts_on_while_the_wall_clock_jumps(another_machine):
    before = clock.measure()
    with another_machine():
        assert timedelta(0) <= clock.now() - before < timedelta(minutes=30)
