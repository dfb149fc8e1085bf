"""Signed webhooks on the catalogue's changes: event types, headers, retries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from webhooks_core import publishing
from webhooks_core.dispatch.retry import RetryPolicy
from webhooks_core.network.url_policy import UrlPolicy
from webhooks_core.profiles import EventType, SigningContext, WebhookProfile

PROFILE = "catalog"
OWNER = "catalog"  # one catalogue, one subscriber list

BOOK = {"id": "7", "name": "Emma", "pageCount": 474, "authorId": 1, "categoryId": None}
AUTHOR = {"id": "1", "firstName": "Jane", "lastName": "Austen"}
CATEGORY = {"id": "2", "name": "Novel", "description": "Long prose fiction."}

EVENT_TYPES: Mapping[str, EventType] = {
    name: EventType(name, description, sample=sample)
    for name, description, sample in (
        ("book.created", "A book was added.", BOOK),
        ("book.updated", "Every field of a book was replaced.", BOOK),
        ("book.deleted", "A book was deleted.", {"id": "7"}),
        ("author.created", "An author was added.", AUTHOR),
        ("author.updated", "An author was renamed.", AUTHOR),
        ("author.deleted", "An author was deleted.", {"id": "1"}),
        ("category.created", "A category was added.", CATEGORY),
    )
}


def publish(event_type: str, data: dict[str, Any]) -> None:
    """Publish a change in the caller's transaction."""
    publishing.publish(profile=PROFILE, owner=OWNER, event_type=event_type, data=data)


def matches(event_types: Sequence[str], event_type: str) -> bool:
    """Return True if an endpoint's list includes a type; an empty list includes all."""
    return not event_types or event_type in event_types


def headers(context: SigningContext) -> dict[str, str]:
    """Return the headers of one attempt in addition to its signature."""
    return {
        "X-Catalog-Event": context.event_type,
        "X-Catalog-Delivery": context.delivery_id,
    }


def profile(*, base_url: str, local: bool) -> WebhookProfile:
    """Return the profile that AppConfig.ready registers."""
    return WebhookProfile(
        name=PROFILE,
        event_types=EVENT_TYPES,
        matches=matches,
        # During a rotation both secrets sign.
        signature_scheme="timestamped",
        header_prefix="X-Catalog",
        headers=headers,
        retry=RetryPolicy(delays=(60, 300, 900, 3600), jitter=0.1),
        timeout_s=5,
        url_policy=UrlPolicy.public_https(base_url, local=local),
        quota=20,
        endpoint_prefix="ep_",
        disable_after=20,
    )
