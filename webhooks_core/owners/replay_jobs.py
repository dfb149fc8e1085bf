"""Replays of many events to one endpoint: counted first, paced below live traffic, cancellable.

A dispatcher continues each running job once a second by one short transaction. Whatever stops a
process, the job goes on from its `position`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Count, Max, OuterRef, Q, QuerySet
from django.utils import timezone

from webhooks_core import ids, profiles
from webhooks_core.database import limits
from webhooks_core.database.clock import clock
from webhooks_core.models import Delivery, Endpoint, Event, ReplayJob, SkippedEvent
from webhooks_core.models.lookups import IdList, among
from webhooks_core.owners import changes
from webhooks_core.owners.changes import Action, Actor
from webhooks_core.owners.id_ranges import created_between
from webhooks_core.owners.replays import NotSubscribedError
from webhooks_core.worker import notify

PREFIX = "rpl_"
RATE_PER_S = 50
STEP = timedelta(seconds=1)
# The jobs that one step continues.
JOBS_AT_ONCE = 20
# The events that a preview counts, and those that the total of a job does.
MAX_PREVIEWED, MAX_COUNTED = 5_000, 100_000

Kind, Status = ReplayJob.Kind, ReplayJob.Status


class ReplayRunningError(Exception):
    """Another replay to the endpoint is running."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which events to send again: those of a time, of any type if `event_types` is empty.

    `failed` ones have a failed delivery and did not arrive; `missing` ones were skipped, and have
    a type that the endpoint receives today.
    """

    kind: ReplayJob.Kind
    since: datetime
    until: datetime
    event_types: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Preview:
    """How many events a replay would send, by type and, of failed ones, by their last error.

    Counted are at most MAX_PREVIEWED.
    """

    total: int
    by_type: dict[str, int]
    by_error: dict[str, int]

    @property
    def is_capped(self) -> bool:
        return self.total == MAX_PREVIEWED


def preview(endpoint: Endpoint, selection: Selection) -> Preview:
    """Count what a replay would send, by three queries."""
    # As a part of a query of the endpoint, they are read from the index of the endpoint.
    rows = _candidates(endpoint, selection, of=OuterRef("pk"))
    part = IdList(rows.values("pk")[:MAX_PREVIEWED])
    pks = Endpoint.objects.filter(pk=endpoint.pk).values_list(part, flat=True).get()
    is_failed = selection.kind == Kind.FAILED
    error = "last_error" if is_failed else "reason"
    counted = rows.model._default_manager.filter(among(pks or ()))  # noqa: SLF001 - public by use
    groups = counted.values_list("event__type", error).annotate(count=Count("pk"))
    by_type, by_error = Counter[str](), Counter[str]()
    for event_type, text, count in groups.order_by("event__type", error):
        by_type[event_type] += count
        by_error[text] += count
    errors = dict(by_error.most_common()) if is_failed else {}
    return Preview(by_type.total(), dict(by_type.most_common()), errors)


def start(endpoint: Endpoint, selection: Selection, *, by: Actor) -> ReplayJob:
    """Start a replay. Raises NotSubscribedError, or ReplayRunningError."""
    if not endpoint.is_subscribed:
        raise NotSubscribedError
    job = ReplayJob(
        public_id=ids.public_id(PREFIX),
        endpoint=endpoint,
        kind=selection.kind,
        since=selection.since,
        until=selection.until,
        event_types=list(selection.event_types),
        rate_per_s=RATE_PER_S,
        total=_candidates(endpoint, selection)[:MAX_COUNTED].count(),
    )
    try:
        with transaction.atomic():
            job.save(force_insert=True)
            subject = job.public_id
            changes.record(endpoint.pk, Action.REPLAY_STARTED, by=by, subject=subject)
            notify.notify_on_commit([endpoint.pk])
    except IntegrityError as error:
        if not ReplayJob.objects.filter(
            endpoint=endpoint, status=Status.RUNNING
        ).exists():
            raise
        raise ReplayRunningError from error
    return job


def cancel(job: ReplayJob, *, by: Actor) -> bool:
    """Send nothing more of a replay; return False if it has ended. What is queued is sent."""
    running = ReplayJob.objects.filter(pk=job.pk, status=Status.RUNNING)
    with transaction.atomic():
        now = timezone.now()
        if not running.update(status=Status.CANCELLED, finished_at=now):
            return False
        subject = job.public_id
        changes.record(job.endpoint_id, Action.REPLAY_CANCELLED, by=by, subject=subject)
    return True


def eta(job: ReplayJob, now: datetime) -> datetime | None:
    """Return when a running replay has queued all of its events at its pace."""
    if job.status != Status.RUNNING:
        return None
    left = max(job.total - job.sent - job.skipped, 0)
    return now + timedelta(seconds=left / job.rate_per_s)


def running() -> QuerySet[ReplayJob]:
    return ReplayJob.objects.filter(status=Status.RUNNING)


def continue_running() -> int:
    """Queue the next events of the replays that are running; return how many were queued."""
    before = clock.now() - STEP
    due = running().filter(Q(continued_at=None) | Q(continued_at__lte=before))
    pks = list(due.order_by("pk").values_list("pk", flat=True)[:JOBS_AT_ONCE])
    return sum(_continue(pk, before) for pk in pks)


def _continue(pk: int, before: datetime) -> int:
    """Queue the next events of one replay, unless another dispatcher does so."""
    due = running().filter(Q(continued_at=None) | Q(continued_at__lte=before), pk=pk)
    with transaction.atomic():
        limits.limit_idle()
        rows = due.select_for_update(skip_locked=True, of=("self",))
        job = rows.select_related("endpoint").first()
        if job is None:
            return 0
        now = clock.now()
        sent = _step(job, now)
        job.continued_at = now
        if job.status != Status.RUNNING:
            job.finished_at = timezone.now()
        job.save()
        return sent


def _step(job: ReplayJob, now: datetime) -> int:
    """Move a replay forward; return how many events were queued."""
    if not job.endpoint.is_subscribed:
        job.status = Status.STOPPED
        return 0
    room = job.rate_per_s - _waiting(job.endpoint, now, job.rate_per_s)
    if room <= 0:
        return 0  # live traffic goes first
    batch = list(_next(job)[:room])
    if batch:
        sent = _queue(job, [event for event, _ in batch], now)
        job.position = batch[-1][1]
        job.sent += sent
        job.skipped += len(batch) - sent
        job.total = max(job.total, job.sent + job.skipped)
        return sent
    # What was counted and is gone: delivered, resent, or removed for its age.
    job.skipped = max(job.total - job.sent, job.skipped)
    job.status = Status.DONE
    return 0


def _waiting(endpoint: Endpoint, now: datetime, most: int) -> int:
    """Count what is due for an endpoint and not sent yet."""
    due = Delivery.objects.waiting().filter(endpoint=endpoint, next_attempt_at__lte=now)
    return due[:most].count()


def _next(job: ReplayJob) -> QuerySet[Any, Any]:
    """Return the events behind a replay's position, each with its own position."""
    selection = Selection(
        kind=Kind(job.kind),
        since=job.since,
        until=job.until,
        event_types=job.event_types,
    )
    rows = _candidates(job.endpoint, selection)
    if job.kind == Kind.MISSING:
        return rows.filter(event__gt=job.position).values_list("event", "event")
    # What fails again meanwhile is not sent again.
    rows = rows.filter(pk__gt=job.position, created_at__lt=job.created_at)
    return rows.values_list("event", "pk")


