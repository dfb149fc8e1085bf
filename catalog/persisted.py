"""Documents that clients name by an id: registered by a client's hash, or listed by the operator.

Automatic persisted queries are those of Apollo: `extensions.persistedQuery` has the SHA-256 of the
document, and a client that is answered PERSISTED_QUERY_NOT_FOUND sends the document with it once.
`documentId` is the parameter of the GraphQL over HTTP draft, "Persisted Documents".
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any

import orjson
from django.core.exceptions import ImproperlyConfigured

from catalog.errors import CatalogError
from catalog.execution.limits import LIMITS

SHA256 = "sha256:"


class PersistedQueryNotFoundError(CatalogError):
    """A hash whose document the client has to send once."""

    code = "PERSISTED_QUERY_NOT_FOUND"


class NotListedError(CatalogError):
    """An id that the operator's list does not have."""

    code = "PERSISTED_QUERY_NOT_IN_LIST"


class NotInSafelistError(CatalogError):
    """A document that the operator's list does not have."""

    code = "QUERY_NOT_IN_SAFELIST"


class RegisteredDocuments:
    """The documents that clients registered last, by their hashes; thread-safe."""

    are_listed = False

    def __init__(self, most_characters: int = 1_000_000) -> None:
        self.most_characters, self.characters = most_characters, 0
        self.texts: OrderedDict[str, str] = OrderedDict()
        self.lock = Lock()

    def text(self, document_id: str) -> str:
        """Return the document of an id, or raise PersistedQueryNotFoundError."""
        digest = document_id.removeprefix(SHA256)
        with self.lock:
            if digest not in self.texts:
                # Clients compare this text: it is the protocol's.
                raise PersistedQueryNotFoundError("PersistedQueryNotFound")
            self.texts.move_to_end(digest)
            return self.texts[digest]

    def check(self, text: str, digest: str | None) -> None:
        """Register a document under its hash, or raise CatalogError for a wrong one."""
        check_hash(text, digest)
        if digest is None or len(text) > LIMITS.characters:  # its execution is refused
            return
        with self.lock:
            if digest not in self.texts:
                self.characters += len(text)
            self.texts[digest] = text
            self.texts.move_to_end(digest)
            while self.characters > self.most_characters:
                _, oldest = self.texts.popitem(last=False)
                self.characters -= len(oldest)


class ListedDocuments:
    """The only documents that an operator allows, by their ids."""

    are_listed = True

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.by_id = {key.removeprefix(SHA256): text for key, text in texts.items()}
        self.texts = frozenset(texts.values())

    def text(self, document_id: str) -> str:
        """Return the document of an id, or raise NotListedError."""
        try:
            return self.by_id[document_id.removeprefix(SHA256)]
        except KeyError:
            message = "The list of operations has no document with this id."
            raise NotListedError(message) from None

    def check(self, text: str, digest: str | None) -> None:
        """Raise CatalogError unless the document may be executed."""
        check_hash(text, digest)
        if text not in self.texts:
            message = "This server executes only the documents of its list."
            raise NotInSafelistError(message)


@lru_cache
def documents(path: str) -> RegisteredDocuments | ListedDocuments:
    """Return what requests may name: the documents of a file, or those that clients register.

    Raises ImproperlyConfigured.
    """
    return ListedDocuments(read_list(Path(path))) if path else RegisteredDocuments()


def check_hash(text: str, digest: str | None) -> None:
    """Raise CatalogError for a document sent with the hash of another one."""
    if digest is not None and sha256(text) != digest:
        raise CatalogError("sha256Hash is not the hash of the query.")


def sha256(text: str) -> str:
    # A lone half of a surrogate pair is refused when the document is parsed.
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def read_list(path: Path) -> dict[str, str]:
    """Return the documents of a manifest by their ids; raise ImproperlyConfigured for a fault.

    A manifest is that of Apollo (`{"format": "apollo-persisted-query-manifest", "version": 1,
    "operations": [{"id", "body", …}]}`) or an object of ids and documents.
    """
    try:
        manifest = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError) as error:
        raise _fault(path, str(error)) from None
    if not isinstance(manifest, dict):
        raise _fault(path, "it is not a JSON object")
    documents: dict[str, Any] = manifest
    if "operations" in manifest:
        documents = _of_apollo(path, manifest)
    for key, text in documents.items():
        if not isinstance(text, str):
            raise _fault(path, f"the document of {key!r} is not a string")
    return documents


def _of_apollo(path: Path, manifest: dict[str, Any]) -> dict[str, Any]:
    operations = manifest["operations"]
    if manifest.get("version") != 1 or not isinstance(operations, list):
        raise _fault(path, "version must be 1, and operations a list")
    for number, operation in enumerate(operations, start=1):
        if not isinstance(operation, dict) or {"id", "body"} - operation.keys():
            raise _fault(path, f"operation {number} has no id and body")
    return {str(each["id"]): each["body"] for each in operations}


def _fault(path: Path, reason: str) -> ImproperlyConfigured:
    return ImproperlyConfigured(f"CATALOG_OPERATIONS ({path}): {reason}")
