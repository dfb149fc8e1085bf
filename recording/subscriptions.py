"""Webhook subscriptions of an account: create, change, delete, test, and what became of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import orjson
from django.contrib.auth.models import AbstractUser
from django.db import transaction
from django.utils import timezone

from recording.activity import active_account
from recording.errors import (
    BadRequestError,
    NotFoundError,
    TooManyRequestsError,
)
from recording.webhooks import EVENT_TYPES, PING, PROFILE
from webhooks_core import endpoints, profiles, publishing, url_access
from webhooks_core.endpoints import Created, QuotaExceededError
from webhooks_core.formats import iso, public_id
from webhooks_core.models import Delivery, Endpoint, Event
from webhooks_core.network.url_policy import UrlRefusedError
from webhooks_core.profiles import EventContext

ENDPOINT_ID = re.compile(r"ep_[0-9a-v]{26}")

DELIVERY_COLUMNS = (
    "public_id",
    "event__public_id",
    "event__type",
    "status",
    "attempts",
    "last_error",
    "delivered_at",
    "created_at",
)


def owner_id(account: AbstractUser) -> str:
    """Return the name by which the engine knows an account."""
    return str(account.pk)


# ── What the caller sent ────────────────────────────────────────────────────────────


def read_events(body: Mapping[str, Any]) -> list[str]:
    """Return the event types of a body, each once, in the order given; [] when omitted.

    Raises BadRequestError.
    """
    events = body.get("events", [])
    if not isinstance(events, list):
        raise BadRequestError("events must be an array of strings.")
    for event in events:
        if not isinstance(event, str):
            raise BadRequestError("events must be an array of strings.")
        check_event_type("events", event)
    return list(dict.fromkeys(events))


def check_event_type(field: str, event: str) -> None:
    """Accept a known event type or raise BadRequestError."""
    if event not in EVENT_TYPES:
        known = ", ".join(EVENT_TYPES)
        raise BadRequestError(f"{field}: unknown event type; known are {known}.")


def read_url(body: Mapping[str, Any]) -> str:
    """Return the url of a body, unchecked; "" when omitted. Raises BadRequestError."""
    url = body.get("url", "")
    if not isinstance(url, str):
        raise BadRequestError("url must be a string.")
    return url


def check_url(url: str, *, trusted: bool = False) -> None:
    """Accept a URL to deliver to or raise BadRequestError. Asks the resolver: may take 2 s."""
    try:
        url_access.check_url(PROFILE, url, trusted=trusted)
    except UrlRefusedError as error:
        raise BadRequestError(f"{error}.") from error


# ── Use cases ───────────────────────────────────────────────────────────────────────


def find(account: AbstractUser, endpoint_id: str) -> Endpoint:
    """Return a subscription of the account. Raises NotFoundError, also for another's."""
    return _get(account, endpoint_id, lock=False)


def _get(account: AbstractUser, endpoint_id: str, *, lock: bool) -> Endpoint:
    rows = Endpoint.objects.of(PROFILE, owner_id(account))
    rows = rows.select_for_update() if lock else rows
    found = None
    # What cannot be an id is never asked for: PostgreSQL refuses a NUL.
    if ENDPOINT_ID.fullmatch(endpoint_id):
        found = rows.filter(public_id=endpoint_id).first()
    if found is None:
        raise NotFoundError("There is no such subscription.")
    return found


def create(*, account: AbstractUser, url: str, events: list[str]) -> Created:
    """Create a subscription. Raises BadRequestError, TooManyRequestsError.

    InactiveAccountError tells that the account was deleted or switched off meanwhile.
    """
    if not url:
        raise BadRequestError("url is required.")
    check_url(url)
    try:
        with active_account(account):
            return endpoints.create(
                profile=PROFILE, owner=owner_id(account), url=url, event_types=events
            )
    except QuotaExceededError as error:
        quota = profiles.get(PROFILE).quota
        raise TooManyRequestsError(
            f"An account has at most {quota} subscriptions, disabled ones included; "
            "delete one first."
        ) from error


