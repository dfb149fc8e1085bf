"""The dashboard: what is overdue, the live dispatchers, the last day, the endpoints that fail most."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.contrib import admin
from django.db.models import CharField, Count, Q
from django.db.models.functions import Cast, Substr
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from webhooks_core import stats
from webhooks_core.admin import health
from webhooks_core.admin.base import HistoryAdmin
from webhooks_core.admin.endpoints import badge, failures
from webhooks_core.admin.health import HOURS, Day
from webhooks_core.models import Attempt, DispatcherLease, Endpoint, EngineState
from webhooks_core.outcomes import Outcome

# Of a busy system, the chart of the last day counts the newest attempts only.
ATTEMPTS_LOOKED_AT = 100_000
WORST = 10


@admin.register(DispatcherLease)
class DispatcherLeaseAdmin(HistoryAdmin[DispatcherLease]):
    list_display = ("__str__", "host", "pid", "started_at", "ended_at", "attempts")
    fields = (*list_display[1:], "expires_at")
    empty_hint = (
        "A dispatcher takes one when a delivery is due: is the task cluster running?"
    )
    pages = {"dashboard": "dashboard/"}
    change_list_template = "admin/webhooks_core/dispatcherlease/list.html"

    def dashboard(self, request: HttpRequest) -> HttpResponse:
        """Show the state of the engine; no query reads the whole history."""
        now = timezone.now()
        late = stats.oldest_due(now)
        return self.render(
            request,
            "admin/webhooks_core/dispatcherlease/dashboard.html",
            title="Webhooks dashboard",
            now=now,
            oldest_due=now - late if late else None,
            leases=DispatcherLease.objects.live().order_by("pk"),
            engine=EngineState.objects.first(),
            day=hours(now),
            attempts_looked_at=f"{ATTEMPTS_LOOKED_AT:,}",
            worst=worst(now),
        )


def hours(now: datetime) -> Day:
    """Return how many attempts succeeded and failed in each of the last hours."""
    newest = Attempt.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    # Both databases write a time as `2026-11-21 05:…`: a substring is cheaper than Trunc.
    hour = Substr(Cast("started_at", CharField()), 1, 13)
    rows = (
        Attempt.objects.filter(
            pk__gt=newest - ATTEMPTS_LOOKED_AT,
            started_at__gt=now - timedelta(hours=HOURS),
        )
        .annotate(hour=hour)
        .values("hour")
        .annotate(ok=Count("pk", filter=Q(outcome=Outcome.OK)), all=Count("pk"))
        .order_by()
    )
    counts = {row["hour"]: (row["ok"], row["all"] - row["ok"]) for row in rows}
    names = (
        f"{now - timedelta(hours=ago):%Y-%m-%d %H}" for ago in reversed(range(HOURS))
    )
    ok, failed = zip(*(counts.get(name, (0, 0)) for name in names), strict=True)
    return Day(ok, failed)


def worst(now: datetime) -> list[dict[str, Any]]:
    """Return the endpoints that fail most, disabled ones first."""
    failing = Q(consecutive_failures__gt=0) | Q(status=Endpoint.Status.DISABLED)
    rows = list(
        Endpoint.objects.filter(failing, deleted_at=None)
        .defer("custom_headers")
        .order_by("-status", "-consecutive_failures", "-pk")[:WORST]
    )
    days = health.days(rows, now=now, deliveries=health.DELIVERIES_PER_ROW)
    return [
        {
            "endpoint": endpoint,
            "health": badge(endpoint),
            "failures": failures(endpoint),
            "day": days[endpoint.pk],
        }
        for endpoint in rows
    ]
