"""What must hold of the engine's tables whatever happens, in whatever order."""

from __future__ import annotations

from typing import Any

from django.db.models import Count, F, Q
from hypothesis.stateful import RuleBasedStateMachine, invariant

from webhooks_core.models import Delivery, DispatcherLease, Endpoint, EndpointQueue


class Books(RuleBasedStateMachine):
    """What is expected of the rows, checked after every step.

    `counters` holds the status of each endpoint and its failures in a row.
    """

    def __init__(self) -> None:
        super().__init__()
        self.expected = 0
        self.counters: dict[int, tuple[int, int]] = {}
        self.over: dict[int, Any] = {}

    @invariant()
    def no_delivery_is_lost_or_made_twice(self) -> None:
        assert Delivery.objects.count() == self.expected

    @invariant()
    def what_is_claimed_is_claimed_by_the_owner_of_its_lane_and_by_nobody_dead(
        self,
    ) -> None:
        living = DispatcherLease.objects.filter(ended_at=None).values("pk")
        claimed = Delivery.objects.filter(claimed_by__isnull=False)
        assert not claimed.exclude(endpoint__queue__leased_by=F("claimed_by")).exists()
        assert not claimed.exclude(claimed_by__in=living).exists()
        owned = EndpointQueue.objects.filter(leased_by__isnull=False)
        assert not owned.exclude(leased_by__in=living).exists()

    @invariant()
    def attempts_are_counted_once(self) -> None:
        interrupted = Q(attempt__outcome="interrupted")
        rows = Delivery.objects.annotate(
            made=Count("attempt"), cut=Count("attempt", filter=interrupted)
        ).values_list("attempts", "interruptions", "claimed_by", "made", "cut")
        for attempts, interruptions, claim, made, cut in rows:
            assert attempts == made + (claim is not None)
            assert interruptions == cut

    @invariant()
    def what_is_over_never_moves(self) -> None:
        ended = Delivery.objects.exclude(status=Delivery.Status.PENDING)
        now_over: dict[int, Any] = {it["id"]: it for it in ended.values()}
        assert now_over.items() >= self.over.items()
        self.over = now_over

    @invariant()
    def counters_are_those_of_one_result_after_another(self) -> None:
        rows = Endpoint.objects.values_list("pk", "status", "consecutive_failures")
        assert {pk: (status, count) for pk, status, count in rows} == self.counters

    def check_all(self) -> None:
        self.no_delivery_is_lost_or_made_twice()
        self.what_is_claimed_is_claimed_by_the_owner_of_its_lane_and_by_nobody_dead()
        self.attempts_are_counted_once()
        self.what_is_over_never_moves()
        self.counters_are_those_of_one_result_after_another()
