"""Ingesting a document: stored once per tenant, and published as an event."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from django.db import IntegrityError, transaction

from gateway import events
from gateway.event_types import INGEST_COMPLETED
from gateway.events import Origin
from gateway.models import Document
from webhooks_core.ids import public_id
from webhooks_core.times import iso

PLAIN, MARKDOWN, HTML = "text/plain", "text/markdown", "text/html"
CONTENT_TYPES = (PLAIN, MARKDOWN, HTML)


@dataclass(frozen=True, slots=True)
class Ingested:
    """A stored document; `is_new` is False when the tenant had this text already."""

    document: Document
    is_new: bool


def ingest(
    *,
    origin: Origin,
    text: str,
    title: str,
    content_type: str,
    metadata: Mapping[str, Any],
) -> Ingested:
    """Store a document and publish `ingest.completed`, both or neither.

    The same text again is the tenant's first document, and no event.
    """
    encoded = text.encode()
    checksum = hashlib.sha256(encoded).hexdigest()
    if known := _known(origin.tenant, checksum):
        return Ingested(known, is_new=False)
    document = Document(
        public_id=public_id("doc_"),
        tenant=origin.tenant,
        principal=origin.principal,
        title=title,
        content_type=content_type,
        checksum=checksum,
        content=text,
        size=len(encoded),
        characters=len(text),
        metadata=orjson.dumps(metadata),
    )
    try:
        _save(document, origin)
    except IntegrityError:
        # A concurrent request stored the same text.
        if known := _known(origin.tenant, checksum):
            return Ingested(known, is_new=False)
        raise
    return Ingested(document, is_new=True)


def _known(tenant: str, checksum: str) -> Document | None:
    # Without the text, which may have megabytes.
    rows = Document.objects.defer("content")
    return rows.filter(tenant=tenant, checksum=checksum).first()


def _save(document: Document, origin: Origin) -> None:
    with transaction.atomic():
        document.save(force_insert=True)
        events.publish(
            origin=origin, event_type=INGEST_COMPLETED, data=result(document)
        )


def result(document: Document) -> dict[str, Any]:
    """Return the ingest result: the body of the response and the `data` of the event."""
    return {
        "document_id": document.public_id,
        "title": document.title,
        "content_type": document.content_type,
        "checksum": f"sha256:{document.checksum}",
        "size_bytes": document.size,
        "characters": document.characters,
        "metadata": orjson.Fragment(bytes(document.metadata)),
        "created_at": iso(document.created_at),
    }
