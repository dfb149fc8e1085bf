"""Two transactions over the same rows: whichever is first, the other finds what it left."""

from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from tests.threads import started
from tests.webhooks_core.dispatch.stepped_dispatcher import (
    SteppedDispatcher,
    ok,
)
from tests.webhooks_core.factories import EndpointFactory, publish_event
from webhooks_core import publishing
from webhooks_core.changes import ENGINE
from webhooks_core.dispatch import leases
from webhooks_core.models import (
    Attempt,
    Delivery,
    DispatcherLease,
    Endpoint,
    EngineState,
    Event,
)
from webhooks_core.owners import resending
from webhooks_core.profiles import NewEvent
from webhooks_core.upkeep.removal import end_owner, remove_old

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("plain"),
    pytest.mark.skipif(
        connection.vendor == "sqlite", reason="SQLite has one writer at a time"
    ),
]


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


class TestReplayBesideRetention:
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

    def test_an_event_that_is_removed_first_is_not_replayed(self, delivery):
        def replay_in_a_batch() -> None:
            with transaction.atomic():
                resending.resend(delivery, by=ENGINE)

        with transaction.atomic():
            assert self.remove() == 1
            replaying = started(replay_in_a_batch)
        with pytest.raises(resending.RemovedError):
            replaying.result()

    def test_an_event_that_is_replayed_first_is_kept(self, delivery):
        with transaction.atomic():
            replay = resending.resend(delivery, by=ENGINE)
            removing = started(self.remove)
        assert removing.result() == 0
        assert Delivery.objects.filter(pk=replay.pk, event=delivery.event_id).exists()


def test_two_replays_at_once_are_one_delivery():
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
            lambda: publishing.publish_test(endpoint, NewEvent("thing.made", {}))
        )
    with pytest.raises(Endpoint.DoesNotExist):
        testing.result()
    assert not Event.objects.exists()
