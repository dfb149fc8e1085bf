"""The gateway's webhook profile: event types, envelope, headers, limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gateway.configuration.rules import url_policy
from gateway.configuration.shapes import WebhookSettings
from gateway.event_types import EVENT_TYPES, OPERATIONAL, TEST
from webhooks_core import profiles
from webhooks_core.profiles import (
    EventContext,
    EventType,
    RetryPolicy,
    SigningContext,
    WebhookProfile,
)

PROFILE = "gateway"


def subscribable() -> list[str]:
    """Return the event types that subscriptions may name: the contract's and the declared ones."""
    known = profiles.find(PROFILE)
    kinds = known.event_types.values() if known else EVENT_TYPES.values()
    return [kind.name for kind in kinds if kind.subscribable]


def matches(event_types: Sequence[str], event_type: str) -> bool:
    """Return True if a subscription receives a type.

    An empty list means all but the test and the operational events.
    """
    if not event_types:
        return event_type != TEST and event_type not in OPERATIONAL
    return event_type != TEST and event_type in event_types


def envelope(event: EventContext) -> dict[str, Any]:
    """Return the body of a delivery (gateway, "Webhook event envelope")."""
    return {
        "id": event.id,
        "type": event.type,
        "tenant_id": event.owner,
        "created_at": event.created_at,
        "data": event.data,
        "request_id": event.metadata["request_id"],
        "principal_id": event.metadata["principal_id"],
        "trace_id": event.metadata["trace_id"],
    }


def headers(context: SigningContext) -> dict[str, str]:
    """Return the headers of one attempt beside its signature (gateway, "Delivery headers")."""
    return {
        "X-Gateway-Timestamp": str(context.timestamp),
        "X-Gateway-Event": context.event_type,
        "X-Gateway-Delivery": context.event_id,
    }


def profile(
    configured: WebhookSettings, *, quota: int, base_url: str, local: bool
) -> WebhookProfile:
    """Return the profile that AppConfig.ready registers."""
    from gateway import alerts  # needs the models, which are loaded by then

    declared = {
        kind.name: EventType(kind.name, kind.description, kind.sample)
        for kind in configured.event_types
    }
    return WebhookProfile(
        name=PROFILE,
        event_types=EVENT_TYPES | declared,
        matches=matches,
        envelope=envelope,
        signature_scheme="timestamped",
        header_prefix="X-Gateway",
        headers=headers,
        retry=RetryPolicy.exponential(
            base=configured.base_backoff_s,
            cap=configured.max_backoff_s,
            max_attempts=configured.max_attempts,
        ),
        timeout_s=configured.timeout_s,
        url_policy=url_policy(base_url=base_url, local=local),
        quota=quota,
        endpoint_prefix="whsub_",
        inactive_fails_pending=True,
        enabled=configured.enabled,
        on_notice=alerts.on_notice,
        sample_metadata={
            "request_id": "5f0c7a52e1d84b0f9d5c8f6a3b2e1d07",
            "principal_id": "ada",
            "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
        },
    )