def update(
    *, account: AbstractUser, subscription: Endpoint, url: str, events: list[str]
) -> Endpoint:
    """Replace the events, and the url unless it is ""; return the subscription.

    Raises BadRequestError, or NotFoundError when it was deleted meanwhile.
    """
    if url and url != subscription.url:
        check_url(url, trusted=subscription.trusted)
    with transaction.atomic():
        current = _get(account, subscription.public_id, lock=True)
        return endpoints.update(current, url=url or current.url, event_types=events)


def delete(subscription: Endpoint) -> None:
    """Delete a subscription. Raises NotFoundError when another call did so first."""
    if not endpoints.delete(subscription):
        raise NotFoundError("There is no such subscription.")


def send_test(*, account: AbstractUser, endpoint_id: str) -> Event:
    """Queue a ping for this subscription alone, whatever its events; return the event.

    The event of a disabled subscription is stored and never sent. Raises NotFoundError.
    """
    with transaction.atomic():
        # Locked: a deletion comes before the ping or ends it.
        current = _get(account, endpoint_id, lock=True)
        return publishing.publish_test(
            current, event_type=PING, data={"endpoint_id": current.public_id}
        )


def recent_events(*, account: AbstractUser, event_type: str, limit: int) -> list[bytes]:
    """Return the bodies of the account's newest events of a type, newest first.

    When there are none: one synthetic body whose id starts with `evt_sample_`.
    """
    stored = (
        Event.objects.filter(profile=PROFILE, owner=owner_id(account), type=event_type)
        .order_by("-id")
        .values_list("body", flat=True)[:limit]
    )
    return [bytes(body) for body in stored] or [_synthetic(account, event_type)]


def _synthetic(account: AbstractUser, event_type: str) -> bytes:
    happening = EventContext(
        id=public_id("evt_sample_"),
        type=event_type,
        owner=owner_id(account),
        created_at=iso(timezone.now()),
        data=EVENT_TYPES[event_type].sample,
        metadata={},
    )
    return orjson.dumps(profiles.get(PROFILE).envelope(happening))


# ── What the caller sees ────────────────────────────────────────────────────────────


def subscriptions(account: AbstractUser) -> list[dict[str, Any]]:
    """Return the account's subscriptions, newest first."""
    rows = Endpoint.objects.of(PROFILE, owner_id(account)).order_by("-id")
    return [shown(endpoint) for endpoint in rows]


def shown(endpoint: Endpoint) -> dict[str, Any]:
    """Return a subscription as lists and updates show it (recording, "Subscription")."""
    return {
        "id": endpoint.public_id,
        "url": endpoint.url,
        "events": endpoint.event_types,
        "status": endpoint.status,
        "consecutive_failures": endpoint.consecutive_failures,
        "created_at": iso(endpoint.created_at),
        "updated_at": iso(_updated_at(endpoint)),
    }


def _updated_at(endpoint: Endpoint) -> datetime:
    """Return when a subscription was last changed or tried (recording, "updated_at")."""
    return max(endpoint.updated_at, endpoint.last_attempt_at or endpoint.updated_at)


def shown_once(created: Created) -> dict[str, Any]:
    """Return a new subscription with its secret (recording, "Create response")."""
    endpoint = created.endpoint
    return {
        "endpoint_id": endpoint.public_id,
        "secret": created.secret,
        "url": endpoint.url,
        "events": endpoint.event_types,
        "status": endpoint.status,
    }


def deliveries(
    subscription: Endpoint, *, page: int, page_size: int
) -> list[dict[str, Any]]:
    """Return one page of delivery records, newest first (recording, "Delivery record")."""
    rows = Delivery.objects.page(subscription, number=page, size=page_size)
    return [
        {
            "id": public_id,
            "endpoint_id": subscription.public_id,
            "event_id": event_id,
            "event_type": event_type,
            "status": status,
            "attempts": attempts,
            "last_error": last_error,
            "delivered_at": iso(delivered_at) if delivered_at else "",
            "created_at": iso(created_at),
        }
        for (
            public_id,
            event_id,
            event_type,
            status,
            attempts,
            last_error,
            delivered_at,
            created_at,
        ) in rows.values_list(*DELIVERY_COLUMNS)
    ]
