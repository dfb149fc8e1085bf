"""The sweep: its repairs, what it does not change, and retention."""

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.clock import later
from tests.webhooks_core.dispatch.stepped_dispatcher import (
    SteppedDispatcher,
    failed,
    ok,
)
from tests.webhooks_core.engine import only_delivery
from tests.webhooks_core.factories import EndpointFactory, publish_event, publish_events
from webhooks_core import endpoints, tasks
from webhooks_core.changes import ENGINE
from webhooks_core.models import (
    Attempt,
    Delivery,
    Endpoint,
    EndpointQueue,
    Event,
)
from webhooks_core.owners import resending
from webhooks_core.upkeep import removal
from webhooks_core.upkeep.sweep import SweepReport, sweep

pytestmark = pytest.mark.usefixtures("plain", "commits_at_once", "clock")


def forget() -> None:
    """What a publisher leaves that dies between its commit and its notification."""
    EndpointQueue.objects.update(next_due_at=None)


def test_an_idle_system_needs_no_repair():
    EndpointFactory.create()
    publish_event()
    dispatcher = SteppedDispatcher()
    dispatcher.attempt(ok)
    dispatcher.finish()
    assert sweep() == SweepReport()


@pytest.mark.parametrize("lost", ["never notified", "notified of a much later time"])
def test_a_queue_that_missed_its_work_is_repaired_once_it_is_overdue(lost):
    EndpointFactory.create()
    publish_event()
    if lost == "never notified":
        forget()
    else:
        EndpointQueue.objects.update(next_due_at=timezone.now() + timedelta(days=1))
    assert sweep().repaired_queues == 0  # the notification may still be on its way
    with later(seconds=6):
        assert sweep().repaired_queues == 1
        assert sweep().repaired_queues == 0
        assert EndpointQueue.objects.due(timezone.now(), lease=0).exists()


@pytest.mark.parametrize(
    "fields",
    [
        {"status": Endpoint.Status.DISABLED},
        {"active": False},
    ],
)
def test_suspended_deliveries_are_not_repaired(fields):
    EndpointFactory.create()
    publish_event()
    forget()
    Endpoint.objects.update(**fields)
    with later(seconds=10):
        assert sweep().repaired_queues == 0


@pytest.mark.parametrize("ended", ["deleted", "inactive"])
def test_a_delivery_published_while_its_endpoint_ended_is_ended_too(use_profile, ended):
    """The publisher had read the endpoint before, and its notification was lost."""
    use_profile(inactive_fails_pending=True)
    target = EndpointFactory.create()
    publish_event()
    forget()
    if ended == "deleted":
        Endpoint.objects.update(deleted_at=timezone.now())
    else:
        Endpoint.objects.update(active=False)
    with later(seconds=10):
        assert sweep().repaired_queues == 1
        assert SteppedDispatcher().claim() == []
    assert only_delivery().status == Delivery.Status.FAILED
    assert only_delivery().last_error == f"endpoint {ended}"
    assert EndpointQueue.objects.filter(endpoint=target).exists()


def test_dead_leases_expire_and_live_ones_do_not(settings):
    settings.WEBHOOK_DISPATCHERS = 2
    EndpointFactory.create()
    publish_event()
    dead = SteppedDispatcher()
    dead.claim()
    with later(seconds=16):
        live = SteppedDispatcher()
        assert (dead.is_expired, sweep(), live.is_expired) == (
            True,
            SweepReport(),
            False,
        )
    with later(seconds=40):
        assert sweep().expired_leases == 1


@pytest.mark.parametrize("is_live", [True, False])
def test_the_task_wakes_a_dispatcher_when_none_is_live(calls, is_live):
    if is_live:
        SteppedDispatcher()
    tasks.sweep()
    assert calls == [] if is_live else ["webhooks_core.tasks.dispatch"]


@pytest.fixture
def old(settings):
    """An endpoint with a delivered, a failed and a waiting delivery of forty days ago."""
    settings.WEBHOOK_RETENTION_DAYS = 30
    target = EndpointFactory.create(max_in_flight=3)
    with later(days=-40):
        publish_events(3)
    dispatcher = SteppedDispatcher()
    _, second, _ = dispatcher.attempt(ok, failed, failed)
    dispatcher.finish()
    Delivery.objects.filter(pk=second.key).fail(error="over")
    return target


def test_old_ended_deliveries_are_removed_with_their_attempts_and_the_others_kept(old):
    fresh = publish_event()
    assert sweep().removed == 2
    assert Attempt.objects.count() == 1
    [waiting, new] = Delivery.objects.order_by("pk")
    assert waiting.status == new.status == Delivery.Status.PENDING
    assert Event.objects.filter(pk=fresh.pk).exists()
    assert sweep().removed == 0


@pytest.mark.parametrize("how", ["disabled", "deleted"])
def test_pending_deliveries_of_other_endpoints_end_with_the_retention(old, how):
    if how == "disabled":
        Endpoint.objects.update(status=Endpoint.Status.DISABLED)
    else:
        endpoints.delete(old)
    assert sweep().removed == 3
    assert not Delivery.objects.exists()
    assert Endpoint.objects.filter(pk=old.pk).exists()


def test_a_claimed_delivery_is_not_removed(old):
    with later(seconds=61):
        dispatcher = SteppedDispatcher()
        [request] = dispatcher.claim()
        Endpoint.objects.update(status=Endpoint.Status.DISABLED)
        assert sweep().removed == 2
        dispatcher.record([request], ok)
        assert only_delivery().status == Delivery.Status.DELIVERED
        assert sweep().removed == 1


def test_retention_removes_all_that_is_old_whatever_the_size_of_a_step(
    old, monkeypatch
):
    monkeypatch.setattr(removal, "EVENTS", 2)
    monkeypatch.setattr(removal, "ROWS", 1)
    endpoints.delete(old)
    assert sweep().removed == 3
    assert not Delivery.objects.exists()
    assert not Attempt.objects.exists()


def test_old_events_that_stay_do_not_keep_retention_from_newer_ones(old, monkeypatch):
    monkeypatch.setattr(removal, "EVENTS", 2)
    EndpointFactory.create()
    Endpoint.objects.filter(pk=old.pk).update(active=False)
    with later(days=-50):
        waiting = [event.pk for event in publish_events(9)]
    assert sum(sweep().removed for _ in range(2)) == 3
    assert list(Event.objects.order_by("pk").values_list("pk", flat=True)) == waiting
    assert Delivery.objects.filter(status=Delivery.Status.PENDING).count() == 9


def test_retention_ends_when_a_dispatcher_is_wanted(old, monkeypatch):
    monkeypatch.setattr(removal, "EVENTS", 1)
    EndpointFactory.create()
    publish_event()
    assert sweep().removed == 1  # work is due and no dispatcher is live
    SteppedDispatcher()
    assert sweep().removed == 1


def test_an_event_is_as_old_as_its_latest_resend(old):
    failed = Delivery.objects.get(status=Delivery.Status.FAILED)
    copy = resending.resend(failed, by=ENGINE)
    Delivery.objects.filter(pk=copy.pk).fail(error="again")
    assert sweep().removed == 1  # the delivered one, which was not resent
    copy.refresh_from_db()
    assert copy.event == failed.event
    with later(days=31):
        assert sweep().removed == 1
    assert not Delivery.objects.filter(pk=copy.pk).exists()
