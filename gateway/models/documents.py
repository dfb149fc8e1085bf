"""Ingested documents and their chunks."""

from __future__ import annotations

from typing import Self

from django.db import models
from django.utils import timezone


class DocumentQuerySet(models.QuerySet["Document"]):
    def same_text(self, *, tenant: str, checksum: str) -> Self:
        """Return the tenant's document with exactly this text: one or none."""
        return self.filter(tenant=tenant, checksum=checksum)

    def without_text(self) -> Self:
        """Leave the text, which may have megabytes, in the database."""
        return self.defer("content")


class Document(models.Model):
    """One text of a tenant, exactly as it was sent.

    `metadata` is JSON as bytes: a database's own type reorders keys and refuses NUL.
    """

    public_id = models.CharField(max_length=40, unique=True)
    tenant = models.CharField(max_length=128)
    principal = models.CharField(max_length=128)
    title = models.CharField(max_length=255, blank=True)
    content_type = models.CharField(max_length=32)
    checksum = models.CharField(max_length=64, help_text="SHA-256 of the UTF-8 text.")
    content = models.TextField()
    size = models.PositiveIntegerField(help_text="Bytes of UTF-8.")
    characters = models.PositiveIntegerField()
    chunk_count = models.PositiveIntegerField()
    metadata = models.BinaryField(default=b"{}", help_text="JSON.")
    created_at = models.DateTimeField(default=timezone.now)

    objects = DocumentQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "checksum"], name="document_once_per_tenant"
            )
        ]

    def __str__(self) -> str:
        return self.public_id


class Chunk(models.Model):
    """A part of a document's readable text; the chunks in order are all of it."""

    document = models.ForeignKey(Document, on_delete=models.CASCADE, db_index=False)
    number = models.PositiveIntegerField()
    text = models.TextField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["document", "number"], name="chunk_once")
        ]

    def __str__(self) -> str:
        return f"chunk {self.number}"
