"""Webhook subscriptions of an account: create, change, delete, test, list deliveries."""

from __future__ import annotations

import re
from typing import Any

import orjson
from django.contrib.auth.models import AbstractUser
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from recording.accounts.locks import active_account
from recording.errors import BadRequestError, NotFoundError, TooManyRequestsError
from recording.webhooks import EVENT_TYPES, PING, PROFILE
from webhooks_core import endpoints, profiles, publishing, replays
from webhooks_core.endpoints import Created, QuotaExceededError
from webhooks_core.ids import public_id
from webhooks_core.models import Delivery, Endpoint, Event
from webhooks_core.network import url_access
from webhooks_core.network.url_policy import UrlRefusedError
from webhooks_core.profiles import EventContext
from webhooks_core.times import iso

ENDPOINT_ID = re.compile(r"ep_[0-9a-v]{26}")
DELIVERY_ID = re.compile(r"dlv_[0-9a-v]{26}")

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


def check_url(url: str, *, trusted: bool = False) -> None:
    """Accept a URL to deliver to or raise BadRequestError. Asks the resolver: may take 2 s."""
    try:
        url_access.check_url(PROFILE, url, trusted=trusted)
    except UrlRefusedError as error:
        raise BadRequestError(f"{error}.") from error


def find(account: AbstractUser, endpoint_id: str, *, lock: bool = False) -> Endpoint:
    """Return a subscription of the account. Raises NotFoundError, also for another's."""
    rows = Endpoint.objects.of(PROFILE, owner_id(account))
    rows = rows.select_for_update() if lock else rows
    # No query for a text that cannot be an id: PostgreSQL refuses a NUL.
    if ENDPOINT_ID.fullmatch(endpoint_id):
        subscription = rows.filter(public_id=endpoint_id).first()
        if subscription is not None:
            return subscription
    raise NotFoundError("There is no such subscription.")


def create(*, account: AbstractUser, url: str, event_types: list[str]) -> Created:
    """Create a subscription to a URL that `check_url` accepted.

    Raises TooManyRequestsError, or InactiveAccountError if the account was deleted or
    switched off meanwhile.
    """
    try:
        with active_account(account):
            return endpoints.create(
                profile=PROFILE,
                owner=owner_id(account),
                url=url,
                event_types=event_types,
            )
    except QuotaExceededError as error:
        quota = profiles.get(PROFILE).quota
        raise TooManyRequestsError(
            f"An account has at most {quota} subscriptions, disabled ones included; "
            "delete one first."
        ) from error


def update(
    *,
    account: AbstractUser,
    subscription: Endpoint,
    url: str,
    event_types: list[str] | None = None,
) -> Endpoint:
    """Replace the event types unless they are None, and the url unless it is "".

    A new url is one that `check_url` accepted. Raises NotFoundError if the subscription
    was deleted meanwhile.
    """
    with transaction.atomic():
        current = find(account, subscription.public_id, lock=True)
        fields: dict[str, Any] = {"url": url or current.url}
        if event_types is not None:
            fields["event_types"] = event_types
        return endpoints.update(current, **fields)


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
        current = find(account, endpoint_id, lock=True)
        return publishing.publish_test(
            current, event_type=PING, data={"endpoint_id": current.public_id}
        )


def resend(*, account: AbstractUser, endpoint_id: str, delivery_id: str) -> Delivery:
    """Queue the event of a delivery again; return the delivery that is sent.

    While one is pending, it is that one, due now. Raises NotFoundError, or BadRequestError when
    nothing would be sent.
    """
    subscription = find(account, endpoint_id)
    rows = Delivery.objects.filter(endpoint=subscription).select_related("endpoint")
    is_id = DELIVERY_ID.fullmatch(delivery_id)
    delivery = rows.filter(public_id=delivery_id).first() if is_id else None
    if delivery is None:
        raise NotFoundError("There is no such delivery.")
    try:
        return replays.replay(delivery)
    except replays.NotSubscribedError as error:
        raise BadRequestError(
            "The subscription is disabled: nothing would be sent."
        ) from error


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
    context = EventContext(
        id=public_id("evt_sample_"),
        type=event_type,
        owner=owner_id(account),
        created_at=iso(timezone.now()),
        data=EVENT_TYPES[event_type].sample,
        metadata={},
    )
    return orjson.dumps(profiles.get(PROFILE).envelope(context))


def newest_first(account: AbstractUser) -> QuerySet[Endpoint]:
    """Return the account's subscriptions, newest first."""
    return Endpoint.objects.of(PROFILE, owner_id(account)).order_by("-id")


def deliveries(
    subscription: Endpoint, *, page: int, page_size: int
) -> list[dict[str, Any]]:
    """Return one page of delivery records, newest first (recording, "Delivery record")."""
    rows = Delivery.objects.page(subscription, number=page, size=page_size)
    endpoint_id = {"endpoint_id": subscription.public_id}
    return [row | endpoint_id for row in rows.values(*DELIVERY_COLUMNS)]
