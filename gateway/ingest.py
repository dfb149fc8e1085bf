"""Ingesting a document: stored once per tenant, split into chunks, published as an event."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from django.db import IntegrityError, transaction

from gateway import events
from gateway.chat.core import json_numbers
from gateway.events import Origin
from gateway.models import Chunk, Document
from gateway.webhooks import INGEST_COMPLETED
from webhooks_core.ids import public_id
from webhooks_core.times import iso
from webhooks_core.web import markdown

PLAIN, MARKDOWN, HTML = "text/plain", "text/markdown", "text/html"
CONTENT_TYPES = (PLAIN, MARKDOWN, HTML)
MAX_HTML_CHARACTERS = 2_000_000
MAX_METADATA_BYTES = 16_384
METADATA_TOO_LARGE = f"metadata is over {MAX_METADATA_BYTES} bytes."
CHUNKS_PER_INSERT = 500
CHUNK_CHARACTERS = 2000
# Where a chunk may end, best first: before a heading, after a paragraph, line, sentence, word.
BREAKS = (("\n#", 1), ("\n\n", 2), ("\n", 1), (". ", 2), (" ", 1))


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
    """Store a document with its chunks and publish `ingest.completed`, all or nothing.

    The same text again is the tenant's first document, and no event.
    """
    encoded = text.encode()
    checksum = hashlib.sha256(encoded).hexdigest()
    same = Document.objects.filter(tenant=origin.tenant, checksum=checksum)
    if known := same.without_text().first():
        return Ingested(known, is_new=False)
    parts = list(split(_readable(text, content_type)))
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
        chunk_count=len(parts),
        metadata=json_numbers.dumps(metadata),
    )
    try:
        _save(document, parts, origin)
    except IntegrityError:
        # A concurrent request stored the same text.
        if known := same.without_text().first():
            return Ingested(known, is_new=False)
        raise
    return Ingested(document, is_new=True)


def _save(document: Document, parts: Iterable[str], origin: Origin) -> None:
    rows = (
        Chunk(document=document, number=number, text=part)
        for number, part in enumerate(parts, start=1)
    )
    with transaction.atomic():
        document.save(force_insert=True)
        Chunk.objects.bulk_create(rows, batch_size=CHUNKS_PER_INSERT)
        events.publish(
            origin=origin, event_type=INGEST_COMPLETED, data=result(document)
        )


def _readable(text: str, content_type: str) -> str:
    """Return the text to split: HTML as Markdown, unless it is too complex or has no text."""
    if content_type != HTML:
        return text
    return markdown.from_html(text, longest=MAX_HTML_CHARACTERS) or text


def split(text: str, *, maximum: int = CHUNK_CHARACTERS) -> Iterator[str]:
    """Yield the chunks of a text in linear time; joined, they are the text.

    Each has at most `maximum` characters and ends at the best break in its second half.
    """
    start = 0
    while len(text) - start > maximum:
        end = _end(text, start, start + maximum)
        yield text[start:end]
        start = end
    if start < len(text):
        yield text[start:]


def _end(text: str, start: int, limit: int) -> int:
    middle = (start + limit) // 2
    for mark, kept in BREAKS:
        position = text.rfind(mark, middle, limit)
        if position != -1:
            return min(position + kept, limit)
    return limit


def result(document: Document) -> dict[str, Any]:
    """Return the ingest result: the body of the response and the `data` of the event."""
    return {
        "document_id": document.public_id,
        "title": document.title,
        "content_type": document.content_type,
        "checksum": f"sha256:{document.checksum}",
        "size_bytes": document.size,
        "characters": document.characters,
        "chunk_count": document.chunk_count,
        # As it is: its integers may be larger than those that orjson reads.
        "metadata": orjson.Fragment(bytes(document.metadata)),
        "created_at": iso(document.created_at),
    }
