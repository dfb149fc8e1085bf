"""Webhook subscriptions of a tenant: create, change, delete, test, and what became of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from django.conf import settings
from django.db import transaction

from gateway import events, static_subscriptions
from gateway.errors import (
    BadRequestError,
    ConflictError,
    NotFoundError,
    TooManyRequestsError,
)
from gateway.events import Origin
from gateway.webhooks import PROFILE, TEST
from webhooks_core import endpoints, profiles, publishing, url_access
from webhooks_core.encryption import MASK
from webhooks_core.endpoints import Created, QuotaExceededError
from webhooks_core.formats import iso
from webhooks_core.models import Delivery, Endpoint, Event
from webhooks_core.network.url_policy import UrlRefusedError

SUBSCRIPTION_ID = re.compile(r"whsub_[0-9a-v]{26}")
MAX_DESCRIPTION = 1000
MAX_SECRET = 256
STATUS = {
    Delivery.Status.PENDING: "attempting",
    Delivery.Status.DELIVERED: "delivered",
    Delivery.Status.FAILED: "failed",
}
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


# ── What the caller sent ────────────────────────────────────────────────────────────


def _url(value: Any) -> str:
    if not isinstance(value, str):
        raise BadRequestError("url must be a string.")
    if not value:
        raise BadRequestError("url must not be empty.")
    return value


def _event_types(value: Any) -> list[str]:
    """Return event types, each once, in the order given."""
    known = events.subscribable()
    if not isinstance(value, list) or not all(isinstance(it, str) for it in value):
        raise BadRequestError("event_types must be an array of strings.")
    if not set(value) <= set(known):
        raise BadRequestError(
            f"event_types: unknown event type; known are {', '.join(known)}."
        )
    return list(dict.fromkeys(value))


def _description(value: Any) -> str:
    if not isinstance(value, str):
        raise BadRequestError("description must be a string.")
    if len(value) > MAX_DESCRIPTION:
        raise BadRequestError(
            f"description is longer than {MAX_DESCRIPTION} characters."
        )
    if "\x00" in value:
        raise BadRequestError("description must not hold NUL.")
    return value


def _active(value: Any) -> bool:
    if not isinstance(value, bool):
        raise BadRequestError("active must be true or false.")
    return value


FIELDS: Mapping[str, Callable[[Any], Any]] = {
    "url": _url,
    "event_types": _event_types,
    "description": _description,
    "active": _active,
}


def read_fields(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a body that are there, each of the right kind.

    Unknown fields are ignored. Raises BadRequestError.
    """
    return {name: read(body[name]) for name, read in FIELDS.items() if name in body}


def read_secret(body: Mapping[str, Any]) -> str | None:
    """Return a supplied secret; None means that one is made. Raises BadRequestError."""
    secret, minimum = body.get("secret"), settings.GATEWAY_MIN_SECRET_LENGTH
    if secret is None:
        return None
    if not isinstance(secret, str):
        raise BadRequestError("secret must be a string.")
    if not minimum <= len(secret) <= MAX_SECRET:
        raise BadRequestError(f"secret must have {minimum} to {MAX_SECRET} characters.")
    if not (secret.isascii() and secret.isprintable()):
        raise BadRequestError("secret must be printable ASCII.")
    return secret


def check_url(url: str, *, trusted: bool = False) -> None:
    """Accept a URL to deliver to or raise BadRequestError. Asks the resolver: may take 2 s."""
    try:
        url_access.check_url(PROFILE, url, trusted=trusted)
    except UrlRefusedError as error:
        raise BadRequestError(f"{error}.") from error


# ── Use cases ───────────────────────────────────────────────────────────────────────


def find(tenant: str, subscription_id: str) -> Endpoint:
    """Return a subscription of the tenant. Raises NotFoundError, also for another's."""
    return _get(tenant, subscription_id, lock=False)


def _get(tenant: str, subscription_id: str, *, lock: bool) -> Endpoint:
    static_subscriptions.synchronise_once()
    rows = Endpoint.objects.of(PROFILE, tenant)
    rows = rows.select_for_update() if lock else rows
    found = None
    # What cannot be an id is never asked for: PostgreSQL refuses a NUL.
    if SUBSCRIPTION_ID.fullmatch(subscription_id):
        found = rows.filter(public_id=subscription_id).first()
    if found is None:
        raise NotFoundError("There is no such subscription.")
    return found


