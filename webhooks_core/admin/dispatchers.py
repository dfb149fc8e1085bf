"""The dashboard: what is overdue, who works, how the last day went, which endpoints fail."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import CharField, Count, Q
from django.db.models.functions import Cast, Substr
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils import timezone

from webhooks_core import stats
from webhooks_core.admin import health
from webhooks_core.admin.base import HistoryAdmin
from webhooks_core.admin.endpoints import badge, failures
from webhooks_core.admin.health import HOURS, Day
from webhooks_core.models import Attempt, DispatcherLease, Endpoint, EngineState
from webhooks_core.outcomes import Outcome

# The last day, but of a busy system no more than its newest attempts.
ATTEMPTS_LOOKED_AT = 100_000
WORST = 10


@admin.register(DispatcherLease)
class DispatcherLeaseAdmin(HistoryAdmin[DispatcherLease]):
    list_display = ("__str__", "host", "pid", "started_at", "ended_at", "attempts")
    fields = (*list_display[1:], "expires_at")
    empty_hint = "The task cluster makes one as soon as something is due: does it run?"
    change_list_template = "admin/webhooks_core/dispatcherlease/list.html"

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.dashboard)
        name = "webhooks_core_dispatcherlease_dashboard"
        return [path("dashboard/", view, name=name), *super().get_urls()]

    def dashboard(self, request: HttpRequest) -> HttpResponse:
        """Show it all on a page of seven queries, none of which reads the whole history."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        now = timezone.now()
        late = stats.oldest_due(now)
        context = self.admin_site.each_context(request) | {
            "title": "Webhooks dashboard",
            "opts": self.opts,
            "now": now,
            "oldest_due": now - late if late else None,
            "shifts": DispatcherLease.objects.live(now).order_by("pk"),
            "bell": EngineState.objects.first(),
            "day": hours(now),
            "attempts_looked_at": f"{ATTEMPTS_LOOKED_AT:,}",
            "worst": worst(now),
        }
        template = "admin/webhooks_core/dispatcherlease/dashboard.html"
        return TemplateResponse(request, template, context)


def hours(now: datetime) -> Day:
    """Return how many attempts succeeded and failed in each hour of the clock."""
    newest = Attempt.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    # Both databases write a time as `2026-11-21 05:…`: cheaper to cut than to compute with.
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
    found: dict[str, dict[str, Any]] = {row["hour"]: dict(row) for row in rows}
    nothing = {"ok": 0, "all": 0}
    names = [
        f"{now - timedelta(hours=ago):%Y-%m-%d %H}" for ago in reversed(range(HOURS))
    ]
    counts = [found.get(name, nothing) for name in names]
    return Day([it["ok"] for it in counts], [it["all"] - it["ok"] for it in counts])


def worst(now: datetime) -> list[dict[str, Any]]:
    """Return the endpoints that fail most, those that the engine disabled first."""
    failing = Q(consecutive_failures__gt=0) | Q(status=Endpoint.Status.DISABLED)
    rows = list(
        Endpoint.objects.filter(failing, deleted_at=None)
        .defer("custom_headers")
        .order_by("-status", "-consecutive_failures", "-pk")[:WORST]
    )
    days = health.days(rows, now=now, deliveries=health.DELIVERIES_PER_ROW)
    return [
        {
            "endpoint": it,
            "health": badge(it),
            "failures": failures(it),
            "day": days[it.pk],
        }
        for it in rows
    ]
