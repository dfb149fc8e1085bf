"""Two transactions over the same rows: whichever is first, the other finds what it left."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from tests.running import PATIENCE_S, until
from tests.threads import started
from tests.webhooks_core.dispatch.stepped_dispatcher import (
    SteppedDispatcher,
    ok,
)
from tests.webhooks_core.factories import EndpointFactory, publish_event
from webhooks_core import publishing
from webhooks_core.changes import ENGINE
from webhooks_core.database import limits
from webhooks_core.database.outages import is_outage
from webhooks_core.dispatch import leases
from webhooks_core.models import (
    Attempt,
    Delivery,
    DispatcherLease,
    Endpoint,
    EndpointQueue,
    EngineState,
    Event,
)
from webhooks_core.owners import resending
from webhooks_core.upkeep.removal import end_owner
from webhooks_core.upkeep.retention import remove_old

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("plain"),
    pytest.mark.skipif(
        connection.vendor == "sqlite", reason="SQLite has one writer at a time"
    ),
]


@pytest.fixture(autouse=True)
def patient(monkeypatch) -> None:
    """Let PostgreSQL end no session of a test that a busy machine makes wait."""
    monkeypatch.setattr(limits, "IDLE_MS", 1000 * PATIENCE_S)


class TestLeaseThatExpiresWhileItsOwnerRecords:
    @pytest.fixture
    def stalled(self) -> SteppedDispatcher:
        """A dispatcher that claims a delivery, and whose lease is over."""
        EndpointFactory.create()
        publish_event()
        dispatcher = SteppedDispatcher()
        self.request = dispatcher.claim()[0]
        over = timezone.now() - timedelta(seconds=1)
        DispatcherLease.objects.update(expires_at=over)
        return dispatcher

    def test_the_result_counts_if_it_is_first(self, stalled):
        with transaction.atomic():
            stalled.record([self.request], ok)
            assert started(leases.expire_dead).result() == 0
        assert leases.expire_dead() == 1
        assert Attempt.objects.values_list("number", "outcome").get() == (1, "ok")
        delivery = Delivery.objects.get()
        assert (delivery.status, delivery.attempts, delivery.interruptions) == (1, 1, 0)

    def test_the_interruption_counts_if_it_is_first(self, stalled):
        with transaction.atomic():
            assert leases.expire_dead() == 1
            recording = started(stalled.record, [self.request], ok)
        with pytest.raises(leases.LeaseLostError):
            recording.result()
        assert Attempt.objects.values_list("outcome").get() == ("interrupted",)
        delivery = Delivery.objects.get()
        assert (delivery.status, delivery.attempts, delivery.interruptions) == (0, 1, 1)
        assert Endpoint.objects.get().last_attempt_at is None


class TestResendBesideRetention:
    @pytest.fixture
    def delivery(self) -> Delivery:
        EndpointFactory.create()
        publish_event()
        Delivery.objects.all().fail(error="over")
        long_ago = timezone.now() - timedelta(days=40)
        Event.objects.update(created_at=long_ago)
        Delivery.objects.update(created_at=long_ago)
        EngineState.objects.get_or_create(pk=1)
        return Delivery.objects.select_related("endpoint").get()

    def remove(self) -> int:
        return remove_old(timezone.now() - timedelta(days=30), for_s=60)

    def test_an_event_that_is_removed_first_is_not_resent(self, delivery):
        def resend_in_a_batch() -> None:
            with transaction.atomic():
                resending.resend(delivery, by=ENGINE)

        with transaction.atomic():
            assert self.remove() == 1
            resending_it = started(resend_in_a_batch)
        with pytest.raises(resending.RemovedError):
            resending_it.result()

    def test_an_event_that_is_resent_first_is_kept(self, delivery):
        with transaction.atomic():
            copy = resending.resend(delivery, by=ENGINE)
            removing = started(self.remove)
        assert removing.result() == 0
        assert Delivery.objects.filter(pk=copy.pk, event=delivery.event_id).exists()


def test_two_resends_at_once_are_one_delivery():
    EndpointFactory.create()
    publish_event()
    Delivery.objects.all().fail(error="over")
    delivery = Delivery.objects.select_related("endpoint").get()
    with transaction.atomic():
        first = resending.resend(delivery, by=ENGINE)
        second = started(lambda: resending.resend(delivery, by=ENGINE))
    assert second.result() == first


def test_a_test_event_beside_the_removal_of_its_account_is_refused():
    endpoint = EndpointFactory.create()
    with transaction.atomic():
        end_owner(profile="plain", owner=endpoint.owner)
        testing = started(
            lambda: publishing.publish_test(endpoint, event_type="thing.made", data={})
        )
    with pytest.raises(Endpoint.DoesNotExist):
        testing.result()
    assert not Event.objects.exists()


class TestDispatcherFrozenInsideATransaction:
    @pytest.fixture
    def lease(self) -> DispatcherLease:
        """One that is over, of a dispatcher with a claim."""
        EndpointFactory.create()
        publish_event()
        dispatcher = SteppedDispatcher()
        dispatcher.claim()
        over = timezone.now() - timedelta(seconds=1)
        DispatcherLease.objects.update(expires_at=over)
        return dispatcher.lease

    @contextmanager
    def frozen(self, lease: DispatcherLease) -> Iterator[Future[None]]:
        """Have another connection lock the lease, and commit after the block."""
        is_locked, may_go_on = threading.Event(), threading.Event()

        def freeze() -> None:
            try:
                with transaction.atomic():
                    leases.lock(lease)
                    is_locked.set()
                    may_go_on.wait(60)
            finally:
                connection.close()

        with ThreadPoolExecutor(1) as pool:
            task = pool.submit(freeze)
            assert is_locked.wait(PATIENCE_S)
            try:
                yield task
            finally:
                may_go_on.set()

    def test_its_locks_last_a_moment(self, lease, monkeypatch):
        monkeypatch.setattr(limits, "IDLE_MS", 300)
        with self.frozen(lease) as task:
            # Waits for the lock.
            assert DispatcherLease.objects.update(host="another") == 1
        assert is_outage(task.exception())

    def test_its_session_is_ended_with_its_lease(self, lease, monkeypatch):
        with self.frozen(lease) as task:
            assert leases.expire_dead() == 0
            monkeypatch.setattr(limits, "IDLE_MS", 100)
            until(lambda: leases.expire_dead() == 1, "the end of the session")
        assert is_outage(task.exception())
        delivery = Delivery.objects.get()
        assert (delivery.claimed_by, delivery.interruptions) == (None, 1)

    def test_a_role_that_may_not_end_its_session_waits(self, lease, monkeypatch):
        with self.frozen(lease) as task:
            monkeypatch.setattr(limits, "IDLE_MS", 0)
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("SET LOCAL ROLE pg_read_all_data")
                limits.terminate(lease.pk)
        assert task.exception() is None

    def test_a_row_that_another_transaction_locks_delays_the_end_of_its_lease_alone(
        self, lease, monkeypatch
    ):
        monkeypatch.setattr(limits, "LOCK_WAIT_MS", 100)
        with transaction.atomic():
            EndpointQueue.objects.select_for_update().get()
            assert started(leases.expire_dead).result() == 0
        assert leases.expire_dead() == 1

    def test_a_live_lease_that_is_locked_is_left_alone(self, lease, monkeypatch):
        leases.renew(lease)
        with self.frozen(lease) as task:
            monkeypatch.setattr(limits, "IDLE_MS", 0)
            assert leases.expire_dead() == 0
        assert task.exception() is None