def check_changeable(subscription: Endpoint) -> None:
    """Accept a subscription that callers may change. Raises ConflictError."""
    if subscription.static_key is not None:
        raise ConflictError(
            "This subscription is part of the gateway's configuration and read-only."
        )


def create(*, tenant: str, fields: Mapping[str, Any], secret: str | None) -> Created:
    """Create a subscription. Raises BadRequestError, TooManyRequestsError."""
    if "url" not in fields:
        raise BadRequestError("url is required.")
    check_url(fields["url"])
    given = {"event_types": [], **fields}
    try:
        return endpoints.create(profile=PROFILE, owner=tenant, secret=secret, **given)
    except QuotaExceededError as error:
        raise TooManyRequestsError(
            f"A tenant has at most {profiles.get(PROFILE).quota} subscriptions; "
            "delete one first."
        ) from error


def update(
    *, tenant: str, subscription: Endpoint, fields: Mapping[str, Any]
) -> Endpoint:
    """Change the fields that are given; return the subscription.

    Raises BadRequestError, or NotFoundError when it was deleted meanwhile.
    """
    if "url" in fields and fields["url"] != subscription.url:
        check_url(fields["url"], trusted=subscription.trusted)
    with transaction.atomic():
        current = _get(tenant, subscription.public_id, lock=True)
        changed = {
            name: value
            for name, value in fields.items()
            if getattr(current, name) != value
        }
        return endpoints.update(current, **changed) if changed else current


def delete(subscription: Endpoint) -> None:
    """Delete a subscription. Raises NotFoundError when another call did so first."""
    if not endpoints.delete(subscription):
        raise NotFoundError("There is no such subscription.")


def send_test(*, origin: Origin, subscription_id: str) -> Event:
    """Queue a test event for this subscription alone, whatever its event types.

    Raises NotFoundError, or ConflictError when nothing would be sent.
    """
    with transaction.atomic():
        # Locked: whatever ends deliveries comes before the event or ends it.
        current = _get(origin.tenant, subscription_id, lock=True)
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


# ── What the caller sees ────────────────────────────────────────────────────────────


def subscriptions(
    tenant: str, *, page: int, page_size: int | None
) -> list[dict[str, Any]]:
    """Return the tenant's subscriptions, newest first; all of them without a page size."""
    static_subscriptions.synchronise_once()
    rows = Endpoint.objects.of(PROFILE, tenant).order_by("-id")
    if page_size is not None:
        rows = rows[(page - 1) * page_size : page * page_size]
    return [shown(endpoint) for endpoint in rows]


def shown(endpoint: Endpoint, *, secret: str = MASK) -> dict[str, Any]:
    """Return a subscription as the API shows it; only its creation passes the secret."""
    attempted_at = endpoint.last_attempt_at
    return {
        "id": endpoint.public_id,
        "url": endpoint.url,
        "event_types": endpoint.event_types,
        "description": endpoint.description,
        "secret": secret,
        "active": endpoint.active,
        "created_at": iso(endpoint.created_at),
        "updated_at": iso(endpoint.updated_at),
        "last_attempt_at": iso(attempted_at) if attempted_at else None,
    }


def deliveries(
    subscription: Endpoint, *, page: int, page_size: int
) -> list[dict[str, Any]]:
    """Return one page of what was sent to a subscription, newest first."""
    rows = Delivery.objects.page(subscription, number=page, size=page_size)
    return [_delivery(row) for row in rows.values(*DELIVERY_COLUMNS)]


def _delivery(row: Mapping[str, Any]) -> dict[str, Any]:
    next_attempt_at, delivered_at = row["next_attempt_at"], row["delivered_at"]
    return {
        "id": row["public_id"],
        "event_id": row["event__public_id"],
        "event_type": row["event__type"],
        "status": STATUS[row["status"]],
        "attempts": row["attempts"],
        "last_error": row["last_error"],
        "next_attempt_at": iso(next_attempt_at) if next_attempt_at else None,
        "delivered_at": iso(delivered_at) if delivered_at else None,
        "created_at": iso(row["created_at"]),
    }
