"""Why an event did or did not reach an endpoint: one answer, in words."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

import orjson
from django.db.models import Q
from django.utils import timezone

from webhooks_core import filters, ids, profiles
from webhooks_core.conf import webhook_settings
from webhooks_core.models import Delivery, Endpoint, Event, SkippedEvent
from webhooks_core.owners.endpoint_state import MAX_COUNTED, told


class Answer(StrEnum):
    UNKNOWN = "unknown"  # there is no such event of this owner
    EXPIRED = "expired"  # it was removed for its age
    NOT_SUBSCRIBED = "not_subscribed"
    FILTERED = "filtered"  # by the filter that the endpoint has today
    SKIPPED = "skipped"
    WAITING = "waiting"
    DELIVERED = "delivered"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """The answer for one event and one endpoint; `position` counts what is sent before it."""

    answer: Answer
    sentence: str
    event: Event | None = None
    delivery: Delivery | None = None
    position: int | None = None
    next_attempt_at: datetime | None = None


def explain(endpoint: Endpoint, event_id: str, *, now: datetime | None = None) -> Why:
    """Say why an event did or did not reach an endpoint of the same owner."""
    now = now or timezone.now()
    event = _event(endpoint, event_id)
    if event is None:
        return _gone(endpoint, event_id, now)
    pair = Delivery.objects.filter(event=event, endpoint=endpoint)
    if deliveries := list(pair.order_by("-replay_number")[:100]):
        return _of_deliveries(endpoint, event, deliveries, now)
    if skipped := SkippedEvent.objects.filter(event=event, endpoint=endpoint).first():
        text = f"The endpoint was {skipped.reason} when it was published: skipped."
        return Why(answer=Answer.SKIPPED, sentence=text, event=event)
    return _not_subscribed(endpoint, event)


def _event(endpoint: Endpoint, event_id: str) -> Event | None:
    # No query for what cannot be an id: PostgreSQL refuses a NUL.
    if not ids.is_id(event_id, profiles.get(endpoint.profile).event_prefix):
        return None
    own = Event.objects.filter(profile=endpoint.profile, owner=endpoint.owner)
    return own.defer("body").filter(public_id=event_id).first()


def _gone(endpoint: Endpoint, event_id: str, now: datetime) -> Why:
    days = webhook_settings.RETENTION_DAYS
    if is_past_retention(event_id, profiles.get(endpoint.profile).event_prefix, now):
        text = f"Events are kept for {days} days: it was removed."
        return Why(answer=Answer.EXPIRED, sentence=text)
    return Why(answer=Answer.UNKNOWN, sentence="There is no event with this id.")


def is_past_retention(public_id: str, prefix: str, now: datetime) -> bool:
    """Return True for an id that was made so long ago that its row may have been removed."""
    kept = timedelta(days=webhook_settings.RETENTION_DAYS)
    return ids.is_id(public_id, prefix) and ids.created_at(public_id) < now - kept


def _not_subscribed(endpoint: Endpoint, event: Event) -> Why:
    receives = profiles.get(endpoint.profile).matches(endpoint.event_types, event.type)
    if event.created_at < endpoint.created_at:
        text = "It was published before the endpoint existed."
    elif not receives:
        text = f"The endpoint does not receive {event.type}."
    elif sentence := _filtered(endpoint, event):
        return Why(answer=Answer.FILTERED, sentence=sentence, event=event)
    else:
        text = f"The endpoint did not receive {event.type} when it was published."
    return Why(answer=Answer.NOT_SUBSCRIBED, sentence=text, event=event)


def _filtered(endpoint: Endpoint, event: Event) -> str:
    """Say which part of the filter an event fails; "" if there is none."""
    if endpoint.filter is None:
        return ""
    envelope = orjson.loads(bytes(event.body))
    reasons = filters.compiled(endpoint.filter).why(envelope)
    if not reasons:
        return ""
    first, more = reasons[0], len(reasons) - 1
    others = f", and {more} more" if more else ""
    return f"The filter of the endpoint does not match: {first}{others}."


def _of_deliveries(
    endpoint: Endpoint, event: Event, deliveries: list[Delivery], now: datetime
) -> Why:
    """Tell the best that came of several: delivered, then waiting, then the last failure."""
    by_status = {row.status: row for row in reversed(deliveries)}
    if delivered := by_status.get(Delivery.Status.DELIVERED):
        at = told(delivered.delivered_at or now, now)
        text = f"Delivered at {at}, attempt {delivered.attempts}."
        return Why(
            answer=Answer.DELIVERED, sentence=text, event=event, delivery=delivered
        )
    if waiting := by_status.get(Delivery.Status.PENDING):
        return _waiting(endpoint, event, waiting, now)
    failed = deliveries[0]
    text = f"Failed after {_attempts(failed)}: {failed.last_error}."
    return Why(answer=Answer.FAILED, sentence=text, event=event, delivery=failed)


def _waiting(
    endpoint: Endpoint, event: Event, delivery: Delivery, now: datetime
) -> Why:
    before = position(endpoint, delivery)
    return Why(
        answer=Answer.WAITING,
        sentence=waiting_reason(endpoint, delivery, before, now),
        event=event,
        delivery=delivery,
        position=before,
        next_attempt_at=delivery.next_attempt_at,
    )


def position(endpoint: Endpoint, delivery: Delivery) -> int:
    """Count what is sent before a waiting delivery, up to one more than MAX_COUNTED."""
    return 0 if delivery.claimed_by is not None else _before(endpoint, delivery)


def _before(endpoint: Endpoint, delivery: Delivery) -> int:
    if endpoint.in_order:
        earlier = Q(event__lt=delivery.event_id)
        earlier |= Q(event=delivery.event_id, pk__lt=delivery.pk)
    else:
        earlier = Q(next_attempt_at__lt=delivery.next_attempt_at)
        earlier |= Q(next_attempt_at=delivery.next_attempt_at, pk__lt=delivery.pk)
    rows = Delivery.objects.pending().filter(earlier, endpoint=endpoint)
    return rows[: MAX_COUNTED + 1].count()


def waiting_reason(
    endpoint: Endpoint, delivery: Delivery, before: int, now: datetime
) -> str:
    """Say why a pending delivery is not sent yet."""
    if delivery.claimed_by is not None:
        return "It is being sent."
    if not endpoint.is_receiving:
        return f"Waits: the endpoint is {_stopped(endpoint)}."
    if not profiles.get(endpoint.profile).enabled:
        return "Waits: webhooks are switched off in the configuration."
    at, is_later = delivery.next_attempt_at, not endpoint.is_hanging
    if is_later and at is not None and at > now:
        failed = f"{_attempts(delivery)} failed, {delivery.last_error}"
        return f"Waits until {told(at, now)}: {failed}."
    return (
        f"Waits: {_turn(endpoint)}{f', {before:,} before this one' if before else ''}."
    )


def _turn(endpoint: Endpoint) -> str:
    """Return what decides when the turn of a due delivery comes."""
    if endpoint.is_hanging:
        return "the endpoint hangs, one request at a time"
    if endpoint.in_order:
        return "strictly in order"
    if endpoint.rate_per_second is not None:
        return f"at most {endpoint.rate_per_second} per second"
    return "its turn comes next"


def _stopped(endpoint: Endpoint) -> str:
    facts = {
        "deleted": endpoint.deleted_at is not None,
        "disabled": endpoint.is_disabled,
        "inactive": not endpoint.active,
    }
    return next((state for state, is_so in facts.items() if is_so), "paused")


def _attempts(delivery: Delivery) -> str:
    return "1 attempt" if delivery.attempts == 1 else f"{delivery.attempts} attempts"
