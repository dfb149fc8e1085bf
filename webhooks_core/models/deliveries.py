"""Events, their deliveries and every attempt. The Delivery row is the outbox."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any, Self

from django.db import models, transaction
from django.db.models import Exists, F, Min, OuterRef, Q, Subquery
from django.utils import timezone

from webhooks_core.database.clock import clock
from webhooks_core.database.statements import among
from webhooks_core.models.endpoints import Endpoint, EndpointQueue
from webhooks_core.network.errors import Outcome

# In one transaction, so that others wait for milliseconds alone.
FAILED_AT_ONCE = 1000


class Event(models.Model):
    """A stored fact; `body` is the exact bytes that are signed and sent."""

    public_id = models.CharField(max_length=40)
    profile = models.CharField(max_length=32)
    owner = models.CharField(max_length=128)
    type = models.CharField(max_length=128)
    size = models.PositiveIntegerField()
    created_at = models.DateTimeField(default=timezone.now)
    # The last column: SQLite reads a row up to the requested column.
    body = models.BinaryField()

    class Meta:
        constraints = [
            # Not `unique=True`: PostgreSQL would get a second index, for LIKE.
            models.UniqueConstraint(fields=["public_id"], name="event_public_id"),
        ]
        indexes = [
            models.Index(
                fields=["profile", "owner", "type", "-id"], name="event_of_owner"
            ),
            models.Index(fields=["created_at"], name="event_age"),
        ]

    def __str__(self) -> str:
        return self.public_id


class DeliveryQuerySet(models.QuerySet["Delivery"]):
    def pending(self) -> Self:
        return self.filter(status=Delivery.Status.PENDING)

    def waiting(self) -> Self:
        """Return the pending deliveries that are not claimed."""
        return self.filter(status=Delivery.Status.PENDING, claimed_by=None)

    def undelivered(self) -> Self:
        """Return the failed deliveries whose event neither arrived in another way nor is pending.

        Of several of one event for an endpoint, that is the last one.
        """
        over = Q(status__in=(Delivery.Status.PENDING, Delivery.Status.DELIVERED))
        in_its_place = Delivery.objects.filter(
            over | Q(replay_number__gt=OuterRef("replay_number")),
            event=OuterRef("event"),
            endpoint=OuterRef("endpoint"),
        )
        return self.filter(~Exists(in_its_place), status=Delivery.Status.FAILED)

    def page(self, number: int, *, size: int) -> Self:
        """Return a page of these, those of an endpoint, newest first; the first page is 1.

        The ids are read from an index alone, however many precede them.
        """
        ids = self.order_by("-pk").values_list("pk", flat=True)
        start = (number - 1) * size
        if start >= 2**63:  # databases refuse it
            return self.none()
        return self.filter(pk__in=ids[start : start + size]).order_by("-pk")

    def next_due(self) -> Any:
        """Return when the next delivery of the outer query's endpoint is due."""
        waiting = self.waiting().filter(endpoint=OuterRef("pk"))
        return Subquery(
            waiting.order_by("next_attempt_at").values("next_attempt_at")[:1]
        )

    def claimed(self, pks: Collection[int], *, lease: int) -> Self:
        """Return those of `pks` that this lease still claims: the fencing token's check."""
        return self.filter(among(pks), claimed_by=lease, status=Delivery.Status.PENDING)

    def still_claimed(self, pks: Collection[int], *, lease: int) -> set[int]:
        """Return those of `pks` that this lease still claims."""
        rows = self.claimed(pks, lease=lease)
        if rows.count() == len(pks):
            # Almost always. On SQLite each row that is read may wait for the thread of the sender.
            return set(pks)
        return set(rows.values_list("pk", flat=True))

    def claimed_by(self, lease: int) -> Self:
        """Return what a lease claims, found by its queues: `claimed_by` has no index."""
        queues = EndpointQueue.objects.filter(leased_by=lease).values("pk")
        return self.filter(
            endpoint__in=queues, claimed_by=lease, status=Delivery.Status.PENDING
        )

    def release(self, pks: Collection[int], *, lease: int) -> int:
        """Release what was claimed and not attempted; return how many."""
        return self.claimed(pks, lease=lease).update(
            attempts=F("attempts") - 1, claimed_by=None
        )

    def fail(self, *, error: str) -> int:
        """Fail these pending deliveries for good."""
        return self.pending().update(
            status=Delivery.Status.FAILED,
            next_attempt_at=None,
            claimed_by=None,
            last_error=error,
        )

    def fail_some(self, *, error: str) -> int:
        """As fail(), for some that no other transaction locks; return how many."""
        rows = self.pending().select_for_update(skip_locked=True)
        with transaction.atomic():
            pks = list(rows.values_list("pk", flat=True)[:FAILED_AT_ONCE])
            return self.filter(among(pks)).fail(error=error)

    def front(self, endpoint: Endpoint) -> datetime:
        """Return a due time before those of all that waits for an endpoint, in a transaction.

        A queue is served by due time: what a person asks for needs no column of its own. What is
        tried and fails gets an ordinary due time again.
        """
        now = clock.recent()
        waiting = self.waiting().filter(endpoint=endpoint)
        first = waiting.aggregate(first=Min("next_attempt_at"))["first"]
        return min(now, first - timedelta(microseconds=1)) if first else now

    def make_due(self) -> int:
        """Make waiting deliveries due now; claimed ones keep their time."""
        now = clock.in_sql()
        later = self.waiting().filter(next_attempt_at__gt=now)
        return later.update(next_attempt_at=now)


