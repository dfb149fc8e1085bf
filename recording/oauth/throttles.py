"""How often one address may call an OAuth endpoint."""

from __future__ import annotations

import math
from ipaddress import ip_address
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from rest_framework.throttling import SimpleRateThrottle

from recording.oauth.errors import TooManyRequestsError


def client_address(request: Any) -> str:
    """Return the peer's address, or what the configured number of proxies say it is.

    `TRUSTED_PROXY_COUNT` proxies each append one entry to X-Forwarded-For; whatever stands left
    of those is the sender's own claim and is never believed.
    """
    peer: str = (request.META.get("REMOTE_ADDR") or "")[:64]
    count = settings.TRUSTED_PROXY_COUNT
    claims = request.META.get("HTTP_X_FORWARDED_FOR", "").split(",")
    if not count or len(claims) < count:
        return peer
    try:
        return str(ip_address(claims[-count].strip()))
    except ValueError:
        return peer


class AddressThrottle(SimpleRateThrottle):
    """A sliding window per address; `OAUTH_RATES` gives each endpoint's rate, empty for none."""

    scope: str

    def __init__(self, scope: str) -> None:
        self.scope = scope
        super().__init__()

    def get_rate(self) -> str | None:
        rate: str = settings.OAUTH_RATES[self.scope]
        return rate or None

    def get_cache_key(self, request: Any, view: Any) -> str:
        return f"oauth:{self.scope}:{client_address(request)}"


def check(request: HttpRequest, scope: str) -> None:
    """Count this request; raises TooManyRequestsError with the seconds to wait."""
    throttle = AddressThrottle(scope)
    if not throttle.allow_request(request, view=None):  # type: ignore[arg-type]
        raise TooManyRequestsError(retry_after=math.ceil(throttle.wait() or 1))
