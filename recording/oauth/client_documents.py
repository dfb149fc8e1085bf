"""Clients whose id is the address of a document about them (Client ID Metadata Documents)."""

from __future__ import annotations

import hashlib
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import partial
from ipaddress import ip_address
from typing import Any

import structlog
from django.core.cache import cache
from django.core.exceptions import ValidationError
from django.utils import timezone
from oauth2_provider import cimd
from oauth2_provider.settings import oauth2_settings
from oauthlib.oauth2 import OAuth2Error
from prometheus_client import Counter
from urllib3 import HTTPSConnectionPool
from urllib3.connection import HTTPSConnection
from urllib3.exceptions import HTTPError

from recording.oauth import redirects
from recording.oauth.clients import GRANT_TYPES, RESPONSE_TYPES, Metadata
from recording.oauth.models import Application, AuthMethod
from webhooks_core.network.addresses import is_public
from webhooks_core.network.resolver import ThreadPerTask

FETCH_FOR_S = 5.0
MAX_LENGTH = 255  # of an address: the column of client ids

# The columns of a client's row that its document sets.
STORED = (
    "client_type",
    "registration_source",
    "token_endpoint_auth_method",
    "authorization_grant_type",
    "name",
    "redirect_uris",
    "cimd_expires_at",
)
NEEDED = {
    "token_endpoint_auth_method": AuthMethod.NONE,
    "grant_types": "authorization_code",
    "response_types": "code",
}

log = structlog.stdlib.get_logger(__name__)

# More than the toolkit's cap on simultaneous fetches: one that hangs in a resolver outlives its caller.
_threads = ThreadPerTask(most=32)

# Not in prometheus_client's own registry: /metrics has one of its own.
failures = Counter(
    "signpost_client_document_failures",
    "Metadata documents of clients that this process could not fetch or accept.",
    ["step"],
    registry=None,
)
for step in ("fetch", "check"):
    failures.labels(step)  # there from the start, at zero


def is_address(client_id: str) -> bool:
    """Return True if a client id is written like the address of a document."""
    return len(client_id) <= MAX_LENGTH and redirects.is_public(client_id)


def _is_allowed(client_id: str) -> bool:
    return is_address(client_id) and Application.is_document_allowed(client_id)


def is_missing(client_id: str) -> bool:
    """Return True if a document must be fetched before its client can be used."""
    if not _is_allowed(client_id):
        return False
    application = find(client_id, may_fetch=False)
    return application is None or not application.is_usable()


def find(client_id: str, *, may_fetch: bool) -> Application | None:
    """Return the application with an id, as its document describes it now; it may be unsaved.

    When the document cannot be used, a new client is unknown, and a known one is as its last
    document says, for a while (`Application.is_usable`).
    """
    application = Application.objects.find(client_id)
    if not _is_allowed(client_id) or (application and not application.is_outdated()):
        return application
    if not (fields := _described(client_id, may_fetch=may_fetch)):
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


def _described(client_id: str, *, may_fetch: bool) -> dict[str, Any]:
    """Return the fields that a document sets, empty if it cannot be used.

    The cache keeps them: a page does not write to the database. It keeps a failure too, so that
    the next page does not repeat the request.
    """
    key = f"client-document:{hashlib.sha256(client_id.encode()).hexdigest()}"
    cached: dict[str, Any] | None = cache.get(key)
    if cached == {} or (cached and cached["cimd_expires_at"] > timezone.now()):
        return cached
    if not may_fetch:
        return {}
    with cimd._fetch_slot() as has_slot:  # noqa: SLF001 - the toolkit's limit
        if not has_slot:
            return {}
        try:
            fields, max_age = _fields(client_id)
        except cimd.CIMDError as error:
            log.info("client document unusable", client_id=client_id, error=str(error))
            fields, max_age = {}, oauth2_settings.CIMD_FAILURE_BACKOFF_SECONDS
    cache.set(key, fields, max_age)
    return fields


def _fields(client_id: str) -> tuple[dict[str, Any], int]:
    """Fetch a document; return its fields and for how many seconds they hold. Raises CIMDError."""
    document, max_age = DocumentFetcher().fetch(client_id)
    with _counting_failures("check"):
        if document.get("client_id") != client_id:
            raise cimd.CIMDError("the document describes another client_id")
        application = Application(
            client_id=client_id,
            client_type=Application.CLIENT_PUBLIC,
            registration_source=Application.RegistrationSource.CIMD,
            cimd_expires_at=timezone.now() + timedelta(seconds=max_age),
            **cimd._build_application_kwargs(document),  # noqa: SLF001 - its checks
        )
        try:
            application.full_clean(exclude=["client_secret"], validate_unique=False)
        except ValidationError as error:
            raise cimd.CIMDError("; ".join(error.messages)) from error
    return {name: getattr(application, name) for name in STORED}, max_age


