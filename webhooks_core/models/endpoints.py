"""Endpoints, their secrets and the queues that schedule them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Self

from django.db import connection, models
from django.db.models import Q
from django.utils import timezone

from webhooks_core import profiles
from webhooks_core.conf import allowed_targets
from webhooks_core.database.statements import among
from webhooks_core.network.addresses import AllowedNetworks
from webhooks_core.network.errors import Outcome
from webhooks_core.secrets import EncryptedTextField

# After so many time-outs in a row an endpoint hangs: it gets one request at a time.
HANGS_AFTER = 3


class EndpointQuerySet(models.QuerySet["Endpoint"]):
    def of(self, profile: str, owner: str) -> Self:
        """Return an owner's endpoints that are not deleted."""
        return self.filter(profile=profile, owner=owner, deleted_at=None)

    def receiving(self) -> Self:
        """Return the endpoints that get deliveries now, of what is published and what waits."""
        return self.filter(deleted_at=None, active=True, status=Endpoint.Status.ACTIVE)

    def static(self, profile: str) -> Self:
        """Return the endpoints that a product's configuration declares."""
        return self.filter(profile=profile, static_key__isnull=False, deleted_at=None)

    def end(self, now: datetime) -> int:
        """Delete those that are not deleted yet; return how many. Their rows stay.

        Their slots and names are free again.
        """
        return self.filter(deleted_at=None).update(
            deleted_at=now, updated_at=now, slot=None, static_key=None
        )

    def lock_free(self, pks: Collection[int]) -> set[int]:
        """Lock those endpoints that no other transaction locks; return them.

        By id, as their removal does: the updates come in another order.
        """
        if not connection.features.has_select_for_update_skip_locked:
            return set(pks)  # SQLite has one writer
        rows = self.filter(among(pks)).order_by("pk")
        free = rows.select_for_update(no_key=True, skip_locked=True)
        return set(free.values_list("pk", flat=True))

    def succeed(self, pks: Collection[int], now: datetime) -> None:
        """Note a success of endpoints: no failures in a row, no time-outs."""
        self.filter(among(pks)).update(
            last_attempt_at=now,
            last_success_at=now,
            consecutive_failures=0,
            timeouts=0,
            failing_since=None,
            failed_attempts=0,
            alike_failures=0,
        )


