"""Rate limits per address, for logins and OAuth endpoints."""

from __future__ import annotations

import math
from typing import Any

from django.conf import settings
from django.http import HttpRequest

from recording.oauth.errors import TooManyRequestsError
from recording.throttles import client_address
from webhooks_core.web.throttles import ExactRateThrottle


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
