"""DRF's rate limit, for a rate that its maker names."""

from __future__ import annotations

from typing import Any

from rest_framework.throttling import SimpleRateThrottle


class RateThrottle(SimpleRateThrottle):
    """Counts by the rate `scope`. As DRF says, requests at the same moment may count as one."""

    scope: str

    def __init__(self, scope: str = "") -> None:
        if scope:
            self.scope = scope
        super().__init__()

    def allow_request(self, request: Any, view: Any) -> bool:
        """Count a request, which may be one of Django. Returns False above the limit."""
        return super().allow_request(request, view)
