"""The profile of the shop's webhooks: event types, envelope, headers, retries."""

from __future__ import annotations

from webhooks_core.dispatch.retry import RetryPolicy
from webhooks_core.network.url_policy import UrlPolicy
from webhooks_core.profiles import EventType, SigningContext, WebhookProfile

SOLD = EventType("item.sold", "An item was sold.", sample={"item": "lamp"})


def headers(context: SigningContext) -> dict[str, str]:
    """Return what is sent beside the signature."""
    return {
        "X-Shop-Event": context.event_type,
        "X-Shop-Delivery": context.delivery_id,
    }


def profile(*, base_url: str, local: bool) -> WebhookProfile:
    """Return the profile that AppConfig.ready registers."""
    return WebhookProfile(
        name="shop",
        event_types={SOLD.name: SOLD},
        matches=lambda types, event_type: not types or event_type in types,
        envelope=lambda event: {"id": event.id, "type": event.type, "data": event.data},
        signature_scheme="timestamped",
        header_prefix="X-Shop",
        headers=headers,
        retry=RetryPolicy(delays=(60, 300), jitter=0.1),
        timeout_s=5,
        url_policy=UrlPolicy.public_https(base_url, local=local),
        quota=20,
        endpoint_prefix="ep_",
    )
