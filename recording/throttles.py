"""Limit how often an account creates and tests subscriptions, if a rate is set."""

from __future__ import annotations

import hashlib
import math

from django.conf import settings
from rest_framework.request import Request
from rest_framework.views import APIView

from webhooks_core.web.errors import TooManyRequestsError
from webhooks_core.web.throttles import ExactRateThrottle

CHALLENGED_HOST_RATE = "120/minute"
PERIODS = {1: "second", 60: "minute", 3600: "hour", 86_400: "day"}


# By the names of the rates in settings.RECORDING_RATES.
DESCRIPTIONS = {
    "create": "Too many new subscriptions: an account may create",
    "test": "Too many test events: an account may send",
    "mcp": "Too many requests: an account may send",
    "resend": "Too many resends, retries and cancellations: an account may make",
    "replay": "Too many replays: an account may start or count",
    "challenge": "Too many new callbacks: of an account this server asks",
    "challenged host": "Too many new callbacks: of one host this server asks",
}


class AccountThrottle(ExactRateThrottle):
    """Counts per account."""

    num_requests: int
    duration: int

    def get_rate(self) -> str | None:
        return settings.RECORDING_RATES.get(self.scope) or None

    def get_cache_key(self, request: Request, view: APIView) -> str:
        return f"recording.{self.scope}.{request.user.pk}"

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


class ChallengedHostThrottle(AccountThrottle):
    """Counts per host: many accounts must not make this server ask one receiver all the time."""

    def __init__(self, host: str) -> None:
        self.host = host
        super().__init__("challenged host")

    def get_rate(self) -> str | None:
        return CHALLENGED_HOST_RATE

    def get_cache_key(self, request: Request, view: APIView) -> str:
        return f"recording.challenge.{hashlib.sha256(self.host.encode()).hexdigest()}"
