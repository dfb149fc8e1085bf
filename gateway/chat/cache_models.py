"""The table of answers that are kept."""

from __future__ import annotations

from django.db import models


class CachedAnswer(models.Model):
    """An answer that equal requests of the tenant get; `key` is the hash of the request.

    `body` is what the client got: JSON, or the framed events of a stream.
    """

    key = models.CharField(max_length=64, unique=True)
    tenant = models.CharField(max_length=128)
    model = models.CharField(max_length=128)
    body = models.BinaryField()
    expires_at = models.DateTimeField()

    class Meta:
        indexes = [
            models.Index(fields=["model", "-id"], name="answer_of_model"),
            models.Index(fields=["tenant"], name="answer_of_tenant"),
            models.Index(fields=["expires_at"], name="answer_by_age"),
        ]

    def __str__(self) -> str:
        return self.key
