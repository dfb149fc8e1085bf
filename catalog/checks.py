"""A system check of the operator's list of documents: each is valid, and within the limits."""

from __future__ import annotations

from typing import Any

from django.core.checks import CheckMessage, Error, register

from catalog import persisted
from catalog.conf import option
from catalog.errors import CatalogError
from catalog.execution.documents import RequestRefusedError, prepare


@register
def listed_documents(**_: Any) -> list[CheckMessage]:
    """Return an error for each document of CATALOG_OPERATIONS that could not be executed."""
    documents = persisted.documents(option("CATALOG_OPERATIONS"))
    if not isinstance(documents, persisted.ListedDocuments):
        return []
    from catalog.schema.contract import schema  # the models are loaded by now

    faults: list[CheckMessage] = []
    for key, text in documents.by_id.items():
        try:
            prepare(schema.graphql_schema, text)
        except (RequestRefusedError, CatalogError) as refusal:
            message = f"CATALOG_OPERATIONS: the document {key!r} is refused: {refusal}"
            faults.append(Error(message, id="catalog.E001"))
    return faults
