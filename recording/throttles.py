"""Whom limits count by: the client's address, or its account, if a rate is set."""

from __future__ import annotations

import math
import re
from ipaddress import IPv6Address, ip_address
from types import SimpleNamespace
from typing import Any

from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.http import HttpRequest

from webhooks_core.errors import TooManyRequestsError
from webhooks_core.web.views import RateThrottle

PERIODS = {1: "second", 60: "minute", 3600: "hour", 86_400: "day"}

# By the names of the rates in settings.RECORDING_RATES.
DESCRIPTIONS = {
    "create": "Too many new subscriptions: an account may create",
    "test": "Too many test events: an account may send",
    "mcp": "Too many requests: an account may send",
    "resend": "Too many resends: an account may ask for",
    "challenge": "Too many new callbacks: of an account this server asks",
}

IPV6_HOST_BITS = 64  # a household or a rented machine has a whole /64
# Some proxies write the port of the connection too.
WITH_PORT = re.compile(r"\[([^]]*)\](?::\d+)?|([\d.]+):\d+")


def client_address(request: Any) -> str:
    """Return the address that every limit per address counts by.

    It is the peer's, or the one that trusted proxies report: each of `TRUSTED_PROXY_COUNT`
    proxies appends one entry to X-Forwarded-For. Entries before those come from the client and
    are not trusted. An entry that is no address counts as a client of its own.
    """
    count = settings.TRUSTED_PROXY_COUNT
    entries = request.META.get("HTTP_X_FORWARDED_FOR", "").split(",")
    entry = entries[-count].strip() if 0 < count <= len(entries) else ""
    return _normalized((entry or request.META.get("REMOTE_ADDR") or "")[:64])


def _normalized(text: str) -> str:
    """Return an address without its port, IPv4-mapped as IPv4, IPv6 as the first one of its /64."""
    if match := WITH_PORT.fullmatch(text):
        text = match[1] or match[2]
    try:
        address = ip_address(text)
    except ValueError:
        return text
    if not isinstance(address, IPv6Address):
        return str(address)
    network = int(address) >> IPV6_HOST_BITS << IPV6_HOST_BITS
    return str(address.ipv4_mapped or IPv6Address(network))


class AccountThrottle(RateThrottle):
    """Counts per account."""

    num_requests: int
    duration: int

    def get_rate(self) -> str | None:
        return settings.RECORDING_RATES.get(self.scope) or None

    def get_cache_key(self, request: Any, view: Any) -> str:
        return f"recording.{self.scope}.{request.user.pk}"

    def count(self, account: AbstractUser) -> None:
        """Count a call of an account outside a view. Raises TooManyRequestsError."""
        self.allow_request(SimpleNamespace(user=account), None)

    @property
    def limit(self) -> str:
        """Return the limit as a sentence without its full stop."""
        limit = f"{self.num_requests} per {PERIODS[self.duration]}"
        return f"{DESCRIPTIONS[self.scope]} {limit}"

    def throttle_failure(self) -> bool:
        """Raise the error that names the limit."""
        seconds = math.ceil(self.wait() or 1)
        raise TooManyRequestsError(
            f"{self.limit}; try again in {seconds} s.",
            headers={"Retry-After": str(seconds)},
        )


class AddressThrottle(RateThrottle):
    """Counts per address; `OAUTH_RATES` gives each endpoint's rate, empty for none."""

    def get_rate(self) -> str | None:
        rate: str = settings.OAUTH_RATES[self.scope]
        return rate or None

    def get_cache_key(self, request: Any, view: Any) -> str:
        return f"oauth:{self.scope}:{client_address(request)}"


def seconds_to_wait(request: HttpRequest, scope: str) -> int:
    """Count a request of an address; return 0, or how long it must wait."""
    throttle = AddressThrottle(scope)
    if throttle.allow_request(request, view=None):
        return 0
    return math.ceil(throttle.wait() or 1)
