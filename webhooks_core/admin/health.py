"""The health of endpoints."""

from __future__ import annotations

from enum import StrEnum

from django.db.models import Q

from webhooks_core.models import Endpoint


class Health(StrEnum):
    """The state of an endpoint: the first of these that applies."""

    DELETED = "Deleted"
    DISABLED = "Disabled"
    INACTIVE = "Inactive"
    PAUSED = "Paused"
    HANGING = "Hanging"
    FAILING = "Failing"
    HEALTHY = "Healthy"

    @classmethod
    def of(cls, endpoint: Endpoint) -> Health:
        facts = {
            cls.DELETED: endpoint.deleted_at is not None,
            cls.DISABLED: endpoint.is_disabled,
            cls.INACTIVE: not endpoint.active,
            cls.PAUSED: endpoint.paused_at is not None,
            cls.HANGING: endpoint.is_hanging,
            cls.FAILING: endpoint.consecutive_failures > 0,
        }
        return next((state for state, fits in facts.items() if fits), cls.HEALTHY)

    @property
    def tone(self) -> str:
        return _TONES[self]

    @property
    def advice(self) -> str:
        """How an endpoint in this state delivers again; "" if it does."""
        return _ADVICE.get(self, "")

    @property
    def condition(self) -> Q:
        """As `of`, for a query."""
        condition = _CONDITIONS.get(self, Q())
        for earlier in list(Health)[: list(Health).index(self)]:
            condition &= ~_CONDITIONS[earlier]
        return condition


_TONES = {
    Health.DELETED: "neutral",
    Health.DISABLED: "error",
    Health.INACTIVE: "neutral",
    Health.PAUSED: "pending",
    Health.HANGING: "error",
    Health.FAILING: "error",
    Health.HEALTHY: "success",
}
_ADVICE = {
    Health.DISABLED: (
        "It failed too often in a row. Its owner sets another url, or an operator enables it; "
        "then its counter starts at 0. Events published until then skip it."
    ),
    Health.INACTIVE: (
        "Its owner has switched it off and may switch it on, or the owner is inactive. "
        "Events published until then skip it."
    ),
    Health.PAUSED: "Resume it. Events published until then wait.",
    Health.HANGING: (
        "Its last attempts timed out, so it gets one request at a time, a probe. After a success "
        "all that is due is sent."
    ),
}
_CONDITIONS = {
    Health.DELETED: Q(deleted_at__isnull=False),
    Health.DISABLED: Q(status=Endpoint.Status.DISABLED),
    Health.INACTIVE: Q(active=False),
    Health.PAUSED: Q(paused_at__isnull=False),
    Health.HANGING: Q(hanging_since__isnull=False),
    Health.FAILING: Q(consecutive_failures__gt=0),
}
