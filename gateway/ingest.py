"""Ingesting a document: stored once per tenant, split into chunks, announced to subscribers."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import html_to_markdown
import orjson
from django.conf import settings
from django.db import IntegrityError, transaction
from html_to_markdown import ConversionOptions

from gateway import chunks, events
from gateway.errors import BadRequestError, PayloadTooLargeError
from gateway.events import Origin, is_deeper
from gateway.models import Chunk, Document
from gateway.webhooks import INGEST_COMPLETED
from webhooks_core.formats import iso, public_id

PLAIN, MARKDOWN, HTML = "text/plain", "text/markdown", "text/html"
CONTENT_TYPES = (PLAIN, MARKDOWN, HTML)
MAX_TITLE = 255
MAX_METADATA_BYTES = 16_384
MAX_METADATA_DEPTH = 32
# Hostile HTML takes the converter about a second per million characters.
MAX_HTML_CHARACTERS = 2_000_000
CHUNKS_PER_INSERT = 500


@dataclass(frozen=True, slots=True)
class Text:
    """A document as it was sent, checked."""

    text: str
    title: str = ""
    content_type: str = PLAIN
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ingested:
    """A stored document; `is_new` is False when the tenant had this text already."""

    document: Document
    is_new: bool


# ── What the caller sent ────────────────────────────────────────────────────────────


def read(body: Mapping[str, Any]) -> Text:
    """Return the document of a body. Raises BadRequestError, PayloadTooLargeError."""
    if "text" not in body:
        raise BadRequestError("text is required.")
    return Text(
        text=_text(body["text"]),
        title=_title(body.get("title", "")),
        content_type=_content_type(body.get("content_type", PLAIN)),
        metadata=_metadata(body.get("metadata", {})),
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise BadRequestError("text must be a string.")
    if not value.strip():
        raise BadRequestError("text must not be empty.")
    if "\x00" in value:
        raise BadRequestError("text must not hold NUL.")
    if len(value.encode()) > settings.GATEWAY_INGEST_MAX_BYTES:
        raise PayloadTooLargeError(
            f"The text is over {settings.GATEWAY_INGEST_MAX_BYTES} bytes."
        )
    return value


def _title(value: Any) -> str:
    if not isinstance(value, str):
        raise BadRequestError("title must be a string.")
    if len(value) > MAX_TITLE or "\x00" in value:
        raise BadRequestError(
            f"title must have at most {MAX_TITLE} characters, and no NUL."
        )
    return value


def _content_type(value: Any) -> str:
    """Return a media type without its parameters: text is Unicode by now."""
    name = value.partition(";")[0].strip().lower() if isinstance(value, str) else ""
    if name not in CONTENT_TYPES:
        raise BadRequestError(
            f"content_type must be one of {', '.join(CONTENT_TYPES)}."
        )
    return name


def _metadata(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise BadRequestError("metadata must be an object.")
    if is_deeper(value, MAX_METADATA_DEPTH):
        raise BadRequestError(
            f"metadata is nested deeper than {MAX_METADATA_DEPTH} levels."
        )
    if len(orjson.dumps(value)) > MAX_METADATA_BYTES:
        raise BadRequestError(f"metadata is over {MAX_METADATA_BYTES} bytes.")
    return value


# ── The use case ────────────────────────────────────────────────────────────────────


def ingest(*, origin: Origin, sent: Text) -> Ingested:
    """Store a document with its chunks and publish `ingest.completed`, all or nothing.

    The same text again is the tenant's first document, and no event.
    """
    checksum = hashlib.sha256(sent.text.encode()).hexdigest()
    same = Document.objects.same_text(tenant=origin.tenant, checksum=checksum)
    if known := same.without_text().first():
        return Ingested(known, is_new=False)
    parts = list(chunks.split(_readable(sent)))
    document = _document(origin, sent, checksum=checksum, chunk_count=len(parts))
    try:
        with transaction.atomic():
            document.save(force_insert=True)
            _save_chunks(document, parts)
            events.publish(
                origin=origin, event_type=INGEST_COMPLETED, data=result(document)
            )
    except IntegrityError:
        # Two requests with one text at once: the other was first.
        if known := same.without_text().first():
            return Ingested(known, is_new=False)
        raise
    return Ingested(document, is_new=True)


def _document(
    origin: Origin, sent: Text, *, checksum: str, chunk_count: int
) -> Document:
    return Document(
        public_id=public_id("doc_"),
        tenant=origin.tenant,
        principal=origin.principal,
        title=sent.title,
        content_type=sent.content_type,
        checksum=checksum,
        content=sent.text,
        size=len(sent.text.encode()),
        characters=len(sent.text),
        chunk_count=chunk_count,
        metadata=orjson.dumps(sent.metadata),
    )


def _save_chunks(document: Document, parts: list[str]) -> None:
    Chunk.objects.bulk_create(
        (
            Chunk(document=document, number=number, text=text)
            for number, text in enumerate(parts, start=1)
        ),
        batch_size=CHUNKS_PER_INSERT,
    )


def _readable(sent: Text) -> str:
    """Return what is read of a text: HTML as Markdown, unless it cannot be converted."""
    if sent.content_type != HTML or len(sent.text) > MAX_HTML_CHARACTERS:
        return sent.text
    try:
        converted = html_to_markdown.convert(
            sent.text, ConversionOptions(extract_metadata=False)
        )
    except Exception:  # noqa: BLE001 - whatever a converter does to strangers' HTML
        return sent.text
    markdown = (converted.content or "").replace("\x00", "\ufffd")
    return sent.text if converted.warnings or not markdown.strip() else markdown


def result(document: Document) -> dict[str, Any]:
    """Return the ingest result: the answer of the route and the `data` of its event."""
    return {
        "document_id": document.public_id,
        "title": document.title,
        "content_type": document.content_type,
        "checksum": f"sha256:{document.checksum}",
        "size_bytes": document.size,
        "characters": document.characters,
        "chunk_count": document.chunk_count,
        "metadata": orjson.loads(bytes(document.metadata)),
        "created_at": iso(document.created_at),
    }
