"""The dashboard: what is overdue, the live dispatchers, the last day, the endpoints that fail most."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.contrib import admin
from django.db.models import Count, Min, Q
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from webhooks_core.admin import display, owners
from webhooks_core.admin.base import HistoryAdmin
from webhooks_core.admin.endpoints import badge, failures
from webhooks_core.models import DispatcherLease, Endpoint, EngineState
from webhooks_core.owners import charts, endpoint_state
from webhooks_core.owners.endpoint_state import Health
from webhooks_core.upkeep import stats

WORST = 10
LATE = timedelta(minutes=2)


@admin.register(DispatcherLease)
class DispatcherLeaseAdmin(HistoryAdmin[DispatcherLease]):
    list_display = ("__str__", "host", "pid", "started_at", "ended_at", "attempts")
    fields = (*list_display[1:], "expires_at")
    empty_hint = (
        "A dispatcher takes one when a delivery is due: is the task cluster running?"
    )
    pages = {"dashboard": "dashboard/"}
    list_links = {"admin:webhooks_core_dispatcherlease_dashboard": "Dashboard"}

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
            worst=self._worst(request, now),
            verdict=verdict(now, late),
        )

    def _worst(self, request: HttpRequest, now: datetime) -> list[dict[str, Any]]:
        rows = worst(now)
        failing = [row["endpoint"] for row in rows]
        owners.attach(failing, site=self.admin_site, request=request)
        return [row | {"owner": owners.label(row["endpoint"])} for row in rows]


class Verdict(NamedTuple):
    """The state of all endpoints in one line."""

    tone: str
    word: str
    text: str


def verdict(now: datetime, late: timedelta) -> Verdict:
    """Return how many endpoints fail, since when, and whether deliveries are late."""
    rows = Endpoint.objects.filter(deleted_at=None)
    active = Q(status=Endpoint.Status.ACTIVE)
    counts = rows.aggregate(
        failing=Count("pk", filter=active & Health.FAILING.condition),
        hanging=Count("pk", filter=active & Health.HANGING.condition),
        disabled=Count("pk", filter=~active),
        since=Min("failing_since"),
    )
    since = counts.pop("since")
    parts = [f"{count} {name}" for name, count in counts.items() if count]
    is_late = late > LATE
    if not parts:
        text = "Deliveries are late." if is_late else "Every endpoint receives."
        return Verdict(
            "error" if is_late else "success", "Late" if is_late else "Well", text
        )
    text = f"Endpoints: {', '.join(parts)}."
    if since:
        text += f" The first one fails since {endpoint_state.told(since, now)}."
    if is_late:
        text += " Deliveries are late."
    return Verdict("error", "Failing", text)


def worst(now: datetime) -> list[dict[str, Any]]:
    """Return the endpoints that fail most, disabled ones first."""
    failing = Q(consecutive_failures__gt=0) | Q(status=Endpoint.Status.DISABLED)
    rows = list(
        Endpoint.objects.filter(failing, deleted_at=None)
        .defer("custom_headers")
        .order_by("-status", "-consecutive_failures", "-pk")[:WORST]
    )
    days = charts.of_endpoints(rows, now=now)
    states = endpoint_state.describe_all(rows, now=now)
    return [
        {
            "endpoint": endpoint,
            "path": display.host_and_path(endpoint.url),
            "health": badge(endpoint),
            "failures": failures(endpoint),
            "state": states[endpoint.pk],
            "day": days[endpoint.pk],
        }
        for endpoint in rows
    ]
