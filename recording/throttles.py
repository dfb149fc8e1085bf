"""How often an account may create and test subscriptions; no limit unless one is set."""

from __future__ import annotations

from django.conf import settings
from rest_framework.request import Request
from rest_framework.throttling import SimpleRateThrottle
from rest_framework.views import APIView


class AccountThrottle(SimpleRateThrottle):
    """Counts per account; `scope` names the rate in settings.RECORDING_RATES."""

    scope: str

    def get_rate(self) -> str | None:
        return settings.RECORDING_RATES[self.scope] or None

    def get_cache_key(self, request: Request, view: APIView) -> str:
        return f"recording.{self.scope}.{request.user.pk}"


class CreateThrottle(AccountThrottle):
    scope = "create"


class PingThrottle(AccountThrottle):
    scope = "test"
