"""Clients whose id is the address of a document about them (Client ID Metadata Documents)."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import Any

import structlog
from django.conf import settings
from django.core.cache import cache
from django.utils import timezone
from oauth2_provider import cimd
from oauth2_provider.settings import oauth2_settings
from oauthlib.oauth2 import OAuth2Error

from recording.oauth import redirects
from recording.oauth.metadata import GRANT_TYPES, RESPONSE_TYPES
from recording.oauth.models import Application, AuthMethod
from recording.oauth.registration import Metadata
from webhooks_core.network.url_policy import UrlPolicy

MAX_LENGTH = 255  # of an address: the column of client ids
# The columns of a client's row that its document sets.
STORED = (
    *("client_type", "token_endpoint_auth_method", "authorization_grant_type"),
    *("registration_source", "cimd_expires_at", "name", "redirect_uris"),
)
NEEDED = {
    "token_endpoint_auth_method": AuthMethod.NONE,
    "grant_types": "authorization_code",
    "response_types": "code",
}

log = structlog.stdlib.get_logger(__name__)


def is_address(client_id: str) -> bool:
    """Return True if a client id is written like the address of a document."""
    return len(client_id) <= MAX_LENGTH and redirects.is_public(client_id)


def find(client_id: str, *, may_fetch: bool) -> Application | None:
    """Return the application with an id, as its document describes it now; it may be unsaved.

    When the document cannot be used, a new client is unknown, and a known one is as its last
    document says. The cache keeps what a document says: a page does not write to the database.
    """
    application = Application.objects.find(client_id)
    is_described = is_address(client_id) and Application.is_document_allowed(client_id)
    if not is_described or (application and not application.is_outdated()):
        return application
    key = f"client-document:{hashlib.sha256(client_id.encode()).hexdigest()}"
    fields: dict[str, Any] | None = cache.get(key)
    if fields is None and may_fetch:
        fields, max_age = _fetched(client_id)
        cache.set(key, fields, max_age)
    if not fields:
        return application
    application = application or Application(client_id=client_id)
    for name, value in fields.items():
        setattr(application, name, value)
    return application


def store(application: Application) -> Application:
    """Save what a document says of a client, which an account now connects."""
    if not application.document_host:
        return application
    stored: Application
    stored, _ = Application.objects.update_or_create(
        client_id=application.client_id,
        defaults={name: getattr(application, name) for name in STORED},
    )
    return stored


def _fetched(client_id: str) -> tuple[dict[str, Any], int]:
    """Return the fields that a document sets, and for how many seconds; none if it is unusable."""
    with cimd._fetch_slot() as has_slot:  # noqa: SLF001 - the toolkit's limit
        if not has_slot:
            return {}, 1
        try:
            document, max_age = oauth2_settings.CIMD_METADATA_FETCHER().fetch(client_id)
            return _fields(document, max_age), max_age
        except Exception as error:  # a stranger's document is no error of ours
            log.info("client document unusable", client_id=client_id, error=str(error))
            return {}, oauth2_settings.CIMD_FAILURE_BACKOFF_SECONDS


def _fields(document: dict[str, Any], max_age: int) -> dict[str, Any]:
    return {
        "client_type": Application.CLIENT_PUBLIC,
        "token_endpoint_auth_method": AuthMethod.NONE,
        "authorization_grant_type": Application.GRANT_AUTHORIZATION_CODE,
        "registration_source": Application.RegistrationSource.CIMD,
        "cimd_expires_at": timezone.now() + timedelta(seconds=max_age),
        "name": document["client_name"],
        "redirect_uris": " ".join(document["redirect_uris"]),
    }


def check_address(client_id: str) -> None:
    """Accept a public address. Raises UrlRefusedError."""
    UrlPolicy.public_https(settings.BASE_URL, local=False).check(client_id)


class DocumentFetcher(cimd.SafeMetadataFetcher):
    """The toolkit's fetcher, with our rules for addresses and documents.

    The toolkit takes site-local, multicast and NAT64 addresses of an own network for public
    (test_attacks.py `test_a_name_that_leads_inside_is_never_asked`).
    """

    def fetch(self, client_id: str) -> tuple[dict[str, Any], int]:
        """Return a document and for how many seconds it is valid.

        Raises CIMDError, UrlRefusedError.
        """
        check_address(client_id)
        document, max_age = super().fetch(client_id)
        if document.get("client_id") != client_id:
            raise cimd.CIMDError("the document describes another client_id")
        return supported(document), max_age


def supported(document: dict[str, Any]) -> dict[str, Any]:
    """Return a document with the addresses that this server supports.

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
        metadata = Metadata.of(members, auth_method=AuthMethod.NONE)
    except OAuth2Error as error:
        raise cimd.CIMDError(error.description) from error
    kept = {"redirect_uris": [*metadata.redirect_uris], "client_name": metadata.name}
    return document | kept


def _list(members: dict[str, Any], name: str, default: list[str]) -> list[Any]:
    value = members.get(name, default)
    if not isinstance(value, list):
        raise cimd.CIMDError(f"{name} is not a list")
    return value
