"""Webhook subscriptions of a tenant."""

from __future__ import annotations

from gateway.event_types import TEST
from gateway.events import Origin
from gateway.webhooks import PROFILE
from webhooks_core import profiles
from webhooks_core.api.subscriptions import SubscriptionService
from webhooks_core.errors import ConflictError
from webhooks_core.models import Endpoint
from webhooks_core.profiles import NewEvent


class Subscriptions(SubscriptionService):
    """The subscriptions of a tenant, for a caller that is the origin of their test events."""

    profile = PROFILE
    quota_error = "A tenant has at most {quota} subscriptions; delete one first."

    def __init__(self, origin: Origin, *, by: str = "") -> None:
        """`by` acts for the tenant: by default the principal of the origin."""
        super().__init__(origin.tenant, by=by or origin.principal)
        self.origin = origin

    def ping(self, subscription: Endpoint) -> NewEvent:
        if not profiles.get(PROFILE).enabled:
            raise ConflictError("Webhooks are switched off in the configuration.")
        if not subscription.is_receiving:
            raise ConflictError("The subscription is inactive.")
        data = {"subscription_id": subscription.public_id}
        return NewEvent(TEST, data, self.origin.metadata)
