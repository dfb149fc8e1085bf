"""The database fails while a dispatcher runs, before or after it stored a commit."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.db import OperationalError, connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F
from django.utils import timezone

from tests.receiver import receiver
from tests.webhooks_core.engine import dispatch
from tests.webhooks_core.factories import EndpointFactory, publish_event, publish_events
from webhooks_core.dispatch import dispatcher as engine
from webhooks_core.dispatch import leases, results, sql
from webhooks_core.dispatch.queues import LeasedQueues
from webhooks_core.models import (
    Attempt,
    Delivery,
    DispatcherLease,
    EndpointQueue,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("plain")]

POINTS: dict[str, tuple[object, str]] = {
    "a queue is leased": (LeasedQueues, "lease_due"),
    "deliveries are claimed": (sql, "claim"),
    "results are recorded": (sql, "insert_attempts"),
    "queues are released": (LeasedQueues, "release"),
    "the lease is renewed": (leases, "renew"),
    "the lease is released": (leases, "_free_claims"),
}


class Outage:
    """Breaks the first commit after `armed` was set; `kept` tells whether it was stored."""

    def __init__(self, *, kept: bool) -> None:
        self.kept = kept
        self.armed = self.happened = False

    def commit(self, real: Callable[[], None]) -> None:
        if not self.armed:
            real()
            return
        self.armed, self.happened = False, True
        if self.kept:
            real()
        raise OperationalError("server closed the connection unexpectedly")


@pytest.fixture
def outage_at(monkeypatch):
    """Return a context manager that breaks the commit of one step of a dispatcher."""
    monkeypatch.setattr(engine, "DATABASE_PAUSE_S", 0.01)
    monkeypatch.setattr(engine, "RENEW_EVERY_S", 0.0)

    @contextmanager
    def at(point: str, *, kept: bool) -> Iterator[Outage]:
        outage = Outage(kept=kept)
        owner, name = POINTS[point]
        step: Any = getattr(owner, name)
        real_commit: Any = getattr(BaseDatabaseWrapper, "_commit")  # noqa: B009 - not in the stubs

        def armed_step(*args: Any, **kwargs: Any) -> Any:
            outage.armed = not outage.happened
            done = step(*args, **kwargs)
            if outage.armed and owner is leases and name != "_free_claims":
                # A single UPDATE commits by itself.
                outage.armed, outage.happened = False, True
                raise OperationalError("the confirmation was lost")
            return done

        def commit(self) -> None:
            outage.commit(lambda: real_commit(self))

        with monkeypatch.context() as patch:
            patch.setattr(owner, name, armed_step)
            patch.setattr(BaseDatabaseWrapper, "_commit", commit)
            yield outage

    return at


@pytest.mark.parametrize("kept", [True, False], ids=["kept", "rolled back"])
@pytest.mark.parametrize("point", POINTS)
def test_nothing_is_lost_and_nothing_counted_twice_when(outage_at, point, kept):
    with receiver(204) as server, receiver(500) as broken:
        EndpointFactory.create(url=server.url)
        failing = EndpointFactory.create(url=broken.url, max_in_flight=2)
        publish_events(2)
        with outage_at(point, kept=kept) as outage:
            dispatch()
        assert outage.happened
        dispatch()
    assert len(server.requests) == 2
    assert len(broken.requests) == 2
    sent = Delivery.objects.exclude(endpoint=failing)
    made = F("attempts") - F("interruptions")
    assert list(sent.values_list("status", made)) == [(1, 1)] * 2
    waiting = Delivery.objects.filter(endpoint=failing)
    assert list(waiting.values_list("status", made, "claimed_by")) == [(0, 1, None)] * 2
    failing.refresh_from_db()
    assert failing.consecutive_failures == 2
    assert Attempt.objects.exclude(outcome="interrupted").count() == 4
    assert not EndpointQueue.objects.exclude(leased_by=None).exists()
    assert not DispatcherLease.objects.filter(ended_at=None).exists()
    due = EndpointQueue.objects.get(pk=failing.pk).next_due_at
    assert due == waiting.earliest("next_attempt_at").next_attempt_at


def test_results_survive_an_outage_and_are_written_when_it_is_over(monkeypatch):
    monkeypatch.setattr(engine, "DATABASE_PAUSE_S", 0.01)
    real, failures = sql.insert_attempts, [True] * 20

    def insert_attempts(rows):
        if failures:
            failures.pop()
            raise OperationalError
        real(rows)

    monkeypatch.setattr(sql, "insert_attempts", insert_attempts)
    with receiver(204) as server:
        EndpointFactory.create(url=server.url)
        publish_events(3)
        assert dispatch() == 3
    assert len(server.requests) == 3
    assert failures == []
    assert set(Delivery.objects.values_list("status", "attempts")) == {(1, 1)}


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has no standby")
def test_results_are_kept_while_the_server_is_read_only(monkeypatch):
    """As after a failover, until the connection is made anew."""
    monkeypatch.setattr(engine, "DATABASE_PAUSE_S", 0.01)
    real, failed_over = results.record_results, list[bool]()

    def record_results(lease, ended, *, now):
        if not failed_over:
            failed_over.append(True)
            with connection.cursor() as cursor:
                cursor.execute("SET default_transaction_read_only = on")
        return real(lease, ended, now=now)

    monkeypatch.setattr(results, "record_results", record_results)
    with receiver(204) as server:
        EndpointFactory.create(url=server.url)
        publish_events(3)
        assert dispatch() == 3
    assert len(server.requests) == 3
    assert set(Delivery.objects.values_list("status", "attempts")) == {(1, 1)}


def test_what_is_unwritten_when_patience_ends_is_sent_again_by_the_next_dispatcher(
    monkeypatch,
):
    """Also when the database comes back just long enough to release the queues."""
    monkeypatch.setattr(engine, "DATABASE_PAUSE_S", 0.01)
    monkeypatch.setattr(engine, "DATABASE_RETRY_S", 0.05)

    def away(rows):
        raise OperationalError

    with receiver(204) as server:
        EndpointFactory.create(url=server.url)
        publish_event()
        with monkeypatch.context() as patch:
            patch.setattr(sql, "insert_attempts", away)
            patch.setattr(
                leases, "release", lambda *_, **__: None
            )  # the worker is killed
            with pytest.raises(OperationalError):
                dispatch()
        claimed = Delivery.objects.get()
        assert claimed.claimed_by is not None
        assert EndpointQueue.objects.get().leased_by == claimed.claimed_by
        with time_machine.travel(timezone.now() + timedelta(seconds=20)):
            assert dispatch() == 1
    assert len(server.requests) == 2
    delivery = Delivery.objects.get()
    assert (delivery.status, delivery.attempts, delivery.interruptions) == (1, 2, 1)