class Endpoint(models.Model):
    """A URL that an owner wants events sent to."""

    class Status(models.IntegerChoices):
        ACTIVE = 1
        DISABLED = 2  # by the engine, after too many failures in a row

    public_id = models.CharField(max_length=40)
    profile = models.CharField(max_length=32)
    owner = models.CharField(max_length=128)
    url = models.CharField("URL", max_length=2048)
    event_types = models.JSONField(default=list)
    # Null: every event of these types.
    filter = models.JSONField(null=True, blank=True)
    description = models.CharField(max_length=1000, blank=True)
    status = models.PositiveSmallIntegerField(
        choices=Status.choices, default=Status.ACTIVE
    )
    active = models.BooleanField(default=True, help_text="The owner's own toggle.")
    consecutive_failures = models.PositiveIntegerField(default=0)
    # In a row; of an endpoint that hangs, all since its last success.
    timeouts = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(default=timezone.now)
    updated_at = models.DateTimeField(default=timezone.now)
    last_attempt_at = models.DateTimeField(null=True, blank=True)
    # What owners/state.py tells. Enabling an endpoint changes none of it; a success ends the row.
    last_success_at = models.DateTimeField(null=True, blank=True)
    # The first failure since the last success, and how many there are.
    failing_since = models.DateTimeField(null=True, blank=True)
    failed_attempts = models.PositiveIntegerField(default=0, db_default=0)
    # How many of them, up to the latest, have its error.
    alike_failures = models.PositiveIntegerField(default=0, db_default=0)
    # Of the latest failure, kept after a success; `last_response` is the start of what came back.
    last_outcome = models.CharField(
        max_length=16, choices=Outcome.choices, blank=True, default="", db_default=""
    )
    last_error = models.CharField(max_length=512, blank=True, default="", db_default="")
    last_response = models.CharField(
        max_length=200, blank=True, default="", db_default=""
    )
    # The last time in which events skipped it, because it was disabled or inactive: since when and,
    # once it receives again, until when. Both null: nothing of that time is missed any more.
    disabled_at = models.DateTimeField(null=True, blank=True)
    enabled_at = models.DateTimeField(null=True, blank=True)
    # A notice said that it was disabled; another one says when it works again.
    alerted_at = models.DateTimeField(null=True, blank=True)
    deleted_at = models.DateTimeField(null=True, blank=True)
    static_key = models.CharField(max_length=128, null=True, blank=True)  # noqa: DJ001 - unique where set
    slot = models.PositiveSmallIntegerField(null=True, blank=True)
    trusted = models.BooleanField(
        default=False,
        help_text="May be sent to the networks of WEBHOOK_ALLOWED_TARGETS.",
    )
    max_in_flight = models.PositiveSmallIntegerField(default=4)
    standard_headers = models.BooleanField(
        default=False, help_text="Send the Standard Webhooks headers too."
    )
    custom_headers = EncryptedTextField(null=True, blank=True)

    objects = EndpointQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["public_id"], name="endpoint_public_id"),
            # The quota: two creations at once cannot both take the last slot.
            models.UniqueConstraint(
                fields=["profile", "owner", "slot"],
                condition=Q(slot__isnull=False),
                name="endpoint_slot",
            ),
            models.UniqueConstraint(
                fields=["profile", "owner", "static_key"],
                condition=Q(static_key__isnull=False),
                name="endpoint_static_key",
            ),
            # With 0 nothing would ever be sent, and the dispatcher would spin.
            models.CheckConstraint(
                condition=Q(max_in_flight__gte=1), name="endpoint_some_in_flight"
            ),
        ]
        indexes = [
            models.Index(
                fields=["profile", "owner", "-id"],
                condition=Q(deleted_at=None),
                name="endpoint_of_owner",
            )
        ]

    def __str__(self) -> str:
        return self.public_id

    def differing(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return those of these fields whose value is another one here."""
        pairs = fields.items()
        return {name: value for name, value in pairs if getattr(self, name) != value}

    @property
    def is_disabled(self) -> bool:
        return self.status == self.Status.DISABLED

    @property
    def is_receiving(self) -> bool:
        """As `EndpointQuerySet.receiving`."""
        return (
            self.deleted_at is None
            and self.active
            and self.status == self.Status.ACTIVE
        )

    @property
    def in_flight(self) -> int:
        """How many requests may be with the receiver at once."""
        return 1 if self.is_hanging else self.max_in_flight

    @property
    def is_hanging(self) -> bool:
        """Whether its last attempts timed out: until a success it gets one request at a time."""
        return self.timeouts >= HANGS_AFTER

    @property
    def allowed_networks(self) -> AllowedNetworks:
        """The addresses that attempts may connect to."""
        policy = profiles.get(self.profile).url_policy
        networks = allowed_targets(trusted=self.trusted)
        return policy.allowed_networks(self.url, networks=networks)

    @property
    def pending_failure(self) -> str:
        """Why waiting deliveries fail; "" if they may wait."""
        if self.deleted_at is not None:
            return "endpoint deleted"
        if not self.active and profiles.get(self.profile).inactive_fails_pending:
            return "endpoint inactive"
        return ""

    def secrets(self, *, now: datetime) -> list[str]:
        """Return the current secrets, newest first. Raises SecretUnreadableError."""
        rows = self.endpointsecret_set.current(now)
        return [secret.value.decrypt() for secret in rows]


class EndpointSecretQuerySet(models.QuerySet["EndpointSecret"]):
    def current(self, now: datetime) -> Self:
        """Return the newest secret and those whose overlap lasts, newest first."""
        unexpired = Q(expires_at=None) | Q(expires_at__gt=now)
        return self.filter(unexpired).order_by("-pk")


class EndpointSecret(models.Model):
    """A signing secret; `expires_at` is the end of its overlap with a newer one."""

    endpoint = models.ForeignKey(Endpoint, on_delete=models.CASCADE)
    value = EncryptedTextField()
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField(null=True, blank=True)

    objects = EndpointSecretQuerySet.as_manager()

    def __str__(self) -> str:
        return f"secret {self.pk}"


class EndpointQueueQuerySet(models.QuerySet["EndpointQueue"]):
    def mark_due(self, endpoint_ids: Sequence[int], *, at: Any) -> int:
        """Move the due time of these queues forward to `at`; return how many were changed.

        `at` is a time, or what `clock.in_sql()` returns. Queues with an earlier due time are not written.
        """
        later = Q(next_due_at=None) | Q(next_due_at__gt=at)
        return self.filter(later, pk__in=endpoint_ids).update(next_due_at=at)

    def due(self, now: Any, *, lease: int) -> Self:
        """Return the due queues that this lease may take: free ones and its own."""
        return self.filter(
            Q(leased_by=None) | Q(leased_by=lease), next_due_at__lte=now
        ).order_by("next_due_at")


class EndpointQueue(models.Model):
    """The hot row of an endpoint. Scheduling reads queues only.

    In a free queue `next_due_at` is the time of the earliest delivery. The dispatcher of a
    leased queue keeps that time in memory, and publishers set `next_due_at` to notify it.
    """

    endpoint = models.OneToOneField(
        Endpoint, on_delete=models.CASCADE, primary_key=True, related_name="queue"
    )
    next_due_at = models.DateTimeField(null=True)
    leased_by = models.BigIntegerField(null=True)

    objects = EndpointQueueQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(
                fields=["next_due_at"],
                condition=Q(next_due_at__isnull=False),
                name="queue_due",
            ),
            models.Index(
                fields=["leased_by"],
                condition=Q(leased_by__isnull=False),
                name="queue_leased_by",
            ),
        ]

    def __str__(self) -> str:
        return f"queue {self.pk}"
