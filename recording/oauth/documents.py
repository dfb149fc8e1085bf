"""Clients whose id is the address of a document about them (Client ID Metadata Documents)."""

from __future__ import annotations

import hashlib
import threading
import time
from typing import Any

import structlog
from django.conf import settings
from django.core.cache import cache
from oauth2_provider import cimd
from oauth2_provider.settings import oauth2_settings
from oauthlib.oauth2 import OAuth2Error

from recording.oauth import redirects, registration
from recording.oauth.metadata import GRANT_TYPES, RESPONSE_TYPES
from recording.oauth.models import Application, AuthMethod
from webhooks_core.network.url_policy import UrlPolicy, UrlRefusedError

MAX_LENGTH = 255  # of an address: the column of client ids
NEEDED = {
    "token_endpoint_auth_method": AuthMethod.NONE,
    "grant_types": "authorization_code",
    "response_types": "code",
}
# A site that sends a byte now and then holds no more threads than this.
FETCHES = threading.BoundedSemaphore(oauth2_settings.CIMD_MAX_CONCURRENT_FETCHES)

log = structlog.stdlib.get_logger(__name__)


def is_address(client_id: str) -> bool:
    """Return True if a client id is written like the address of a document."""
    return len(client_id) <= MAX_LENGTH and redirects.is_public(client_id)


def find(client_id: str) -> Application | None:
    """Return the application with an id, as its document describes it now; it may be unsaved.

    When the document cannot be used, a new client is unknown, and a known one is as its last
    document says. A page stores nothing, so the cache keeps the document.
    """
    application = Application.objects.find(client_id)
    is_described = is_address(client_id) and Application.is_document_allowed(client_id)
    if not is_described or (application and not application.is_outdated):
        return application
    try:
        document, _ = DocumentFetcher().fetch(client_id)
    except Exception as error:  # a stranger's document is no error of ours
        log.info("client document unusable", client_id=client_id, error=str(error))
        return application
    return Application(
        client_id=client_id,
        client_type=Application.CLIENT_PUBLIC,
        token_endpoint_auth_method=AuthMethod.NONE,
        registration_source=Application.RegistrationSource.CIMD,
        name=document["client_name"],
        redirect_uris=" ".join(document["redirect_uris"]),
    )


def store(application: Application) -> Application | None:
    """Store what a document says of a client, which an account now connects; None if it fails."""
    if application.pk:
        return application
    stored: Application | None = cimd.resolve_cimd_application(
        application.client_id, None
    )
    return stored


def check_address(client_id: str) -> None:
    """Accept a public address. Raises UrlRefusedError."""
    UrlPolicy.public_https(settings.BASE_URL, local=False).check(client_id)


class DocumentFetcher(cimd.SafeMetadataFetcher):
    """The toolkit's fetcher, with our rules for addresses and documents.

    The toolkit takes site-local, multicast and NAT64 addresses of an own network for public
    (test_documents.py `test_a_name_that_leads_inside_is_never_asked`).
    """

    def fetch(self, client_id: str) -> tuple[dict[str, Any], int]:
        """Return a document and for how many seconds it is valid. A failure is kept for a minute.

        Raises CIMDError.
        """
        key = f"client-document:{hashlib.sha256(client_id.encode()).hexdigest()}"
        kept = cache.get(key)
        if kept is None:
            if not FETCHES.acquire(blocking=False):
                raise cimd.CIMDError("too many documents are fetched now")
            kept = {}, time.time() + oauth2_settings.CIMD_FAILURE_BACKOFF_SECONDS
            try:
                document, max_age = self._fetched(client_id)
                kept = document, time.time() + max_age
            finally:
                FETCHES.release()
                cache.set(key, kept, kept[1] - time.time())
        if not kept[0]:
            raise cimd.CIMDError("the last attempt failed")
        return kept[0], max(1, int(kept[1] - time.time()))

    def _fetched(self, client_id: str) -> tuple[dict[str, Any], int]:
        try:
            check_address(client_id)
        except UrlRefusedError as error:
            raise cimd.CIMDError(str(error)) from error
        document, max_age = super().fetch(client_id)
        if document.get("client_id") != client_id:
            raise cimd.CIMDError("the document describes another client_id")
        return supported(document), max_age


def supported(document: dict[str, Any]) -> dict[str, Any]:
    """Return what a document says that this server supports.

    One document describes a client to all servers, so what other servers may support is left
    out. Raises CIMDError if something that is needed here is missing.
    """
    members = {name: value for name, value in document.items() if value is not None}
    method = members.get("token_endpoint_auth_method", AuthMethod.NONE)
    methods = _list(members, "token_endpoint_auth_methods_supported", [])
    offered = {
        "token_endpoint_auth_method": [method, *methods],
        "grant_types": _list(members, "grant_types", GRANT_TYPES),
        "response_types": _list(members, "response_types", RESPONSE_TYPES),
    }
    for name, needed in NEEDED.items():
        if needed not in offered[name]:
            raise cimd.CIMDError(f"{name} does not offer {needed}")
    if {"client_secret", "client_secret_expires_at"} & document.keys():
        raise cimd.CIMDError("a public document holds no secret")
    try:
        described = registration.description(members, is_public_client=True)
    except OAuth2Error as error:
        raise cimd.CIMDError(error.description) from error
    fixed = {"token_endpoint_auth_method": AuthMethod.NONE, "grant_types": GRANT_TYPES}
    return document | {"client_name": ""} | described | fixed


def _list(members: dict[str, Any], name: str, default: list[str]) -> list[Any]:
    value = members.get(name, default)
    if not isinstance(value, list):
        raise cimd.CIMDError(f"{name} is not a list")
    return value
