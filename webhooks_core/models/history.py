"""What happened to endpoints: changes, skipped events, replays of many, and sums of attempts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Self

from django.db import models
from django.db.models import Q
from django.utils import timezone

from webhooks_core.models.deliveries import Event
from webhooks_core.models.endpoints import Endpoint
from webhooks_core.models.fields import RoundedJSONField


class EndpointChange(models.Model):
    """Who did what to an endpoint, and when.

    `subject` is the public id that it was about: of a delivery or of a replay. `details` never
    holds a secret or the value of a header.
    """

    class Action(models.TextChoices):
        CREATED = "created"
        CHANGED = "changed"
        PAUSED = "paused"
        RESUMED = "resumed"
        DISABLED = "disabled"
        ENABLED = "enabled"
        DELETED = "deleted"
        ROTATED = "rotated"  # its secret
        SHOWN = "shown"  # its secret
        RESENT = "resent"
        RETRIED = "retried"
        CANCELLED = "cancelled"
        REPLAY_STARTED = "replay_started"
        REPLAY_CANCELLED = "replay_cancelled"

    # `engine`, `owner`, `operator`, `command`, `configuration` or `receiver`.
    actor_kind = models.CharField(max_length=16)
    # An account, a principal or a user of the admin.
    actor = models.CharField(max_length=150, blank=True)
    endpoint = models.ForeignKey(Endpoint, on_delete=models.CASCADE, db_index=False)
    at = models.DateTimeField(default=timezone.now)
    action = models.CharField(max_length=16, choices=Action.choices)
    subject = models.CharField(max_length=40, blank=True)
    details = RoundedJSONField(default=dict, blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["endpoint", "-id"], name="change_of_endpoint"),
            models.Index(fields=["at"], name="change_age"),
        ]

    def __str__(self) -> str:
        return f"{self.action} by {self.actor or self.actor_kind}"


class SkippedEventQuerySet(models.QuerySet["SkippedEvent"]):
    def of(self, endpoint: Endpoint) -> Self:
        return self.filter(endpoint=endpoint).order_by("-event")


class SkippedEvent(models.Model):
    """An event that an endpoint would have received, had it not been disabled or inactive.

    The row goes when the event is sent to it after all.
    """

    class Reason(models.TextChoices):
        DISABLED = "disabled"
        INACTIVE = "inactive"

    event = models.ForeignKey(Event, on_delete=models.CASCADE, db_index=False)
    endpoint = models.ForeignKey(Endpoint, on_delete=models.CASCADE, db_index=False)
    reason = models.CharField(max_length=8, choices=Reason.choices)

    objects = SkippedEventQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["event", "endpoint"], name="skipped_once")
        ]
        indexes = [
            models.Index(fields=["endpoint", "-event"], name="skipped_by_endpoint")
        ]

    def __str__(self) -> str:
        return f"skipped: {self.reason}"


class ReplayJob(models.Model):
    """A replay of many events to one endpoint, which the dispatcher continues step by step.

    `position` is the id of the last delivery or event that was looked at. `skipped` are those
    that were delivered, resent or removed since they were counted.
    """

    class Kind(models.TextChoices):
        FAILED = "failed"
        MISSING = "missing"

    class Status(models.TextChoices):
        RUNNING = "running"
        DONE = "done"
        CANCELLED = "cancelled"
        STOPPED = "stopped"  # the endpoint receives nothing any more

    public_id = models.CharField(max_length=40)
    endpoint = models.ForeignKey(Endpoint, on_delete=models.CASCADE, db_index=False)
    kind = models.CharField(max_length=8, choices=Kind.choices)
    status = models.CharField(
        max_length=10, choices=Status.choices, default=Status.RUNNING
    )
    since = models.DateTimeField()
    until = models.DateTimeField()
    event_types = models.JSONField(default=list)
    rate_per_s = models.PositiveIntegerField()
    total = models.PositiveIntegerField()
    sent = models.PositiveIntegerField(default=0)
    skipped = models.PositiveIntegerField(default=0)
    position = models.BigIntegerField(default=0)
    created_at = models.DateTimeField(default=timezone.now)
    continued_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["public_id"], name="replay_public_id"),
            models.UniqueConstraint(
                fields=["endpoint"],
                condition=Q(status="running"),
                name="replay_one_at_a_time",
            ),
        ]
        indexes = [models.Index(fields=["endpoint", "-id"], name="replay_of_endpoint")]

    def __str__(self) -> str:
        return self.public_id


# In place of the id of an endpoint, in the sums of all of them.
ALL_ENDPOINTS = 0
# The parts of an hour for which there are sums too, as long as charts show them.
SLOT = timedelta(minutes=5)


class AttemptHour(models.Model):
    """Attempts of an endpoint, or of all, that started within one hour, for charts.

    `latencies` counts them by duration: one number for each of `BOUNDS_MS`, and the last one for
    longer ones. `slots` has ok, failed and latencies of each SLOT of the hour, by its number.
    No foreign key in the database: the rows of a removed endpoint expire like all
    others.
    """

    endpoint = models.ForeignKey(
        Endpoint, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False
    )
    hour = models.DateTimeField()
    ok = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)
    latencies = models.JSONField(default=list)
    slots = models.JSONField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["endpoint", "hour"], name="attempt_hour_once"
            )
        ]
        indexes = [models.Index(fields=["hour"], name="attempt_hour_age")]

    def __str__(self) -> str:
        return f"attempts of endpoint {self.endpoint_id} at {self.hour:%Y-%m-%d %H} h"

    def add(self, slot: int, numbers: Sequence[int]) -> None:
        """Add attempts of one slot: ok, failed, and the latencies."""
        self.ok += numbers[0]
        self.failed += numbers[1]
        self.latencies = _added(self.latencies, numbers[2:])
        slots = self.slots or {}
        slots[str(slot)] = _added(slots.get(str(slot), ()), numbers)
        self.slots = slots


def _added(counts: Sequence[int], more: Sequence[int]) -> list[int]:
    return [sum(pair) for pair in zip(counts or [0] * len(more), more, strict=True)]
