"""Webhook subscriptions of a tenant."""

from __future__ import annotations

from typing import Any

import orjson

from gateway.events import Origin
from gateway.webhooks import PROFILE, TEST
from webhooks_core import filters, profiles
from webhooks_core.ids import is_id
from webhooks_core.models import Endpoint, Event
from webhooks_core.owners import changes
from webhooks_core.owners.changes import Actor
from webhooks_core.profiles import PingEvent
from webhooks_core.web.errors import BadRequestError, ConflictError
from webhooks_core.web.subscriptions import SubscriptionService


class Subscriptions(SubscriptionService):
    """The subscriptions of a tenant, for a caller that is the origin of their test events."""

    profile = PROFILE
    quota_error = "A tenant has at most {quota} subscriptions; delete one first."

    def __init__(self, origin: Origin, *, by: Actor | None = None) -> None:
        """`by` acts for the tenant: by default the principal of the origin."""
        super().__init__(origin.tenant, by=by or changes.owner(origin.principal))
        self.origin = origin

    def test_filter(
        self, subscription: Endpoint, *, event: Any, **fields: Any
    ) -> dict[str, Any]:
        """Return whether an event passes a filter, by default the subscription's.

        `event` is an envelope or the id of a stored event. Raises 400 if there is none.
        """
        source = fields.get("filter", subscription.filter)
        envelope = self._envelope(event) if isinstance(event, str) else event
        reasons = filters.compiled(source or {}).why(envelope)
        return {"match": not reasons, "why": [reason.as_json() for reason in reasons]}

    def _envelope(self, event_id: str) -> Any:
        if is_id(event_id, profiles.get(PROFILE).event_prefix):
            own = Event.objects.filter(profile=PROFILE, owner=self.owner)
            if event := own.filter(public_id=event_id).first():
                return orjson.loads(bytes(event.body))
        raise BadRequestError("event: there is no such event.")

    def ping(self, subscription: Endpoint) -> PingEvent:
        if not profiles.get(PROFILE).enabled:
            raise ConflictError("Webhooks are switched off in the configuration.")
        if not subscription.is_subscribed:
            raise ConflictError("The subscription is inactive.")
        data = {"subscription_id": subscription.public_id}
        return PingEvent(TEST, data, self.origin.metadata)
