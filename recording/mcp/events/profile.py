"""The webhook profile of MCP Events: Standard Webhooks, few retries, the receiver's word."""

from __future__ import annotations

from dataclasses import replace

from django.conf import settings

from recording.accounts import owners
from recording.mcp.events import delivering
from recording.mcp.events.conf import option
from recording.webhooks import (
    EVENT_TYPES,
    EVENTS_PROFILE,
    PROFILE,
    SUMMARY_COMPLETED,
)
from webhooks_core import profiles
from webhooks_core.dispatch.retry import RetryPolicy
from webhooks_core.network.url_policy import UrlPolicy
from webhooks_core.profiles import EventType, WebhookProfile
from webhooks_core.web.json_schema import AND_OTHERS, described, object_of

TERMINATED_TYPE = EventType(
    delivering.TERMINATED,
    "The subscription has ended; sent to it alone.",
    sample={"type": "terminated", "error": {"code": -32024, "message": "Forbidden"}},
    schema=object_of(
        type=described("Always `terminated`."),
        error=described("Why.", object_of() | AND_OTHERS),
    ),
    subscribable=False,
)


def profile(*, base_url: str, local: bool) -> WebhookProfile:
    """Return the profile that AppConfig.ready registers."""
    return WebhookProfile(
        name=EVENTS_PROFILE,
        event_types={
            SUMMARY_COMPLETED: EVENT_TYPES[SUMMARY_COMPLETED],
            delivering.TERMINATED: TERMINATED_TYPE,
        },
        # Recording's events come by delivering.publish, which knows the arguments.
        matches=lambda _types, _type: False,
        signature_scheme="timestamped",  # after a rotation all secrets sign
        standard_alone=True,
        headers=lambda _context: {},
        prepare=delivering.prepare,
        # Four attempts in twelve minutes (SEP-3415, "Delivery model").
        retry=RetryPolicy(delays=(30, 120, 570), jitter=0.05),
        # 410: this delivery is not wanted; 413: it is too large. Neither ends the subscription.
        final_statuses=frozenset({410, 413}),
        timeout_s=5,
        url_policy=UrlPolicy.public_https(base_url, local=local),
        quota=option("MCP_EVENTS_SUBSCRIPTIONS"),
        endpoint_prefix="mcpe_",
        event_prefix="msg_",
        delivery_prefix="mcpd_",
        describe_owners=owners.describe,
    )


def register() -> None:
    """Register the profile, and let it see what recording publishes; called from AppConfig.ready."""
    profiles.register(profile(base_url=settings.BASE_URL, local=settings.LOCAL))
    recording = profiles.get(PROFILE)
    profiles.register(replace(recording, published=delivering.publish))
