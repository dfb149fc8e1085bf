"""Endpoints: their state, the operations on them, and the page of those that fail, with its chart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from webhooks_core import endpoints, profiles
from webhooks_core.admin import base
from webhooks_core.admin.base import HistoryAdmin, operator, row_action
from webhooks_core.admin.deliveries import delivery_line
from webhooks_core.changes import Actor
from webhooks_core.conf import webhook_settings
from webhooks_core.models import Attempt, Delivery, DispatcherLease, Endpoint
from webhooks_core.network.errors import Outcome
from webhooks_core.owners import details, repairs, resending, state
from webhooks_core.owners.resending import Selection
from webhooks_core.owners.state import Health
from webhooks_core.pages.base import show_once
from webhooks_core.pages.forms import RotationForm
from webhooks_core.secrets import SecretUnreadableError
from webhooks_core.upkeep import stats

WORST, RECENT = 50, 20
HOURS = 24
# Of a busier instance, the chart shows the latest ones alone.
MAX_ATTEMPTS = 50_000
BAR_WIDTH, HEIGHT = 5, 24


class StateFilter(admin.SimpleListFilter):
    title = parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(health.name.lower(), health.value) for health in reversed(Health)]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        """Hide deleted endpoints unless they are asked for."""
        names = {health.name.lower(): health for health in Health}
        if health := names.get(self.value() or ""):
            return queryset.filter(health.condition)
        return queryset.filter(deleted_at=None)


@admin.register(Endpoint)
class EndpointAdmin(HistoryAdmin[Endpoint]):
    change_list_template = "admin/webhooks_core/endpoints.html"
    list_display = ("shown_url", "shown_state", "shown_owner")
    list_filter = (StateFilter, "profile")
    search_fields = ("public_id", "url", "owner")
    search_help_text = "Part of an id, a URL or an owner"
    actions = (
        *("resend_failed", "enable", "disable"),
        *("rotate_secret", "toggle_trusted"),
    )
    fields = (
        *("shown_state", "remedy", "url", "shown_owner", "public_id"),
        *("events", "filter", "description", "sent_headers", "trusted"),
        *("secrets", "declared_in", "created_at", "recent"),
    )
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[Endpoint]:
        return super().get_queryset(request).defer("custom_headers")

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        """Read the states and the owners of all rows at once."""
        changelist = super().get_changelist_instance(request)
        rows = list(changelist.result_list)
        states, names = state.describe_all(rows), base.owner_names(rows)
        for row in rows:
            vars(row).update(shown=states[row.pk], owner_text=names[row.pk])
        changelist.result_list = rows
        return changelist

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.failing)
        failing = path("failing/", view, name="webhooks_core_endpoint_failing")
        return [failing, *super().get_urls()]

    # The columns and fields.

    @admin.display(description="endpoint")
    def shown_url(self, obj: Endpoint) -> SafeString:
        path = base.host_and_path(obj.url)
        return format_html('<span title="{}">{}</span>', obj.url, path)

    @admin.display(description="state")
    def shown_state(self, obj: Endpoint) -> SafeString:
        shown = vars(obj).get("shown") or state.describe(obj)
        return base.state(shown)

    @admin.display(description="product, owner")
    def shown_owner(self, obj: Endpoint) -> str:
        return vars(obj).get("owner_text") or base.owner_names([obj])[obj.pk]

    @admin.display(description="what to do")
    def remedy(self, obj: Endpoint) -> str:
        return state.describe(obj).remedy or "-"

    @admin.display(description="event types")
    def events(self, obj: Endpoint) -> str:
        profile = profiles.find(obj.profile)
        if profile is not None and profile.receives_all(obj.event_types):
            return "all events"
        return ", ".join(obj.event_types) or "none"

    @admin.display(description="custom headers")
    def sent_headers(self, obj: Endpoint) -> str:
        try:
            return ", ".join(details.custom_names(obj)) or "-"
        except SecretUnreadableError:
            return "none of WEBHOOK_SECRET_KEYS decrypts them"

    @admin.display(description="signing secrets")
    def secrets(self, obj: Endpoint) -> str:
        rows = obj.endpointsecret_set.order_by("-pk")
        return "; ".join(
            f"created {row.created_at:%F %T}"
            + (f", ends {row.expires_at:%F %T}" if row.expires_at else "")
            for row in rows
        )

    @admin.display
    def declared_in(self, obj: Endpoint) -> str:
        return f"the configuration, as {obj.static_key}" if obj.static_key else "-"

    @admin.display(description="newest deliveries")
    def recent(self, obj: Endpoint) -> SafeString:
        rows = Delivery.objects.filter(endpoint=obj).select_related("event")
        newest = rows.defer("event__body").order_by("-pk")[:RECENT]
        return format_html_join("", "{}<br>", ((delivery_line(row),) for row in newest))

    # What is done with them.

    def buttons(self, obj: Endpoint) -> Collection[str]:
        if obj.deleted_at:
            return ()
        declared = {"rotate_secret", "toggle_trusted"} if obj.static_key else set()
        if not (webhook_settings.ALLOWED_TARGETS or obj.trusted):
            declared.add("toggle_trusted")
        return {*self.actions} - declared - {"disable" if obj.is_disabled else "enable"}

    @row_action("Enable")
    def enable(self, endpoint: Endpoint, by: Actor) -> str:
        repairs.enable(endpoint, by=by)
        return "Enabled: what waits is sent now."

    @row_action("Disable")
    def disable(self, endpoint: Endpoint, by: Actor) -> str:
        repairs.disable(endpoint, by=by)
        return "Disabled: nothing is sent."

    @row_action("Resend what failed within a day")
    def resend_failed(self, endpoint: Endpoint, by: Actor) -> str:
        since = timezone.now() - timedelta(days=1)
        count = resending.resend_since(endpoint, Selection.FAILED, since=since, by=by)
        return f"Resent {count} that failed within a day."

    @row_action("Allow or forbid internal networks")
    def toggle_trusted(self, endpoint: Endpoint, by: Actor) -> str:
        """Allow or forbid the networks of WEBHOOK_ALLOWED_TARGETS for an endpoint."""
        repairs.check_not_declared(endpoint)
        trusted = not endpoint.trusted
        endpoints.update(endpoint, by=by, trusted=trusted)
        return f"Internal networks: {'allowed' if trusted else 'not allowed'}."

    @admin.action(description="Rotate the secret…", permissions=["act"])
    def rotate_secret(
        self, request: HttpRequest, queryset: QuerySet[Endpoint]
    ) -> HttpResponse | None:
        """Explain the effect and ask; confirmed, lead to the new secret, which is shown once."""
        endpoint = queryset.first() if queryset.count() == 1 else None
        if endpoint is None or endpoint.static_key is not None:
            text = "Choose one endpoint that no configuration declares."
            self.message_user(request, text, "WARNING")
            return None
        profile = profiles.find(endpoint.profile)
        may_overlap = endpoints.may_overlap(endpoint)
        is_confirmed = "confirmed" in request.POST
        form = RotationForm(request.POST if is_confirmed else None)
        context = {
            "shown": endpoint,
            "form": form,
            "may_overlap": may_overlap,
            "disable_after": profile and profile.disable_after,
        }
        if not is_confirmed or (may_overlap and not form.is_valid()):
            title, page = "Rotate the secret", "admin/webhooks_core/rotate.html"
            return self.render(request, page, title=title, **context)
        hours = form.cleaned_data["overlap_h"] if may_overlap else 0
        overlap, by = timedelta(hours=hours), operator(request)
        secret = repairs.rotate(endpoint, overlap=overlap, by=by).secret
        self.log_change(request, endpoint, f"Rotated the secret; overlap {hours} h.")
        kept = f"and for {hours} h the old one beside it" if hours else "and it alone"
        text = f"The new secret signs from now on, {kept}."
        page = reverse("admin:webhooks_core_endpoint_change", args=(endpoint.pk,))
        return show_once(request, text, page, secret)

    # The page of what fails.

    def failing(self, request: HttpRequest) -> HttpResponse:
        """Show the endpoints that fail: since when, why, and how many deliveries wait."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        now = timezone.now()
        failing = Health.FAILING.condition | Health.DISABLED.condition
        rows = list(
            self.get_queryset(request)
            .filter(failing, deleted_at=None)
            .order_by("-status", "failing_since", "-pk")[:WORST]
        )
        states, names = state.describe_all(rows), base.owner_names(rows)
        return self.render(
            request,
            "admin/webhooks_core/failing.html",
            title="Failing endpoints",
            rows=[(row, states[row.pk], names[row.pk]) for row in rows],
            chart=last_day(now),
            late=stats.oldest_due(now),
            dispatchers=DispatcherLease.objects.live().count(),
        )


