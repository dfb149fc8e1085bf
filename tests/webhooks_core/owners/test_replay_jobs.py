"""Replays of many events: counted, paced, continued after a crash, cancelled."""

from __future__ import annotations

from datetime import timedelta

import pytest
import time_machine
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.receiver import receiver
from tests.webhooks_core.engine import dispatch
from tests.webhooks_core.factories import EndpointFactory, publish_event, publish_events
from webhooks_core import endpoints
from webhooks_core.models import (
    Delivery,
    Endpoint,
    Event,
    ReplayJob,
    SkippedEvent,
)
from webhooks_core.owners import changes, replay_jobs
from webhooks_core.owners.replay_jobs import Selection
from webhooks_core.upkeep.retention import remove_old

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("plain")]

ADA = changes.owner("ada")


def selected(kind: str = "failed", **fields) -> Selection:
    now = timezone.now()
    times = {"since": now - timedelta(hours=1), "until": now + timedelta(hours=1)}
    return Selection(kind=ReplayJob.Kind(kind), **(times | fields))


def go_on() -> int:
    """Continue as if a second had passed."""
    ReplayJob.objects.update(continued_at=None)
    return replay_jobs.continue_running()


def failed(count: int) -> Endpoint:
    target = EndpointFactory.create()
    publish_events(count)
    Delivery.objects.all().fail(error="HTTP 500")
    return target


def test_a_replay_of_what_failed_sends_each_event_once():
    with receiver(204) as server:
        target = EndpointFactory.create(url=server.url)
        publish_events(3)
        Delivery.objects.all().fail(error="HTTP 500")
        job = replay_jobs.start(target, selected(), by=ADA)
        assert (job.total, job.status) == (3, "running")
        assert dispatch() == 3
    job.refresh_from_db()
    assert (job.status, job.sent, job.skipped) == ("done", 3, 0)
    assert job.finished_at is not None
    sent = Delivery.objects.filter(trigger="replay")
    assert {row.status for row in sent} == {Delivery.Status.DELIVERED}
    assert len({row.event_id for row in sent}) == 3
    assert changes.of(target)[0].subject == job.public_id


def test_missing_events_are_those_that_were_skipped_and_are_wanted_today():
    target = EndpointFactory.create(event_types=["thing.made", "thing.lost"])
    endpoints.update(target, active=False)
    events = publish_events(2)
    publish_event(event_type="thing.lost")
    target = endpoints.update(target, active=True, event_types=["thing.made"])
    counted = replay_jobs.preview(target, selected("missing"))
    assert (counted.total, counted.by_type) == (2, {"thing.made": 2})
    replay_jobs.start(target, selected("missing"), by=ADA)
    assert go_on() == 2
    rows = Delivery.objects.order_by("event").values_list("event", "replay_number")
    assert list(rows) == [(event.pk, 0) for event in events]
    assert SkippedEvent.objects.get().event.type == "thing.lost"


def test_a_preview_counts_by_type_and_error_with_three_queries():
    target = failed(3)
    Delivery.objects.filter(pk=Delivery.objects.latest("pk").pk).update(
        last_error="HTTP 404"
    )
    with CaptureQueriesContext(connection) as queries:
        counted = replay_jobs.preview(target, selected())
    assert len(queries) == 3
    assert (counted.total, counted.by_type) == (3, {"thing.made": 3})
    assert counted.by_error == {"HTTP 500": 2, "HTTP 404": 1}
    lost = selected(event_types=["thing.lost"])
    assert replay_jobs.preview(target, lost).total == 0
    past = selected(until=timezone.now() - timedelta(minutes=30))
    assert replay_jobs.preview(target, past).total == 0


def test_a_replay_waits_while_live_traffic_does_and_keeps_its_pace(monkeypatch):
    monkeypatch.setattr(replay_jobs, "RATE_PER_S", 2)
    target = failed(5)
    job = replay_jobs.start(target, selected(), by=ADA)
    assert replay_jobs.eta(job, job.created_at) == job.created_at + timedelta(
        seconds=2.5
    )
    live = publish_events(2)
    assert go_on() == 0
    Delivery.objects.filter(event=live[0]).fail(error="over")
    assert go_on() == 1
    Delivery.objects.pending().fail(error="over again")
    with time_machine.travel(timezone.now(), tick=False):
        assert go_on() == 2
        assert replay_jobs.continue_running() == 0  # not yet a second later
    job.refresh_from_db()
    assert (job.sent, job.skipped, job.total) == (3, 0, 5)


def test_what_arrives_or_is_removed_meanwhile_is_skipped():
    target = failed(4)
    job = replay_jobs.start(target, selected(), by=ADA)
    first, second, *_ = Event.objects.order_by("pk")
    Delivery.objects.create(
        public_id="dlv_2",
        event=first,
        endpoint=target,
        replay_number=1,
        status=1,
        delivered_at=timezone.now(),
        next_attempt_at=None,
    )
    old = timezone.now() - timedelta(days=40)
    Event.objects.filter(pk=second.pk).update(created_at=old)
    Delivery.objects.filter(event=second).update(created_at=old)
    assert remove_old(timezone.now() - timedelta(days=30), for_s=5) == 1
    assert go_on() == 2
    assert go_on() == 0
    job.refresh_from_db()
    assert (job.status, job.sent, job.skipped, job.total) == ("done", 2, 2, 4)


def test_a_replay_to_an_endpoint_that_receives_nothing_any_more_stops():
    target = failed(1)
    job = replay_jobs.start(target, selected(), by=ADA)
    endpoints.update(target, active=False)
    assert go_on() == 0
    job.refresh_from_db()
    assert job.status == "stopped"


def test_a_cancelled_replay_sends_nothing_more(monkeypatch):
    monkeypatch.setattr(replay_jobs, "RATE_PER_S", 2)
    target = failed(5)
    job = replay_jobs.start(target, selected(), by=ADA)
    assert go_on() == 2
    assert replay_jobs.cancel(job, by=ADA)
    assert not replay_jobs.cancel(job, by=ADA)
    assert go_on() == 0
    job.refresh_from_db()
    assert (job.status, job.sent) == ("cancelled", 2)
    assert replay_jobs.eta(job, timezone.now()) is None


def test_a_step_costs_the_same_queries_for_one_event_and_for_many(monkeypatch):
    target = failed(30)
    counts = []
    for rate in (1, 25):
        monkeypatch.setattr(replay_jobs, "RATE_PER_S", rate)
        job = replay_jobs.start(target, selected(), by=ADA)
        with CaptureQueriesContext(connection) as queries:
            assert go_on() == rate
        counts.append(len(queries))
        replay_jobs.cancel(job, by=ADA)
        Delivery.objects.pending().fail(error="over")
    assert counts[0] == counts[1]
