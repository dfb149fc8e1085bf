"""Rate limits per address, for logins and OAuth endpoints."""

from __future__ import annotations

import math
from ipaddress import IPv6Address, ip_address
from typing import Any

from django.conf import settings
from django.http import HttpRequest

from recording.oauth.errors import TooManyRequestsError
from webhooks_core.web.throttles import ExactRateThrottle

IPV6_HOST_BITS = 64  # a household or a rented machine has a whole /64


def client_address(request: Any) -> str:
    """Return the address that every limit per address counts by.

    It is the peer's, or the one that trusted proxies report: each of `TRUSTED_PROXY_COUNT`
    proxies appends one entry to X-Forwarded-For. Entries before those come from the client and
    are not trusted. An IPv6 address becomes the first one of its /64.
    """
    peer: str = (request.META.get("REMOTE_ADDR") or "")[:64]
    count = settings.TRUSTED_PROXY_COUNT
    entries = request.META.get("HTTP_X_FORWARDED_FOR", "").split(",")
    client = _normalized(entries[-count].strip()) if 0 < count <= len(entries) else ""
    return client or _normalized(peer) or peer


def _normalized(text: str) -> str:
    """Return an address as limits count it: IPv4-mapped as IPv4, IPv6 by /64; "" for none."""
    try:
        address = ip_address(text)
    except ValueError:
        return ""
    if not isinstance(address, IPv6Address):
        return str(address)
    network = int(address) >> IPV6_HOST_BITS << IPV6_HOST_BITS
    return str(address.ipv4_mapped or IPv6Address(network))


class AddressThrottle(ExactRateThrottle):
    """A sliding window per address; `OAUTH_RATES` gives each endpoint's rate, empty for none."""

    def get_rate(self) -> str | None:
        rate: str = settings.OAUTH_RATES[self.scope]
        return rate or None

    def get_cache_key(self, request: Any, view: Any) -> str:
        return f"oauth:{self.scope}:{client_address(request)}"


def check(request: HttpRequest, scope: str) -> None:
    """Count this request. Raises TooManyRequestsError with the seconds to wait."""
    throttle = AddressThrottle(scope)
    if not throttle.allow_request(request, view=None):
        raise TooManyRequestsError(retry_after=math.ceil(throttle.wait() or 1))
