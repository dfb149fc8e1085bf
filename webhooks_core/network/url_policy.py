"""Which URLs an endpoint may have: syntax, scheme, and where its host leads."""

from __future__ import annotations

import re
import socket
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv6Address
from urllib.parse import SplitResult, urlsplit

from yarl import URL

from webhooks_core.network.addresses import (
    AllowedNetworks,
    IPNetwork,
    ThreadPerTask,
    addresses_of,
)

LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
NOT_PUBLIC = "url must lead to public addresses only"
RESOLVE_TIMEOUT_S = 2.0
_PRINTABLE = re.compile(r"[!-~]+")
_NO_SUCH_NAME = {
    getattr(socket, name)
    for name in ("EAI_NONAME", "EAI_NODATA", "EAI_ADDRFAMILY")
    if hasattr(socket, name)
}

# A resolver that hangs occupies its thread, never the caller.
_resolvers = ThreadPerTask(most=16)


def own_listener(base_url: str) -> frozenset[tuple[str, int]]:
    """Return the (host, port) of our public origin, which no webhook may be sent to."""
    return frozenset({_origin(urlsplit(base_url))})


def host_of(parts: SplitResult) -> str:
    """Return the host of a URL in the one form that all its spellings share.

    A name in lower case, an IPv6 address as RFC 5952 writes it. Raises ValueError.
    """
    host = parts.hostname or ""
    return str(IPv6Address(host)) if ":" in host else host


def _origin(parts: SplitResult) -> tuple[str, int]:
    """Return host and port of a URL; every name of this machine as localhost."""
    # A resolver ignores a trailing dot.
    name = host_of(parts).removesuffix(".")
    host = "localhost" if name in LOCAL_HOSTS else name
    return host, parts.port or (443 if parts.scheme == "https" else 80)


def is_local(url: str) -> bool:
    """Return True if a URL names this machine."""
    try:
        host = host_of(urlsplit(url))
    except ValueError:
        return False
    return host in LOCAL_HOSTS or host.startswith("127.")


class UrlRefusedError(ValueError):
    """A URL that no webhook may be sent to; the message says why, without addresses."""


@dataclass(frozen=True, slots=True)
class UrlPolicy:
    """Which URLs a product accepts.

    `schemes` holds for public hosts; `local_schemes` for this machine, by the names
    localhost, 127.0.0.1 and [::1] only. `own` holds the (host, port) of our own listener.
    """

    schemes: frozenset[str] = frozenset({"https"})
    local_schemes: frozenset[str] = frozenset()
    own: frozenset[tuple[str, int]] = frozenset()
    max_length: int = 2048

    @classmethod
    def public_https(cls, base_url: str, *, local: bool) -> UrlPolicy:
        """Return the policy of a service at `base_url`: public https, and locally http to loopback."""
        schemes = frozenset({"http"} if local else ())
        return cls(local_schemes=schemes, own=own_listener(base_url))

    @lru_cache(maxsize=4096)  # noqa: B019 - a policy lives as long as the process
    def allowed_networks(
        self, url: str, *, networks: tuple[IPNetwork, ...] = ()
    ) -> AllowedNetworks:
        """Return the addresses that a connection for this URL may be made to."""
        try:
            parts = urlsplit(url)
            # It may have become our own since it was accepted.
            is_own = _origin(parts) in self.own
        except ValueError:  # nothing can be sent there anyway
            return AllowedNetworks(nothing=True)
        if is_own:
            return AllowedNetworks(nothing=True)
        is_local = host_of(parts) in LOCAL_HOSTS and parts.scheme in self.local_schemes
        return AllowedNetworks(loopback=is_local, networks=networks)

    def check(self, url: str, *, networks: tuple[IPNetwork, ...] = ()) -> None:
        """Accept a URL for an endpoint. Raises UrlRefusedError.

        A name that definitely does not exist is refused; a resolver that fails or is slow is
        not, since every connection is checked again.
        """
        host = host_of(self.check_syntax(url))
        allowed = self.allowed_networks(url, networks=networks)
        if host in LOCAL_HOSTS and allowed == AllowedNetworks():
            raise UrlRefusedError(NOT_PUBLIC)  # for any address of the name
        if not allowed.allows_all(_resolve(host)):
            raise UrlRefusedError(NOT_PUBLIC)

    def check_syntax(self, url: str) -> SplitResult:
        """Return the parts of an acceptable URL. Raises UrlRefusedError."""
        if len(url) > self.max_length:
            raise UrlRefusedError(f"url is longer than {self.max_length} characters")
        if not _PRINTABLE.fullmatch(url) or "\\" in url:
            raise UrlRefusedError("url holds characters that a URL cannot have")
        parts = _split(url)
        if parts.username is not None or parts.password is not None:
            raise UrlRefusedError("url must not hold a user name or password")
        if "#" in url:
            raise UrlRefusedError("url must not hold a fragment")
        self._check_scheme(parts)
        if _origin(parts) in self.own:
            raise UrlRefusedError("url must not lead to this service itself")
        if _is_below_localhost(host_of(parts)):
            raise UrlRefusedError(NOT_PUBLIC)
        return parts

    def _check_scheme(self, parts: SplitResult) -> None:
        is_local = host_of(parts) in LOCAL_HOSTS and bool(self.local_schemes)
        schemes = self.local_schemes if is_local else self.schemes
        if parts.scheme not in schemes:
            names = " or ".join(sorted(schemes, reverse=True))
            raise UrlRefusedError(f"url must start with {names}://")


def _is_below_localhost(host: str) -> bool:
    """Return True if a name means this machine (RFC 6761 section 6.3), except `localhost`."""
    name = host.rstrip(".")
    return (name != host and name == "localhost") or name.endswith(".localhost")


def _split(url: str) -> SplitResult:
    """Split a URL; refuse one that the standard library and the HTTP client read differently."""
    try:
        parts, client_url = urlsplit(url), URL(url)
        host, port = host_of(parts), parts.port
        # Raw: `host` would be decoded from Punycode.
        client_origin = (client_url.raw_host or "").lower(), client_url.explicit_port
    except (ValueError, IndexError) as error:  # yarl raises both
        raise UrlRefusedError("url is malformed") from error
    # No host name needs an escape, and resolvers read escapes differently.
    is_escaped = "%" in parts.netloc
    if not host or (host, port) != client_origin or is_escaped or host.startswith("."):
        raise UrlRefusedError("url is malformed")
    if port == 0:
        raise UrlRefusedError("url must not use port 0")
    return parts


def _resolve(host: str) -> list[str]:
    """Return the addresses of a host; none if the resolver gives no definite answer."""
    future = _resolvers.submit(socket.getaddrinfo, host, None, type=socket.SOCK_STREAM)
    try:
        rows = future.result(timeout=RESOLVE_TIMEOUT_S)
    except FutureTimeoutError:
        future.cancel()  # no caller waits for a lookup that has not started
        return []
    except UnicodeError as error:
        raise UrlRefusedError("url is malformed") from error
    except socket.gaierror as error:
        if error.errno in _NO_SUCH_NAME:
            raise UrlRefusedError("url names a host that does not exist") from error
        return []
    except OSError:
        return []
    return addresses_of(rows)
