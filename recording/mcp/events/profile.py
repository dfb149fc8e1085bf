"""What MCP Events deliver: the webhook profile, which events go where, and what is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import orjson
from django.conf import settings
from django.db.models import QuerySet
from django.utils import timezone

from recording.accounts import owners
from recording.accounts.owners import row_id
from recording.mcp.events import clients
from recording.models import EventSubscription
from recording.webhooks import EVENT_TYPES, EVENTS_PROFILE, PROFILE, SUMMARY_COMPLETED
from webhooks_core import profiles, publishing
from webhooks_core.models import Event
from webhooks_core.network.url_policy import UrlPolicy
from webhooks_core.profiles import Prepared, RetryPolicy, Sending, WebhookProfile

# Of a whole body (SEP-3415, "Delivery profile"), and what it has besides its `data`.
MAX_BYTES, ENVELOPE_BYTES = 256 * 1024, 1024
# In a payload: what is left out, because it would be too large.
OMITTED = "omitted"
# What a delivery says for which nothing was sent.
ENDED = "the subscription has ended"
NOT_CONNECTED = "the application or the account has no access any more"


def register() -> None:
    """Register the profile, and let it see what recording publishes; called from AppConfig.ready."""
    events = WebhookProfile(
        name=EVENTS_PROFILE,
        event_types={SUMMARY_COMPLETED: EVENT_TYPES[SUMMARY_COMPLETED]},
        matches=lambda _types, _type: False,  # recording's events come by publish()
        signature_scheme="timestamped",  # after a rotation all secrets sign
        standard_alone=True,
        headers=lambda _context: {},
        prepare=prepare,
        # Four attempts in twelve minutes (SEP-3415, "Delivery model").
        retry=RetryPolicy(delays=(30, 120, 570), jitter=0.05),
        # 410: this delivery is not wanted; 413: it is too large. Neither ends the subscription.
        final_statuses=frozenset({410, 413}),
        timeout_s=5,
        url_policy=UrlPolicy.public_https(settings.BASE_URL, local=settings.LOCAL),
        quota=settings.MCP_EVENTS_SUBSCRIPTIONS,
        endpoint_prefix="mcpe_",
        delivery_prefix="mcpd_",
        names_of=owners.names_of,
    )
    profiles.register(events)
    profiles.register(replace(profiles.get(PROFILE), published=publish))


def _live() -> QuerySet[EventSubscription]:
    """Leave out those whose time is over, also before the upkeep has ended them."""
    return EventSubscription.objects.filter(expires_at__gt=timezone.now())


def publish(event: Event, _data: Mapping[str, Any]) -> None:
    """Create the deliveries of an event that was just published, in its transaction."""
    if event.type == SUMMARY_COMPLETED:
        rows = _live().filter(account=row_id(event.owner)).order_by("pk")
        publishing.deliver(event, list(rows.values_list("pk", flat=True)))


def prepare(sendings: Sequence[Sending]) -> dict[int, Prepared | str]:
    """Return what is sent by these attempts, or why nothing is; called for each claim.

    Access is checked here again: what the account has revoked meanwhile gets nothing.
    """
    rows = _live().in_bulk({sending.endpoint for sending in sendings})
    connected = clients.connected({row.connection for row in rows.values()})
    prepared: dict[int, Prepared | str] = {}
    for sending in sendings:
        row = rows.get(sending.endpoint)
        if row is None:
            prepared[sending.delivery] = ENDED
        elif row.connection not in connected:
            prepared[sending.delivery] = NOT_CONNECTED
        else:
            headers = {"X-MCP-Subscription-Id": row.subscription_id}
            prepared[sending.delivery] = Prepared(occurrence(sending.body), headers)
    return prepared


@lru_cache(maxsize=8)
def occurrence(body: bytes) -> bytes:
    """Return a stored event as clients get it; many subscriptions get the same one.

    `cursor` is null: there is no replay (SEP-3415, "Cursor lifecycle").
    """
    stored = orjson.loads(body)
    return orjson.dumps(
        {
            "eventId": stored["id"],
            "name": stored["type"],
            "timestamp": stored["created_at"],
            "data": payload(stored["data"]),
            "cursor": None,
        }
    )


def payload(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a client gets of an event: all but the transcript, which a tool reads.

    Summaries that are too large are left out too, and `omitted` says so.
    """
    kept = {name: value for name, value in data.items() if name != "transcript"}
    if len(orjson.dumps(kept)) > MAX_BYTES - ENVELOPE_BYTES:
        del kept["summaries"]
        kept[OMITTED] = ["summaries"]
    return kept
