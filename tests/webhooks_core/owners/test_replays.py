"""Sending again: the same event, the same bytes, a new delivery."""

from __future__ import annotations

from datetime import timedelta

import pytest
import time_machine
from django.utils import timezone

from tests.receiver import receiver
from tests.threads import at_once
from tests.webhooks_core.engine import dispatch
from tests.webhooks_core.factories import EndpointFactory, publish_event, publish_events
from webhooks_core import endpoints, publishing
from webhooks_core.models import Delivery, Endpoint, EndpointQueue
from webhooks_core.models.endpoints import HANGS_AFTER
from webhooks_core.owners import changes, replays
from webhooks_core.owners.replays import NotSubscribedError

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("plain")]


@pytest.fixture
def failed(use_profile):
    """Three deliveries that failed for good, and the receiver that is sound again."""
    use_profile(retry=use_profile().retry.__class__(()), disable_after=None)
    with receiver(500, 500, 500, 204) as server:
        target = EndpointFactory.create(url=server.url)
        publish_events(3)
        assert dispatch() == 3
        assert set(Delivery.objects.values_list("status", flat=True)) == {2}
        yield server, target


def test_a_replay_is_a_new_delivery_of_the_same_bytes(failed):
    server, _ = failed
    first = Delivery.objects.earliest("pk")
    created = replays.replay(first)
    assert dispatch() == 1
    created.refresh_from_db()
    assert (created.status, created.replay_number, created.trigger) == (1, 1, "replay")
    assert server.requests[-1].body == bytes(first.event.body)
    first.refresh_from_db()
    assert first.status == Delivery.Status.FAILED


@pytest.mark.slow
def test_all_that_failed_is_counted_and_sent_at_a_pace(failed):
    _, target = failed
    since = timezone.now() - timedelta(minutes=1)
    assert replays.failed_since(target, since).count() == 3
    seen: list[tuple[int, int]] = []
    queued = replays.replay_failed(
        target,
        since=since,
        by=changes.COMMAND,
        per_second=0.1,
        on_progress=lambda *progress: seen.append(progress),
    )
    assert queued == 3
    assert seen == [(3, 3)]
    due = Delivery.objects.filter(replay_number=1).order_by("pk")
    times = [delivery.next_attempt_at for delivery in due if delivery.next_attempt_at]
    assert [times[n + 1] - times[n] for n in (0, 1)] == [timedelta(seconds=10)] * 2
    assert EndpointQueue.objects.get().next_due_at == times[0]
    with time_machine.travel(timezone.now() + timedelta(seconds=30)):
        assert dispatch() == 3
    assert set(due.values_list("status", flat=True)) == {1}


def test_a_replayed_delivery_is_not_replayed_again(failed):
    _, target = failed
    since = timezone.now() - timedelta(minutes=1)
    assert replays.replay_failed(target, since=since, by=changes.COMMAND) == 3
    assert replays.replay_failed(target, since=since, by=changes.COMMAND) == 0


def test_a_replay_while_one_is_pending_is_that_one(failed):
    server, _ = failed
    first = Delivery.objects.earliest("pk")
    pending = replays.replay(first, at=timezone.now() + timedelta(hours=1))
    assert replays.replay(first) == pending
    assert dispatch() == 1
    assert len(server.requests) == 4
    pending.refresh_from_db()
    assert pending.status == Delivery.Status.DELIVERED
    assert replays.replay(first) != pending


def test_nothing_is_replayed_to_a_deleted_endpoint(failed):
    _, target = failed
    endpoints.delete(target)
    target.refresh_from_db()
    with pytest.raises(NotSubscribedError):
        replays.replay(Delivery.objects.select_related("endpoint").earliest("pk"))
    with pytest.raises(NotSubscribedError):
        replays.replay_failed(target, since=timezone.now(), by=changes.COMMAND)
    assert Delivery.objects.count() == 3


