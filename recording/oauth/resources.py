"""Resource indicators that mean the recording API (RFC 8707, RFC 9728)."""

from __future__ import annotations

import re
import string
from functools import lru_cache
from urllib.parse import urljoin, urlsplit

from webhooks_core.network.url_policy import host_of

# The API is one resource server. Its root and each of its addresses name it, because strict
# clients expect the metadata to repeat the exact address that they called (RFC 9728, 3.3).
PATH = re.compile(
    r"|/mcp|/v1|/v1/webhooks(?!/subscriptions)(?:/[A-Za-z0-9_-]{1,64}(?:/test|/deliveries)?)?"
    r"|/v1/webhook-events/samples",
    re.ASCII,
)
ESCAPE = re.compile("%([0-9A-Fa-f]{2})")
PLAIN = re.compile(r'[!$-?A-~"]+')  # neither a fragment nor user information
UNRESERVED = frozenset(string.ascii_letters + string.digits + "-._~")
PORTS = {"http": 80, "https": 443}


def is_protected_path(path: str) -> bool:
    """Return True if a path (empty for the root) belongs to the recording API."""
    return PATH.fullmatch(path) is not None


def is_ours(resource: str, *, issuer: str) -> bool:
    """Return True if a resource indicator names the recording API of this origin."""
    resource, issuer = canonical(resource), canonical(issuer)
    if not resource.startswith(issuer):
        return False
    return is_protected_path(resource[len(issuer) :])


@lru_cache(maxsize=1024)
def canonical(uri: str) -> str:
    """Return the form that all spellings of a URI share (RFC 3986 sections 6.2.2 and 6.2.3).

    One that cannot be a resource stays as it is: with user information, a fragment, or a fault.
    """
    plain = ESCAPE.sub(_unescaped, uri)
    try:
        parts = urlsplit(plain)
        host, port = host_of(parts), parts.port
    except ValueError:
        return uri
    if not host or not PLAIN.fullmatch(plain):
        return uri
    host = f"[{host}]" if ":" in host else host
    shown_port = "" if port in {None, PORTS.get(parts.scheme)} else f":{port}"
    path = urljoin("/", parts.path)  # without dot segments
    query = plain[plain.index("?") :] if "?" in plain else ""
    return f"{parts.scheme}://{host}{shown_port}{'' if path == '/' else path}{query}"


def _unescaped(escape: re.Match[str]) -> str:
    character = chr(int(escape[1], 16))
    return character if character in UNRESERVED else escape[0].upper()
