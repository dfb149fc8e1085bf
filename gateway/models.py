"""Gateway keys and portal links (stored as hashes), policy decisions, documents, idempotency keys."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Self

from django.db import models
from django.db.models import Q
from django.utils import timezone

from gateway.identity import GENERAL, Rights
from webhooks_core.models.bearer import BearerQuerySet, BearerToken

if TYPE_CHECKING:
    from gateway.configuration.shapes import BudgetEntry


class GatewayKeyQuerySet(BearerQuerySet["GatewayKey"]):
    def live(self, now: datetime) -> Self:
        """Return the keys that are neither revoked nor expired."""
        return self.filter(Q(expires_at=None) | Q(expires_at__gt=now), revoked_at=None)


class GatewayKey(BearerToken):
    """A bearer key of one principal of one tenant.

    `scopes` null: all but `keys`. `allowed_models` null: every model of the principal. `created_by`
    is the principal whose key created this one, or empty for an operator's. `budget` has what it
    counts, its window and its limit; null: none of its own.
    """

    tenant = models.CharField(max_length=128)
    principal = models.CharField(max_length=128)
    display_prefix = models.CharField("key", max_length=24)
    expires_at = models.DateTimeField(null=True, blank=True)
    scopes = models.JSONField(null=True, blank=True)
    allowed_models = models.JSONField(null=True, blank=True)
    created_by = models.CharField(max_length=128, blank=True, default="", db_default="")
    budget = models.JSONField(null=True, blank=True)

    objects = GatewayKeyQuerySet.as_manager()

    class Meta:
        indexes = [models.Index(fields=["tenant", "principal"], name="key_of_tenant")]

    @property
    def rights(self) -> Rights:
        return Rights(
            GENERAL if self.scopes is None else frozenset(self.scopes),
            None if self.allowed_models is None else frozenset(self.allowed_models),
            self.created_by,
            self.budget_entry,
        )

    @property
    def budget_entry(self) -> BudgetEntry | None:
        """The budget of the key alone."""
        if self.budget is None:
            return None
        # Here: a command that reads no configuration does not load what reads it.
        from gateway.configuration.shapes import BudgetEntry, key_budget_name

        return BudgetEntry(key_budget_name(self.pk), **self.budget, per=("key",))

    def state(self, now: datetime) -> str:
        """Return `live`, `revoked` or `expired`."""
        if self.revoked_at is not None:
            return "revoked"
        if self.expires_at is not None and self.expires_at <= now:
            return "expired"
        return "live"


class TenantRow(models.Model):
    """What a principal of a tenant caused, with an id for people."""

    public_id = models.CharField(max_length=40, unique=True)
    tenant = models.CharField(max_length=128)
    principal = models.CharField(max_length=128)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return self.public_id


class PolicyDecision(TenantRow):
    """A decision of a policy that denied a principal an action on a resource."""

    action = models.CharField(max_length=128)
    resource = models.CharField(max_length=255)
    reason = models.CharField(max_length=255, blank=True)
    request_id = models.CharField(max_length=128, blank=True)
    trace_id = models.CharField(max_length=32, blank=True)

    class Meta:
        indexes = [models.Index(fields=["tenant", "-id"], name="decision_of_tenant")]


class Document(TenantRow):
    """One text of a tenant, exactly as it was sent.

    `metadata` is JSON as bytes: a database's own type reorders keys and refuses NUL.
    """

    title = models.CharField(max_length=255, blank=True)
    content_type = models.CharField(max_length=32)
    checksum = models.CharField(max_length=64, help_text="SHA-256 of the UTF-8 text.")
    content = models.TextField()
    size = models.PositiveIntegerField(help_text="Bytes of UTF-8.")
    characters = models.PositiveIntegerField()
    metadata = models.BinaryField(default=b"{}", help_text="JSON.")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "checksum"], name="document_once_per_tenant"
            )
        ]


class IdempotencyKey(models.Model):
    """An event that is not published twice: its key, what was asked for, and the response as JSON."""

    tenant = models.CharField(max_length=128)
    key = models.CharField(max_length=255)
    fingerprint = models.CharField(max_length=64, help_text="SHA-256 of the request.")
    response = models.BinaryField(default=b"")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "key"], name="idempotency_key_of_tenant"
            )
        ]

    def __str__(self) -> str:
        return f"idempotency key {self.pk}"


class PortalLink(TenantRow):
    """A link that opens the portal of a tenant once, and the session that began with it.

    `digest` is the hash of the link's token, `session_digest` that of the session's. `key` is the
    gateway key that made it, if one did: its revocation ends both.
    """

    class State(models.TextChoices):
        UNUSED = "unused"
        OPEN = "open"  # a session goes on
        EXPIRED = "expired"  # the link, or its session
        REVOKED = "revoked"

    key = models.ForeignKey(
        GatewayKey, on_delete=models.CASCADE, null=True, db_index=False
    )
    actor = models.CharField(max_length=128)
    capabilities = models.JSONField()
    digest = models.CharField(max_length=64, unique=True)
    session_digest = models.CharField(max_length=64, unique=True, null=True)  # noqa: DJ001 - unique
    expires_at = models.DateTimeField()
    opened_at = models.DateTimeField(null=True)
    session_expires_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=["tenant", "-id"], name="portal_link_of_tenant")]

    def state(self, now: datetime) -> State:
        if self.revoked_at or (self.key and self.key.revoked_at):
            return self.State.REVOKED
        if (self.session_expires_at or self.expires_at) <= now:
            return self.State.EXPIRED
        return self.State.OPEN if self.opened_at else self.State.UNUSED