def test_a_replay_that_fails_again_meanwhile_is_not_replayed_twice(monkeypatch):
    monkeypatch.setattr(replays, "BATCH", 1)
    target = EndpointFactory.create(url="http://127.0.0.1:9/hook")
    publish_events(3)
    Delivery.objects.all().fail(error="over")

    def fail_at_once(queued: int, total: int) -> None:
        assert queued <= 3
        Delivery.objects.all().fail(error="over again")

    since = timezone.now() - timedelta(hours=1)
    assert (
        replays.replay_failed(
            target, since=since, by=changes.COMMAND, on_progress=fail_at_once
        )
        == 3
    )
    assert Delivery.objects.count() == 6


ADA = changes.owner("ada")


def pending_times():
    rows = Delivery.objects.pending().order_by("next_attempt_at", "pk")
    return list(rows.values_list("pk", flat=True))


def test_a_resend_is_the_next_request_of_its_endpoint(failed):
    _, target = failed
    publish_events(3)
    waiting = pending_times()
    first = Delivery.objects.select_related("endpoint").earliest("pk")
    sent = replays.resend(first, by=ADA)
    assert sent.trigger == "manual"
    assert pending_times() == [sent.pk, *waiting]
    [change] = changes.of(target).filter(action="resent")
    assert (change.actor_kind, change.actor) == ("owner", "ada")
    assert change.subject == first.public_id


def test_a_delivery_that_is_due_already_is_retried_before_the_backlog():
    target = EndpointFactory.create()
    publish_events(3)
    last = Delivery.objects.select_related("endpoint").latest("pk")
    assert replays.retry_now(last, by=ADA)
    assert pending_times()[0] == last.pk
    assert changes.of(target)[0].action == "retried"


def test_a_failed_delivery_tells_what_became_of_it_when_it_was_resent(failed):
    first, second, third = Delivery.objects.select_related("endpoint").order_by("pk")
    again = replays.resend(first, by=ADA)
    assert dispatch() == 1
    pending = replays.resend(second, by=ADA)
    rows = [first, second, third, again, pending]
    marks = replays.resent(rows)
    assert marks == {first.pk: "delivered", second.pk: "pending"}
    assert replays.arrived([first, second, third]) == 1
    assert replays.cancel(pending, by=ADA)
    assert replays.resent([second]) == {second.pk: "failed"}
    undelivered = Delivery.objects.undelivered()
    assert set(undelivered.values_list("pk", flat=True)) == {third.pk, pending.pk}


def test_two_resends_at_once_send_one_event_once(failed):
    first = Delivery.objects.select_related("endpoint").earliest("pk")
    sent = set(at_once(2, lambda: replays.resend(first, by=ADA).pk))
    assert len(sent) == 1
    assert Delivery.objects.filter(event=first.event_id).count() == 2


def test_a_test_event_is_sent_before_the_backlog():
    with receiver(204) as server:
        target = EndpointFactory.create(url=server.url, max_in_flight=1)
        publish_events(3)
        event = publishing.publish_test(target, event_type="thing.made", data={})
        assert dispatch() == 4
    assert event.public_id.encode() in server.requests[0].body


def test_without_a_backlog_it_is_due_now():
    target = EndpointFactory.create()
    assert replays.due_first(target) <= timezone.now()


def test_of_an_endpoint_that_hangs_the_next_probe_is_what_was_asked_for():
    with receiver(204) as server:
        target = EndpointFactory.create(url=server.url)
        publish_events(2)
        asked = Delivery.objects.select_related("endpoint").latest("pk")
        Endpoint.objects.update(timeouts=HANGS_AFTER + 6, hanging_since=timezone.now())
        assert replays.retry_now(asked, by=changes.owner("ada"))
        target.refresh_from_db()
        assert target.timeouts == HANGS_AFTER  # the next probe comes soon
        publish_event()
        assert dispatch() == 3
    assert asked.event.public_id.encode() in server.requests[0].body
