"""Webhook subscriptions of a tenant: create, change, delete, test, and their deliveries."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from gateway.errors import (
    BadRequestError,
    ConflictError,
    NotFoundError,
    TooManyRequestsError,
)
from gateway.events import Origin
from gateway.webhooks import PROFILE, TEST
from webhooks_core import endpoints, profiles, publishing
from webhooks_core.endpoints import Created, QuotaExceededError
from webhooks_core.models import Delivery, Endpoint, Event
from webhooks_core.network import url_access
from webhooks_core.network.url_policy import UrlRefusedError

SUBSCRIPTION_ID = re.compile(r"whsub_[0-9a-v]{26}")
DELIVERY_COLUMNS = (
    "public_id",
    "event__public_id",
    "event__type",
    "status",
    "attempts",
    "last_error",
    "next_attempt_at",
    "delivered_at",
    "created_at",
)


def find(tenant: str, subscription_id: str, *, lock: bool = False) -> Endpoint:
    """Return a subscription of the tenant. Raises NotFoundError, also for another's."""
    rows = Endpoint.objects.of(PROFILE, tenant)
    rows = rows.select_for_update() if lock else rows
    subscription = None
    # No query for what cannot be an id: PostgreSQL refuses a NUL.
    if SUBSCRIPTION_ID.fullmatch(subscription_id):
        subscription = rows.filter(public_id=subscription_id).first()
    if subscription is None:
        raise NotFoundError("There is no such subscription.")
    return subscription


def check_changeable(subscription: Endpoint) -> None:
    """Raise ConflictError for a subscription that callers may not change."""
    if subscription.static_key is not None:
        raise ConflictError(
            "This subscription is part of the gateway's configuration and read-only."
        )


def create(*, tenant: str, url: str, **fields: Any) -> Created:
    """Create a subscription. Raises BadRequestError, TooManyRequestsError."""
    _check_url(url)
    fields = {"event_types": [], **fields}
    try:
        return endpoints.create(profile=PROFILE, owner=tenant, url=url, **fields)
    except QuotaExceededError as error:
        raise TooManyRequestsError(
            f"A tenant has at most {profiles.get(PROFILE).quota} subscriptions; "
            "delete one first."
        ) from error


def _check_url(url: str, *, trusted: bool = False) -> None:
    """Raise BadRequestError for a URL that is refused. Queries the resolver: up to 2 s."""
    try:
        url_access.check_url(PROFILE, url, trusted=trusted)
    except UrlRefusedError as error:
        raise BadRequestError(f"{error}.") from error


def update(
    *, tenant: str, subscription: Endpoint, fields: Mapping[str, Any]
) -> Endpoint:
    """Change the fields that are given; return the subscription.

    Raises BadRequestError, or NotFoundError when it was deleted meanwhile.
    """
    if "url" in fields and fields["url"] != subscription.url:
        _check_url(fields["url"], trusted=subscription.trusted)
    with transaction.atomic():
        current = find(tenant, subscription.public_id, lock=True)
        changed = {
            name: value
            for name, value in fields.items()
            if getattr(current, name) != value
        }
        return endpoints.update(current, **changed) if changed else current


def delete(subscription: Endpoint) -> None:
    """Delete a subscription. Raises NotFoundError when another call deleted it."""
    if not endpoints.delete(subscription):
        raise NotFoundError("There is no such subscription.")


def send_test(*, origin: Origin, subscription_id: str) -> Event:
    """Queue a test event for this subscription alone, with any event types.

    Raises NotFoundError, or ConflictError when nothing would be sent.
    """
    with transaction.atomic():
        # Locked, so that what fails deliveries comes before the event or fails this one.
        current = find(origin.tenant, subscription_id, lock=True)
        if not profiles.get(PROFILE).enabled:
            raise ConflictError("Webhooks are switched off in the configuration.")
        if not current.is_subscribed:
            raise ConflictError("The subscription is inactive.")
        return publishing.publish_test(
            current,
            event_type=TEST,
            data={"subscription_id": current.public_id},
            **origin.metadata,
        )


def of_tenant(tenant: str, *, page: int, page_size: int | None) -> QuerySet[Endpoint]:
    """Return the tenant's subscriptions, newest first; all of them without a page size."""
    rows = Endpoint.objects.of(PROFILE, tenant).order_by("-id")
    if page_size is not None:
        rows = rows[(page - 1) * page_size : page * page_size]
    return rows


def deliveries(subscription: Endpoint, *, page: int, page_size: int) -> Any:
    """Return one page of a subscription's deliveries as rows, newest first."""
    rows = Delivery.objects.page(subscription, number=page, size=page_size)
    return rows.values(*DELIVERY_COLUMNS)
