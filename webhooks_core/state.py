"""How the engine is doing: what waits, for how long, and whether anybody works."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Min, OuterRef, QuerySet, Subquery

from webhooks_core.models import Bell, Delivery, Endpoint, Shift

# The sweep is due every minute, and the scheduler of a task cluster looks twice a minute.
SILENT_AFTER = timedelta(minutes=3)


def heard_at(now: datetime) -> datetime | None:
    """Return when a worker last gave a sign of life; None for never.

    That is now while a shift is at work, otherwise the last sweep by a task.
    """
    if Shift.objects.live(now).exists():
        return now
    return Bell.objects.filter(pk=1).values_list("swept_at", flat=True).first()


def oldest_due(now: datetime) -> timedelta:
    """Return for how long the most overdue delivery has waited; zero when none is overdue.

    What waits for a paused or disabled endpoint is not due. Costs one look into an index for
    each endpoint, however long the backlog is.
    """
    heads = with_head(Endpoint.objects.receiving())
    earliest: datetime | None = heads.aggregate(at=Min("head"))["at"]
    return max(now - earliest, timedelta(0)) if earliest else timedelta(0)


def with_head(endpoints: QuerySet[Endpoint]) -> QuerySet[Endpoint]:
    """Annotate `head`, the time of an endpoint's earliest delivery that nobody is trying."""
    waiting = Delivery.objects.waiting().filter(endpoint=OuterRef("pk"))
    return endpoints.annotate(
        head=Subquery(waiting.order_by("next_attempt_at").values("next_attempt_at")[:1])
    )
