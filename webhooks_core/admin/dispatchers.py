"""The dashboard: what is overdue, the live dispatchers, the last day, the endpoints that fail most."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.contrib import admin
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from webhooks_core import charts
from webhooks_core.admin.base import HistoryAdmin
from webhooks_core.admin.endpoints import badge, failures
from webhooks_core.models import DispatcherLease, Endpoint, EngineState
from webhooks_core.upkeep import stats

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
            day=charts.of_all(
                now=now, period=charts.period_of(request.GET.get("period", ""))
            ),
            periods=charts.PERIODS.values(),
            worst=worst(now),
        )


def worst(now: datetime) -> list[dict[str, Any]]:
    """Return the endpoints that fail most, disabled ones first."""
    failing = Q(consecutive_failures__gt=0) | Q(status=Endpoint.Status.DISABLED)
    rows = list(
        Endpoint.objects.filter(failing, deleted_at=None)
        .defer("custom_headers")
        .order_by("-status", "-consecutive_failures", "-pk")[:WORST]
    )
    days = charts.of_endpoints(rows, now=now)
    return [
        {
            "endpoint": endpoint,
            "health": badge(endpoint),
            "failures": failures(endpoint),
            "day": days[endpoint.pk],
        }
        for endpoint in rows
    ]
