"""What happened to the security of an account: its logins, applications, tokens and password."""

from __future__ import annotations

from datetime import datetime
from typing import Self

from django.conf import settings
from django.db import models
from django.utils import timezone

from recording.ids import row_id


class SecurityEventKind(models.TextChoices):
    """What happened, in the words of the account's page."""

    LOGIN = "login", "Login"
    LOGIN_FAILED = "login_failed", "Wrong password or code"
    LOCKED = "locked", "Logins were locked after too many failures"
    SESSIONS_ENDED = "sessions_ended", "Sessions were ended"
    RESET_SENT = "reset_sent", "A link for a new password was sent"
    PASSWORD_CHANGED = "password_changed", "The password was changed"
    APP_ADDED = "app_added", "An authenticator app was added"
    APP_REMOVED = "app_removed", "An authenticator app was removed"
    PASSKEY_ADDED = "passkey_added", "A passkey was added"
    PASSKEY_REMOVED = "passkey_removed", "A passkey was removed"
    SECOND_STEP_REMOVED = "second_step_removed", "The second step was removed"
    RECOVERY_CODES_MADE = "recovery_codes_made", "New recovery codes were made"
    RECOVERY_CODE_USED = "recovery_code_used", "A recovery code was used"
    CONSENT = "consent", "Access was allowed"
    CONNECTED = "connected", "An application was connected"
    REFRESHED = "refreshed", "Access was renewed"
    DISCONNECTED = "disconnected", "An application was disconnected"
    TOKEN_REUSED = (
        "token_reused",
        "A used refresh token came again, and access was ended",
    )
    CODE_REPLAYED = "code_replayed", "A used code came again, and access was ended"
    TOKEN_CREATED = "token_created", "A personal token was created"
    TOKEN_REVOKED = "token_revoked", "A personal token was revoked"


class SecurityEventQuerySet(models.QuerySet["SecurityEvent"]):
    """Questions about events."""

    def before(self, text: str) -> Self:
        """Keep the events before an id, which may be any text from a request."""
        pk = row_id(text)
        return self.filter(pk__lt=pk) if pk else self


class SecurityEvent(models.Model):
    """One event, or all of one kind and subject within a day; `at` is the time of the latest."""

    Kind = SecurityEventKind

    account = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="+", db_index=False
    )
    kind = models.CharField(max_length=32, choices=SecurityEventKind.choices)
    subject = models.CharField(
        max_length=255, blank=True, help_text="The application, token or passkey."
    )
    address = models.CharField(max_length=64, blank=True)
    user_agent = models.CharField(max_length=300, blank=True)
    count = models.PositiveIntegerField(default=1)
    since = models.DateTimeField(default=timezone.now)
    at: models.DateTimeField[datetime, datetime] = models.DateTimeField(
        default=timezone.now
    )

    objects = SecurityEventQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index("account", models.F("id").desc(), name="security_of_account"),
            models.Index(fields=["at"], name="security_by_time"),
        ]

    def __str__(self) -> str:
        return self.get_kind_display()
