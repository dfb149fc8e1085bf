"""The database fails while a dispatcher runs, before or after it stored a commit."""

from datetime import timedelta

import pytest
from django.db import OperationalError, connection
from django.utils import timezone

from tests.clock import travel
from tests.receiver import receiver
from tests.webhooks_core.engine import dispatch
from tests.webhooks_core.factories import EndpointFactory, publish_event, publish_events
from webhooks_core.dispatch import dispatcher as engine
from webhooks_core.dispatch import leases, results, sql
from webhooks_core.models import (
    Delivery,
    EndpointQueue,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("plain")]


def assert_each_is_sent_once() -> None:
    with receiver(204) as server:
        EndpointFactory.create(url=server.url)
        publish_events(3)
        assert dispatch() == 3
    assert len(server.requests) == 3
    assert set(Delivery.objects.values_list("status", "attempts")) == {(1, 1)}


def test_results_survive_an_outage_and_are_written_when_it_is_over(monkeypatch):
    monkeypatch.setattr(engine, "DATABASE_PAUSE_S", 0.01)
    real, failures = sql.insert_attempts, [True] * 20

    def insert_attempts(rows):
        if failures:
            failures.pop()
            raise OperationalError
        real(rows)

    monkeypatch.setattr(sql, "insert_attempts", insert_attempts)
    assert_each_is_sent_once()
    assert failures == []


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
    assert_each_is_sent_once()


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
        with travel(timezone.now() + timedelta(seconds=20)):
            assert dispatch() == 1
    assert len(server.requests) == 2
    delivery = Delivery.objects.get()
    assert (delivery.status, delivery.attempts, delivery.interruptions) == (1, 2, 1)