def last_day(now: datetime) -> dict[str, Any]:
    """Return the chart of all endpoints: one query of MAX_ATTEMPTS rows at most.

    Each bar has the failed attempts of an hour stacked on the successful ones, the oldest first.
    `is_cut` means that older attempts of the day are left out.
    """
    newest = Attempt.objects.order_by("-pk").values_list("started_at", "outcome")
    rows = list(newest[:MAX_ATTEMPTS])
    start = now.replace(minute=0, second=0, microsecond=0)
    start -= timedelta(hours=HOURS - 1)
    counts = Counter(
        ((at - start) // timedelta(hours=1), outcome == Outcome.OK)
        for at, outcome in rows
        if at >= start
    )
    hours = [(counts[hour, True], counts[hour, False]) for hour in range(HOURS)]
    most = max(map(sum, hours))
    ok, failed = map(sum, zip(*hours, strict=True))
    return {
        "bars": [
            _bar(hour, start + timedelta(hours=hour), *hours[hour], most)
            for hour in range(HOURS)
        ],
        "width": BAR_WIDTH * HOURS,
        "ok": ok,
        "failed": failed,
        "title": f"{ok:,} successful and {failed:,} failed attempts in 24 hours",
        "is_cut": len(rows) == MAX_ATTEMPTS and rows[-1][0] >= start,
    }


def _bar(hour: int, at: datetime, ok: int, failed: int, most: int) -> dict[str, Any]:
    failed_height = _height(failed, most)
    ok_height = min(_height(ok, most), HEIGHT - failed_height)
    return {
        "x": hour * BAR_WIDTH,
        "ok_y": HEIGHT - ok_height,
        "ok_height": ok_height,
        "failed_y": HEIGHT - ok_height - failed_height,
        "failed_height": failed_height,
        "title": f"{at:%H:%M} UTC: {ok:,} successful, {failed:,} failed",
    }


def _height(count: int, most: int) -> int:
    """Return a height at which even one attempt among many is visible."""
    return max(round(HEIGHT * count / most), 2) if count else 0