class Delivery(models.Model):
    """One event for one endpoint, and the state of sending it.

    `next_attempt_at` is set exactly while the delivery is pending. `claimed_by` is the id of the
    lease that claims it; it has no index, so that PostgreSQL can update the row in place.
    `claimed_at` is when it was claimed last: the start of an attempt that was interrupted.
    `replay_number` counts the resends of an event to an endpoint from 1. `interruptions` are
    attempts without a known result: they count in `attempts`, but neither against the receiver
    nor against the retry policy. `lone_interruptions` are those in which it was the only suspect.
    """

    class Status(models.IntegerChoices):
        PENDING = 0, "Waiting"
        DELIVERED = 1
        FAILED = 2

    class Trigger(models.TextChoices):
        EVENT = "event", "Sent for the event"
        TEST = "test", "Test"
        MANUAL = "manual", "Resent"

    public_id = models.CharField(max_length=40)
    # No indexes of their own: each leads one below, and every index costs each claim.
    event = models.ForeignKey(Event, on_delete=models.CASCADE, db_index=False)
    endpoint = models.ForeignKey(Endpoint, on_delete=models.CASCADE, db_index=False)
    status = models.PositiveSmallIntegerField(
        choices=Status.choices, default=Status.PENDING
    )
    attempts = models.PositiveIntegerField(default=0)
    interruptions = models.PositiveSmallIntegerField(default=0)
    lone_interruptions = models.PositiveSmallIntegerField(default=0)
    next_attempt_at = models.DateTimeField(null=True, default=timezone.now)
    claimed_by = models.BigIntegerField(null=True)
    claimed_at = models.DateTimeField(null=True)
    last_error = models.CharField(max_length=512, blank=True)
    delivered_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(default=timezone.now)
    trigger = models.CharField(
        max_length=8, choices=Trigger.choices, default=Trigger.EVENT
    )
    replay_number = models.PositiveIntegerField(default=0)

    objects = DeliveryQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "deliveries"
        constraints = [
            models.UniqueConstraint(fields=["public_id"], name="delivery_public_id"),
            models.UniqueConstraint(
                fields=["event", "endpoint", "replay_number"], name="delivery_once"
            ),
            models.CheckConstraint(
                condition=Q(status=0, next_attempt_at__isnull=False)
                | (~Q(status=0) & Q(next_attempt_at=None, claimed_by=None)),
                name="delivery_due_while_pending",
            ),
            models.CheckConstraint(
                condition=Q(status=1, delivered_at__isnull=False)
                | (~Q(status=1) & Q(delivered_at=None)),
                name="delivery_time_when_delivered",
            ),
        ]
        indexes = [
            models.Index(
                fields=["endpoint", "next_attempt_at", "id"],
                condition=Q(status=0),
                name="delivery_due",
            ),
            models.Index(fields=["endpoint", "-id"], name="delivery_of_endpoint"),
            # Few rows, and those that operators ask for most; written when a delivery fails.
            models.Index(fields=["-id"], condition=Q(status=2), name="delivery_failed"),
            # The same of one endpoint, for its owner.
            models.Index(
                fields=["endpoint", "-id"],
                condition=Q(status=2),
                name="delivery_failed_of_endpoint",
            ),
        ]

    def __str__(self) -> str:
        return self.public_id


class Attempt(models.Model):
    """One HTTP request for a delivery, written when it has ended."""

    delivery = models.ForeignKey(Delivery, on_delete=models.CASCADE, db_index=False)
    number = models.PositiveIntegerField()
    started_at = models.DateTimeField()
    duration_ms = models.PositiveIntegerField(default=0)
    outcome = models.CharField(max_length=16, choices=Outcome.choices)
    status_code = models.PositiveSmallIntegerField(null=True)
    error = models.CharField(max_length=512, blank=True)
    response_body = models.BinaryField(default=b"")
    # A kept connection was closed: the request was sent again, on a new connection.
    is_repeated = models.BooleanField(default=False, db_default=False)
    # For people: what was sent to which address, and what came back (dispatch/results.py).
    details = models.JSONField(default=dict)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["delivery", "number"], name="attempt_once")
        ]

    @property
    def ended_at(self) -> datetime:
        return self.started_at + timedelta(milliseconds=self.duration_ms)

    def __str__(self) -> str:
        return f"attempt {self.number}: {self.outcome}"
