"""A resident dispatcher is notified of commits, and of those without a notification soon after."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from tests.receiver import receiver
from tests.running import PATIENCE_S, until
from tests.webhooks_core.engine import only_delivery, running_dispatcher
from tests.webhooks_core.factories import EndpointFactory, publish_event
from webhooks_core.database.clock import clock
from webhooks_core.dispatch import dispatcher as engine
from webhooks_core.dispatch import leases, notify
from webhooks_core.dispatch.notify import Listener
from webhooks_core.models import Delivery, EndpointQueue

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("plain")]


@contextmanager
def resident_dispatcher(monkeypatch) -> Iterator[None]:
    """Run a dispatcher that waits for work by now."""
    waits = threading.Event()
    real = Listener.wait

    def wait(self: Listener) -> None:
        if self._is_listening() or connection.vendor != "postgresql":
            waits.set()
        real(self)

    def end_a_wait() -> None:
        """notify() would wake another dispatcher if this one has ended."""
        notify._mark_due([queue.pk], at=timezone.now())

    monkeypatch.setattr(Listener, "wait", wait)
    queue = EndpointQueue.objects.get()
    with running_dispatcher(at_end=end_a_wait):
        assert waits.wait(PATIENCE_S)
        yield


def assert_sent_after(
    action: Callable[[], object], monkeypatch, calls: list[str]
) -> None:
    """Let the resident dispatcher send what an action leaves; it wakes no other one."""
    with receiver(204) as target:
        EndpointFactory.create(url=target.url)
        with resident_dispatcher(monkeypatch):
            action()
            until(lambda: target.requests, "a request")
    assert calls == []


def test_a_waiting_dispatcher_is_notified_of_a_commit(monkeypatch, calls):
    monkeypatch.setattr(notify, "LOOK_EVERY_S", 3600.0)
    assert_sent_after(publish_event, monkeypatch, calls)
    assert only_delivery().status == Delivery.Status.DELIVERED


def test_work_that_is_later_than_the_measured_time_is_seen_at_once(monkeypatch, calls):
    monkeypatch.setattr(notify, "LOOK_EVERY_S", 3600.0)

    def publish() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(notify, "_mark_due", lambda _, *, at: at)
            publish_event()  # measures the time
        behind = clock.measure() - timedelta(seconds=5)
        monkeypatch.setattr(clock, "_measured", (behind, time.monotonic()))
        notify._mark_due([EndpointQueue.objects.get().pk], at=None)

    assert_sent_after(publish, monkeypatch, calls)


def test_a_commit_without_a_notification_is_seen_at_the_next_look(monkeypatch, calls):
    monkeypatch.setattr(
        notify,
        "_mark_due",
        lambda pks, *, at: EndpointQueue.objects.mark_due(pks, at=at or clock.in_sql()),
    )
    monkeypatch.setattr(notify, "_data_version", lambda: 0)
    assert_sent_after(publish_event, monkeypatch, calls)


def test_only_one_dispatcher_stays_resident(settings, calls):
    settings.WEBHOOK_DISPATCHERS = 2
    first = leases.acquire()
    assert first is not None
    assert engine.dispatch(resident=True) == 0
    assert calls == []


def test_a_notification_inside_a_transaction_does_not_change_its_commit():
    """Otherwise, on PostgreSQL, its commit returns before it is on disk."""
    if connection.vendor != "postgresql":
        pytest.skip("only PostgreSQL has such commits")
    target = EndpointFactory.create(url="http://127.0.0.1:9/hook")
    with transaction.atomic():
        notify.notify([target.pk])
        with connection.cursor() as cursor:
            cursor.execute("SHOW synchronous_commit")
            assert cursor.fetchone() == ("on",)
    with connection.cursor() as cursor:
        notify.notify([target.pk])
        cursor.execute("SHOW synchronous_commit")
        assert cursor.fetchone() == ("on",)
