"""What holds for the engine's tables after any events in any order."""

from typing import Any

from django.db.models import Count, F, Q
from hypothesis.stateful import RuleBasedStateMachine, invariant

from webhooks_core.dispatch import leases
from webhooks_core.models import Delivery, DispatcherLease, Endpoint, EndpointQueue


class Invariants(RuleBasedStateMachine):
    """What is expected of the rows, checked after every step.

    `counters` holds the status of each endpoint and its failures in a row.
    """

    def __init__(self) -> None:
        super().__init__()
        self.expected = 0
        self.counters: dict[int, tuple[int, int]] = {}
        self.ended: dict[int, Any] = {}

    @invariant()
    def no_delivery_is_lost_or_created_twice(self) -> None:
        assert Delivery.objects.count() == self.expected

    @invariant()
    def claims_belong_to_the_live_lease_of_their_queue(
        self,
    ) -> None:
        live = DispatcherLease.objects.values("pk")
        claimed = Delivery.objects.filter(claimed_by__isnull=False)
        assert not claimed.exclude(endpoint__queue__leased_by=F("claimed_by")).exists()
        assert not claimed.exclude(claimed_by__in=live).exists()
        leased = EndpointQueue.objects.filter(leased_by__isnull=False)
        assert not leased.exclude(leased_by__in=live).exists()

    @invariant()
    def attempts_are_counted_once(self) -> None:
        is_interrupted = Q(attempt__outcome="interrupted")
        rows = Delivery.objects.annotate(
            written=Count("attempt"),
            interrupted=Count("attempt", filter=is_interrupted),
        ).values_list(
            "attempts", "interruptions", "claimed_by", "written", "interrupted"
        )
        for attempts, interruptions, claim, written, interrupted in rows:
            assert attempts == written + (claim is not None)
            assert interruptions == interrupted

    @invariant()
    def only_interruptions_alone_fail_a_delivery(self) -> None:
        rows = Delivery.objects.filter(interruptions__gt=0)
        assert not rows.filter(lone_interruptions__gt=F("interruptions")).exists()
        assert not rows.filter(status=0, lone_interruptions__gte=5).exists()
        failed = rows.filter(status=2, last_error=leases.INTERRUPTED)
        assert not failed.exclude(lone_interruptions=5).exists()

    @invariant()
    def ended_deliveries_never_change(self) -> None:
        ended = Delivery.objects.exclude(status=Delivery.Status.PENDING)
        now_ended: dict[int, Any] = {row["id"]: row for row in ended.values()}
        assert now_ended.items() >= self.ended.items()
        self.ended = now_ended

    @invariant()
    def counters_are_as_if_results_came_one_by_one(self) -> None:
        rows = Endpoint.objects.values_list("pk", "status", "consecutive_failures")
        assert {pk: (status, count) for pk, status, count in rows} == self.counters

    def check_all(self) -> None:
        self.no_delivery_is_lost_or_created_twice()
        self.claims_belong_to_the_live_lease_of_their_queue()
        self.attempts_are_counted_once()
        self.only_interruptions_alone_fail_a_delivery()
        self.ended_deliveries_never_change()
        self.counters_are_as_if_results_came_one_by_one()
