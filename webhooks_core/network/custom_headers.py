"""Headers that an owner may add to the deliveries of an endpoint. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

MAX_HEADERS = 20
MAX_VALUE = 1024
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}", re.ASCII)
_VALUE = re.compile(r"[\x20-\x7e]*", re.ASCII)
# Headers that the engine sets, those of a connection (RFC 9110 section 7.6.1), and those that
# claim an identity, which a proxy in front of the receiver may trust.
_REFUSED = frozenset(
    [
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "cookie",
        "expect",
        "forwarded",
        "host",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "traceparent",
        "tracestate",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "user-agent",
        "via",
        "x-real-ip",
        "x-principal-id",
        "x-tenant-id",
    ]
)
_REFUSED_PREFIXES = ("x-forwarded-", "webhook-")


class HeaderError(ValueError):
    """A header that deliveries cannot carry; the message names it."""


def check(
    headers: Mapping[str, str], *, reserved: Collection[str] = ()
) -> dict[str, str]:
    """Return the headers. Raises HeaderError for one that deliveries cannot carry.

    `reserved` holds the header prefixes of the products.
    """
    if len(headers) > MAX_HEADERS:
        raise HeaderError(f"at most {MAX_HEADERS} headers")
    if len({name.lower() for name in headers}) < len(headers):
        raise HeaderError("a header is named twice")
    for name, value in headers.items():
        _check_one(name, value, reserved)
    return dict(headers)


def _check_one(name: str, value: str, reserved: Collection[str]) -> None:
    if not _NAME.fullmatch(name):
        raise HeaderError(f"{name[:64]!r} is not a header name")
    # Many servers treat an underscore as a hyphen.
    lower = name.lower().replace("_", "-")
    prefixes = (*_REFUSED_PREFIXES, *(f"{prefix.lower()}-" for prefix in reserved))
    if lower in _REFUSED or lower.startswith(prefixes):
        raise HeaderError(f"{name} cannot be set")
    if len(value) > MAX_VALUE or not _VALUE.fullmatch(value):
        raise HeaderError(f"the value of {name} is not plain text")
