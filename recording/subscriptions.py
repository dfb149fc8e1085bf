"""Webhook subscriptions of an account, what was sent to them, and samples of events."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import orjson
from django.contrib.auth.models import AbstractUser
from django.utils import timezone

from recording.accounts.owners import InactiveAccountError, active_account, owner_id
from recording.authentication import refused
from recording.webhooks import EVENT_TYPES, PING, PROFILE
from webhooks_core import profiles
from webhooks_core.api.subscriptions import SubscriptionService
from webhooks_core.ids import public_id
from webhooks_core.models import Endpoint, Event
from webhooks_core.profiles import EventContext, NewEvent
from webhooks_core.times import iso


class Subscriptions(SubscriptionService):
    """The subscriptions of an account."""

    profile = PROFILE
    quota_error = (
        "An account has at most {quota} subscriptions, disabled ones included; "
        "delete one first."
    )

    def __init__(self, account: AbstractUser) -> None:
        super().__init__(owner_id(account), by=account.get_username())
        self.account = account

    @contextmanager
    def creating(self) -> Iterator[None]:
        try:
            with active_account(self.account):
                yield
        except InactiveAccountError as error:  # since the token was checked
            raise refused("/v1/webhooks") from error

    def changes(self, current: Endpoint, fields: dict[str, Any]) -> dict[str, Any]:
        # An empty url keeps the current one. Every change counts as one, for `updated_at`.
        return fields | {"url": fields["url"] or current.url}

    def ping(self, subscription: Endpoint) -> NewEvent:
        return NewEvent(PING, {"endpoint_id": subscription.public_id})


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
