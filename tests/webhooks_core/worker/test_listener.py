"""A shift that waits: it hears what is published, leaves no trace, and has a successor."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connection, transaction

from tests.receiver import Receiver, receiver
from tests.webhooks_core.engine import only_delivery
from tests.webhooks_core.factories import EndpointFactory, publish_event
from webhooks_core.dispatch import dispatcher as engine
from webhooks_core.dispatch import leases
from webhooks_core.models import Delivery, DispatcherLease, EndpointQueue
from webhooks_core.worker import listener, notify
from webhooks_core.worker.listener import Listener

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("plain")]

DRAIN = "webhooks_core.tasks.dispatch"


@contextmanager
def staying(monkeypatch) -> Iterator[None]:
    """Run a shift in another thread, as a worker does, which waits for work by now."""
    waits, stop = threading.Event(), threading.Event()
    real = Listener.wait

    def wait(self: Listener) -> None:
        if self._listens() or connection.vendor != "postgresql":
            waits.set()
        real(self)

    def work() -> None:
        try:
            engine.dispatch(stop=stop.is_set, resident=True, run_s=60)
        finally:
            connection.close()

    monkeypatch.setattr(Listener, "wait", wait)
    lane = EndpointQueue.objects.get()
    thread = threading.Thread(target=work)
    thread.start()
    try:
        assert waits.wait(30)
        yield
    finally:
        stop.set()
        notify.notify([lane.pk])  # it may be in the middle of a wait
        thread.join()


def arrived(at: Receiver) -> bool:
    end = time.monotonic() + 30
    while not at.requests and time.monotonic() < end:
        time.sleep(0.01)
    return bool(at.requests)


def test_a_waiting_shift_hears_a_commit_without_looking(monkeypatch, calls):
    monkeypatch.setattr(listener, "LOOK_EVERY_S", 3600.0)
    with receiver(204) as it:
        EndpointFactory.create(url=it.url)
        with staying(monkeypatch):
            publish_event()
            assert arrived(it)
    assert only_delivery().status == Delivery.Status.DELIVERED
    assert calls == []


def test_a_commit_that_is_not_heard_is_seen_at_the_next_look(monkeypatch, calls):
    monkeypatch.setattr(
        listener,
        "notify",
        lambda pks, *, at: EndpointQueue.objects.mark_due(pks, at=at),
    )
    monkeypatch.setattr(listener, "_version", lambda: 0)
    with receiver(204) as it:
        EndpointFactory.create(url=it.url)
        with staying(monkeypatch):
            publish_event()
            assert arrived(it)
    assert calls == []


def test_a_shift_that_stays_waits_for_its_time_and_calls_a_successor(calls):
    assert engine.dispatch(resident=True, run_s=0.2) == 0
    assert calls == [DRAIN]
    assert (
        not DispatcherLease.objects.exists()
    )  # it waited in vain: there is nothing to tell


def test_a_shift_that_is_stopped_calls_nobody(calls):
    assert engine.dispatch(resident=True, stop=lambda: True) == 0
    assert calls == []


def test_one_who_stays_is_enough(settings, calls):
    settings.WEBHOOK_DISPATCHERS = 2
    first = leases.acquire()
    assert first is not None
    assert engine.dispatch(resident=True, run_s=3600) == 0
    assert calls == []


def test_a_ring_inside_a_transaction_leaves_its_commit_as_it_is():
    """Elsewhere on PostgreSQL the commit of a ring returns before it is on disk."""
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
