"""The table of answers that are kept."""

from __future__ import annotations

from datetime import datetime

from django.db import models


class CachedAnswerQuerySet(models.QuerySet["CachedAnswer"]):
    def remove_expired(self, now: datetime, *, batch: int = 500) -> None:
        """Remove what no request gets any more; by parts, so that no writer waits long."""
        old = self.filter(expires_at__lte=now).values_list("pk", flat=True)
        while pks := list(old[:batch]):
            self.filter(pk__in=pks).delete()


class CachedAnswer(models.Model):
    """An answer that equal requests of the tenant get; `key` is the hash of the request.

    `body` is what the client got: JSON, or the framed events of a stream.
    """

    key = models.CharField(max_length=64, unique=True)
    tenant = models.CharField(max_length=128)
    model = models.CharField(max_length=128)
    body = models.BinaryField()
    expires_at = models.DateTimeField()

    objects = CachedAnswerQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["model", "-id"], name="answer_of_model"),
            models.Index(fields=["tenant"], name="answer_of_tenant"),
            models.Index(fields=["expires_at"], name="answer_by_age"),
        ]

    def __str__(self) -> str:
        return self.key
