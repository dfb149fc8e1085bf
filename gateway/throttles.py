"""Rate limits of callers; there is none unless a setting has one."""

from __future__ import annotations

from typing import cast

from django.conf import settings
from rest_framework.request import Request
from rest_framework.views import APIView

from gateway.identity import Caller
from webhooks_core.web.views import RateThrottle


class CallerThrottle(RateThrottle):
    """Counts per gateway key, or per principal for header identity."""

    def get_rate(self) -> str | None:
        return settings.GATEWAY_RATES[self.scope] or None

    def get_cache_key(self, request: Request, view: APIView) -> str:
        caller = cast("Caller", request.user)
        ident = caller.key_id or f"{caller.tenant}/{caller.principal}"
        return f"gateway.{self.scope}.{ident}"


class CreateThrottle(CallerThrottle):
    """Counts successful creations alone."""

    scope = "create"

    def throttle_success(self) -> bool:
        return True

    def count(self, request: Request, view: APIView) -> None:
        """Count a creation."""
        self.allow_request(request, view)  # reads what was counted before
        if self.rate is not None:
            super().throttle_success()
