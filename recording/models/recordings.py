"""Recordings, stored as the bytes that were imported."""

from __future__ import annotations

from typing import Any

import orjson
from django.conf import settings
from django.db import models
from django.db.models.functions import Coalesce
from django.utils import timezone

MAX_ID_LENGTH = 255


class Recording(models.Model):
    """One recording of an account; `document` is what was imported, as JSON bytes.

    Not a JSONField: PostgreSQL's JSON type reorders keys, rewrites numbers and refuses NUL,
    while texts are stored verbatim.
    """

    account = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    audio_id = models.CharField(max_length=MAX_ID_LENGTH)
    size = models.PositiveIntegerField(help_text="Bytes of the document.")
    # Copied from the document, for lists.
    title = models.TextField(blank=True, default="")
    recorded_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    updated_at = models.DateTimeField(default=timezone.now)
    # Long columns last: SQLite reads a list without walking their pages.
    search_text = models.TextField(default="")  # folded (library/search.py)
    document = models.BinaryField()
    # As JSON, the document's with HTML as Markdown; null if it has no HTML.
    summaries = models.BinaryField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["account", "audio_id"], name="recording_of_account"
            )
        ]
        indexes = [
            models.Index(fields=["audio_id"], name="recording_by_id"),
            models.Index(
                "account",
                Coalesce("recorded_at", "created_at").desc(),
                name="recording_by_time",
            ),
        ]

    def __str__(self) -> str:
        return self.audio_id

    @property
    def content(self) -> dict[str, Any]:
        """Return the document's fields (recording, "data of summary.completed")."""
        content: dict[str, Any] = orjson.loads(self.document)
        return content