class Fetch:
    """A fetch that another thread ends: the toolkit's time limit holds for each read only."""

    def __init__(self) -> None:
        self._sockets: list[socket.socket] = []
        self._has_ended = False

    def opened(self, connection: socket.socket) -> None:
        """Remember a connection. Raises OSError after the end."""
        self._sockets.append(connection)
        if self._has_ended:
            raise OSError("the document took too long")

    def end(self) -> None:
        self._has_ended = True
        for connection in self._sockets:
            with suppress(OSError):  # it has ended itself
                # Not SSLSocket's, which would take its state from the thread that reads.
                socket.socket.shutdown(connection, socket.SHUT_RDWR)


class _Connection(HTTPSConnection):
    """urllib3's connection, known to its fetch."""

    def __init__(self, *args: Any, fetch: Fetch, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._fetch = fetch

    def connect(self) -> None:
        super().connect()
        self._fetch.opened(self.sock)


class DocumentFetcher(cimd.SafeMetadataFetcher):
    """The toolkit's fetcher, with a deadline for all of a fetch, and our rules for a document.

    The toolkit refuses addresses that are not public, redirects, other media types and documents
    above 16 KiB. Its time limit holds for each read: a name that does not resolve, or a byte now
    and then, would hold the thread of a request for as long as the other side likes.
    """

    def fetch(self, client_id: str) -> tuple[dict[str, Any], int]:
        """Return the document and for how many seconds it is valid. Raises CIMDError."""
        fetch = Fetch()
        with _counting_failures("fetch"):
            future = _threads.submit(self._fetch, client_id, fetch)
            try:
                document, max_age = future.result(timeout=FETCH_FOR_S)
            except OSError as error:  # a TimeoutError too
                future.cancel()
                fetch.end()
                raise cimd.CIMDError("no document in time, or no thread") from error
        with _counting_failures("check"):
            return supported(document), max_age

    def _fetch(self, client_id: str, fetch: Fetch) -> tuple[dict[str, Any], int]:
        """Fetch as the toolkit does, from the first address, which is checked as all others."""
        url = cimd._validate_client_id_url(client_id)  # noqa: SLF001 - the toolkit's checks
        port = url.port or 443
        address, *_ = _public_addresses(url.hostname, port)
        pool = HTTPSConnectionPool(
            address,
            port,
            timeout=FETCH_FOR_S,
            retries=False,
            ssl_context=ssl.create_default_context(),
            server_hostname=url.hostname,
        )
        pool.ConnectionCls = partial(_Connection, fetch=fetch)  # type: ignore[assignment]
        headers = {"Host": url.netloc, "Accept": "application/json, application/*+json"}
        target = url._replace(scheme="", netloc="").geturl()
        try:
            with (
                pool,
                pool.urlopen(
                    "GET",
                    target,
                    headers=headers,
                    redirect=False,
                    preload_content=False,
                ) as response,
            ):
                return self._read_document(response)  # type: ignore[no-any-return]
        except (HTTPError, ValueError, RecursionError) as error:
            reason = str(error)
        # Without the first error's traceback, which would keep the connection open.
        raise cimd.CIMDError(reason)


def _public_addresses(host: str, port: int) -> list[str]:
    """Resolve a host. Raises CIMDError if it has no address, or one that is not public.

    The toolkit's check takes some for public that are not: site-local ones, NAT64 of an own
    network, multicast.
    """
    try:
        rows = socket.getaddrinfo(host, port, proto=socket.IPPROTO_TCP)
    except (OSError, UnicodeError) as error:  # a label that is empty or too long
        raise cimd.CIMDError("the host could not be resolved") from error
    addresses = [str(address) for *_, (address, *_) in rows]
    if not all(is_public(ip_address(each)) for each in addresses):
        raise cimd.CIMDError("the host leads to an address that is not public")
    return addresses


@contextmanager
def _counting_failures(step: str) -> Iterator[None]:
    try:
        yield
    except cimd.CIMDError:
        failures.labels(step).inc()
        raise


def supported(document: dict[str, Any]) -> dict[str, Any]:
    """Return a document with the addresses, grants and authentication that this server supports.

    One document describes a client to all servers, so what other servers may support is left
    out. Raises CIMDError if something that is needed here is missing.
    """
    members = {name: value for name, value in document.items() if value is not None}
    offered = {
        "token_endpoint_auth_method": [
            members.get("token_endpoint_auth_method", AuthMethod.NONE),
            *_list(members, "token_endpoint_auth_methods_supported", []),
        ],
        "grant_types": _list(members, "grant_types", GRANT_TYPES),
        "response_types": _list(members, "response_types", RESPONSE_TYPES),
    }
    for name, needed in NEEDED.items():
        if needed not in offered[name]:
            raise cimd.CIMDError(f"{name} does not offer {needed}")
    try:
        metadata = Metadata.of(members, auth_method=AuthMethod.NONE)
    except OAuth2Error as error:
        raise cimd.CIMDError(error.description) from error
    return document | {
        "client_name": metadata.name,
        "redirect_uris": list(metadata.redirect_uris),
        "token_endpoint_auth_method": AuthMethod.NONE.value,
        "grant_types": GRANT_TYPES,
    }


def _list(members: dict[str, Any], name: str, default: list[str]) -> list[Any]:
    value = members.get(name, default)
    if not isinstance(value, list):
        raise cimd.CIMDError(f"{name} is not a list")
    return value
