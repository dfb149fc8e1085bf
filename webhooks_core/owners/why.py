"""Why an event did or did not reach an endpoint: one answer, in words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

import orjson
from django.db.models import Max, OuterRef, Q
from django.utils import timezone

from webhooks_core import filters, ids, profiles
from webhooks_core.conf import webhook_settings
from webhooks_core.models import Delivery, Endpoint, Event, SkippedEvent
from webhooks_core.models.lookups import CountOf
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


def explain(endpoint: Endpoint, event_id: str) -> Why:
    """Say why an event did or did not reach an endpoint of the same owner."""
    return explain_all([endpoint], event_id)[endpoint.pk]


def explain_all(
    endpoints: Sequence[Endpoint],
    event_id: str,
    *,
    with_values: bool = True,
) -> dict[int, Why]:
    """As explain() for endpoints of one owner, by their keys and a constant number of queries.

    Without `with_values` no sentence holds anything of the event's data.
    """
    if not endpoints:
        return {}
    now = timezone.now()
    if (event := _event(endpoints[0], event_id)) is None:
        gone = _gone(endpoints[0], event_id, now)
        return {endpoint.pk: gone for endpoint in endpoints}
    decisive = _decisive(event, endpoints)
    before = positions(
        (endpoint, decisive[endpoint.pk])
        for endpoint in endpoints
        if endpoint.pk in decisive
    )
    skipped = SkippedEvent.objects.filter(event=event, endpoint__in=endpoints)
    reasons = dict(skipped.values_list("endpoint", "reason"))
    return {
        endpoint.pk: _of_delivery(endpoint, event, delivery, before, now)
        if (delivery := decisive.get(endpoint.pk))
        else _without_delivery(
            endpoint, event, reasons.get(endpoint.pk), with_values=with_values
        )
        for endpoint in endpoints
    }


# Of several deliveries, the first status that one has tells what became of the event.
DECISIVE = (
    Delivery.Status.DELIVERED,
    Delivery.Status.PENDING,
    Delivery.Status.FAILED,
)


def _decisive(event: Event, endpoints: Sequence[Endpoint]) -> dict[int, Delivery]:
    """Return by endpoint the newest delivery with the first of the statuses that there are."""
    rows = Delivery.objects.filter(event=event, endpoint__in=endpoints).order_by()
    newest = rows.values_list("endpoint", "status").annotate(newest=Max("pk"))
    by_endpoint: dict[int, dict[int, int]] = defaultdict(dict)
    for endpoint, status, pk in newest:
        by_endpoint[endpoint][status] = pk
    pks = {
        endpoint: next(known[status] for status in DECISIVE if status in known)
        for endpoint, known in by_endpoint.items()
    }
    found = Delivery.objects.in_bulk(list(pks.values()))
    return {endpoint: found[pk] for endpoint, pk in pks.items() if pk in found}


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


def _without_delivery(
    endpoint: Endpoint, event: Event, skipped: str | None, *, with_values: bool
) -> Why:
    """Say why there is no delivery; `skipped` is why the event skipped the endpoint, if it did."""
    if skipped is None:
        return _not_subscribed(endpoint, event, with_values=with_values)
    text = f"The endpoint was {skipped} when it was published: skipped."
    return Why(answer=Answer.SKIPPED, sentence=text, event=event)


def _not_subscribed(endpoint: Endpoint, event: Event, *, with_values: bool) -> Why:
    receives = profiles.get(endpoint.profile).matches(endpoint.event_types, event.type)
    if event.created_at < endpoint.created_at:
        text = "It was published before the endpoint existed."
    elif not receives:
        text = f"The endpoint does not receive {event.type}."
    elif sentence := _filtered(endpoint, event, with_values=with_values):
        return Why(answer=Answer.FILTERED, sentence=sentence, event=event)
    else:
        text = f"The endpoint did not receive {event.type} when it was published."
    return Why(answer=Answer.NOT_SUBSCRIBED, sentence=text, event=event)


def _filtered(endpoint: Endpoint, event: Event, *, with_values: bool) -> str:
    """Say which part of the filter an event fails; "" if there is none."""
    if endpoint.filter is None:
        return ""
    envelope = orjson.loads(bytes(event.body))
    reasons = filters.compiled(endpoint.filter).why(envelope)
    if not reasons:
        return ""
    if not with_values:
        return "The filter of the endpoint does not match."
    first, more = reasons[0], len(reasons) - 1
    others = f", and {more} more" if more else ""
    return f"The filter of the endpoint does not match: {first}{others}."


def _of_delivery(
    endpoint: Endpoint,
    event: Event,
    delivery: Delivery,
    before: Mapping[int, int],
    now: datetime,
) -> Why:
    if delivery.status == Delivery.Status.PENDING:
        return Why(
            answer=Answer.WAITING,
            sentence=waiting_reason(endpoint, delivery, before[delivery.pk], now),
            event=event,
            delivery=delivery,
            position=before[delivery.pk],
            next_attempt_at=delivery.next_attempt_at,
        )
    if delivery.status == Delivery.Status.DELIVERED:
        at = told(delivery.delivered_at or now, now)
        answer, text = (
            Answer.DELIVERED,
            f"Delivered at {at}, attempt {delivery.attempts}.",
        )
    else:
        text = f"Failed after {_attempts(delivery)}: {delivery.last_error}."
        answer = Answer.FAILED
    return Why(answer=answer, sentence=text, event=event, delivery=delivery)


def waits(delivery: Delivery, now: datetime) -> str:
    """Say why a delivery, read with its endpoint, is not sent yet; "" for one that has ended."""
    if delivery.status != Delivery.Status.PENDING:
        return ""
    endpoint = delivery.endpoint
    [before] = positions([(endpoint, delivery)]).values()
    return waiting_reason(endpoint, delivery, before, now)


def positions(deliveries: Iterable[tuple[Endpoint, Delivery]]) -> dict[int, int]:
    """Count what is sent before each pending delivery, up to one more than MAX_COUNTED.

    By its key, and by two queries at most.
    """
    before: dict[int, int] = {}
    waiting: list[int] = []
    for _, delivery in deliveries:
        if delivery.status == Delivery.Status.PENDING:
            before[delivery.pk] = 0
            if delivery.claimed_by is None:
                waiting.append(delivery.pk)
    return before | (_before(waiting) if waiting else {})


def _before(pks: Collection[int]) -> dict[int, int]:
    at = OuterRef("next_attempt_at")
    earlier = Q(next_attempt_at__lt=at)
    earlier |= Q(next_attempt_at=at, pk__lt=OuterRef("pk"))
    rows = Delivery.objects.pending().filter(earlier, endpoint=OuterRef("endpoint"))
    counted = CountOf(rows.order_by().values("pk")[: MAX_COUNTED + 1])
    found = Delivery.objects.filter(pk__in=pks).annotate(before=counted)
    return dict(found.values_list("pk", "before"))


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