def _candidates(
    endpoint: Endpoint, selection: Selection, *, of: Endpoint | OuterRef | None = None
) -> QuerySet[Any]:
    """Return the rows of a selection, oldest first: failed deliveries or skipped events.

    `of` is the endpoint as a part of another query.
    """
    of = of or endpoint
    conditions = Q(
        event__created_at__gte=selection.since, event__created_at__lt=selection.until
    )
    if selection.event_types:
        conditions &= Q(event__type__in=selection.event_types)
    if selection.kind == Kind.FAILED:
        rows = Delivery.objects.undelivered().filter(conditions, endpoint=of)
        bounds = created_between(Delivery, selection.since, profile=endpoint.profile)
        return bounds.of(rows).order_by("pk")
    conditions &= Q(event__type__in=received_types(endpoint))
    skipped = SkippedEvent.objects.filter(conditions, endpoint=of)
    bounds = created_between(
        Event, selection.since, selection.until, profile=endpoint.profile
    )
    return bounds.of(skipped, "event").order_by("event")


def received_types(endpoint: Endpoint) -> list[str]:
    """Return the event types that an endpoint receives today."""
    profile = profiles.get(endpoint.profile)
    return [
        name
        for name in profile.event_types
        if profile.matches(endpoint.event_types, name)
    ]


def _queue(job: ReplayJob, events: Collection[int], now: datetime) -> int:
    """Create deliveries of those events that are still wanted; return how many."""
    # Locked: retention keeps them from now on, and another replay sees these.
    rows = Event.objects.filter(among(events)).order_by("pk")
    kept = list(rows.select_for_update(no_key=True).values_list("pk", flat=True))
    numbers = _next_numbers(job, kept)
    prefix = profiles.get(job.endpoint.profile).delivery_prefix
    Delivery.objects.bulk_create(
        Delivery(
            public_id=ids.public_id(prefix),
            event_id=event,
            endpoint_id=job.endpoint_id,
            trigger=Delivery.Trigger.REPLAY,
            replay_number=number,
            next_attempt_at=now,
        )
        for event, number in numbers.items()
    )
    sent = SkippedEvent.objects.filter(
        among(list(numbers), of="event_id"), endpoint=job.endpoint_id
    )
    sent.delete()
    notify.notify_on_commit([job.endpoint_id] if numbers else [])
    return len(numbers)


def _next_numbers(job: ReplayJob, events: Collection[int]) -> dict[int, int]:
    """Return the replay numbers of the events that neither arrived nor are pending."""
    over = Q(status__in=(Delivery.Status.PENDING, Delivery.Status.DELIVERED))
    pairs = (
        Delivery.objects.filter(among(events, of="event_id"), endpoint=job.endpoint_id)
        .values_list("event")
        .annotate(last=Max("replay_number"), over=Count("pk", filter=over))
    )
    known = {event: (last, is_over) for event, last, is_over in pairs}
    numbers: dict[int, int] = {}
    for event in events:
        last, is_over = known.get(event, (None, job.kind != Kind.MISSING))
        if not is_over:
            numbers[event] = 0 if last is None else last + 1
    return numbers
