"""Endpoints: how each is doing, and what an operator may do about it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import Prefetch, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.html import format_html
from django.utils.safestring import SafeString

from webhooks_core import endpoints, publishing, replays
from webhooks_core.admin import display, health, owners
from webhooks_core.admin.filters import HealthFilter, ProductFilter
from webhooks_core.admin.health import Day, Health
from webhooks_core.admin.rotation import RotationAdmin, living, static_source
from webhooks_core.conf import webhook_settings
from webhooks_core.encryption import SecretUnreadableError
from webhooks_core.endpoints import LimitError
from webhooks_core.models import Attempt, Delivery, Endpoint
from webhooks_core.models.endpoints import MAX_IN_FLIGHT, MAX_RATE
from webhooks_core.replays import NotSubscribedError

REPLAYED_AT_ONCE = 1000
HELD_AT_MOST = 1000  # are counted
RECENT = 20  # deliveries are shown
REPLAY_CHOICES = {1: "the last hour", 24: "24 hours", 168: "7 days", 720: "30 days"}


@admin.register(Endpoint)
class EndpointAdmin(RotationAdmin):
    change_form_template = "admin/webhooks_core/endpoint/page.html"
    operations = (
        "send_test",
        "enable",
        "pause",
        "resume",
        "set_limits",
        "set_trusted",
        "rotate_secret",
        "replay_failed",
    )
    list_display = (
        "shown_url",
        "health",
        "owned_by",
        "success",
        "chart",
        "failures",
    )
    list_filter = (HealthFilter, ProductFilter)
    search_fields = ("public_id", "owner", "url")
    indexed = ("public_id",)
    search_help_text = "Part of an id, an owner or a url"
    empty_hint = "Accounts and tenants make them by the webhooks API of a product."

    def get_queryset(self, request: HttpRequest) -> QuerySet[Endpoint]:
        return super().get_queryset(request).defer("custom_headers")

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        """Read the figures of all rows at once: the columns take them from there."""
        shown = super().get_changelist_instance(request)
        rows = list(shown.result_list)
        days = health.days(
            rows, now=timezone.now(), deliveries=health.DELIVERIES_PER_ROW
        )
        for endpoint in rows:
            vars(endpoint)["day"] = days[endpoint.pk]
        owners.name(rows, site=self.admin_site, request=request)
        return shown

    # The list.

    @admin.display(description="endpoint")
    def shown_url(self, obj: Endpoint) -> SafeString:
        static = obj.static_key is not None
        badge = display.badge("neutral", "From the configuration") if static else ""
        return format_html("{}<br><code>{}</code> {}", obj.url, obj.public_id, badge)

    @admin.display
    def health(self, obj: Endpoint) -> SafeString:
        return badge(obj)

    @admin.display(description="product, owner")
    def owned_by(self, obj: Endpoint) -> SafeString:
        return owners.with_product(obj)

    @admin.display(description="success, p95")
    def success(self, obj: Endpoint) -> SafeString | None:
        day = _day(obj)
        if (share := day.success) is None:
            return None
        return format_html("{}<br>{}", share, _milliseconds(day) or "")

    @admin.display(description="24 h")
    def chart(self, obj: Endpoint) -> SafeString:
        return render_to_string("admin/webhooks_core/chart.html", {"day": _day(obj)})

    @admin.display(description="in a row")
    def failures(self, obj: Endpoint) -> str:
        return failures(obj)

    # The page.

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        endpoint = self.get_object(request, object_id)
        if endpoint is not None and self.has_view_permission(request, endpoint):
            extra_context = (extra_context or {}) | self._facts(request, endpoint)
        return super().change_view(request, object_id, form_url, extra_context)

    def _facts(self, request: HttpRequest, endpoint: Endpoint) -> dict[str, Any]:
        now = timezone.now()
        days = health.days([endpoint], now=now, deliveries=health.DELIVERIES_PER_PAGE)
        day, dialect = days[endpoint.pk], display.dialect(endpoint)
        owners.name([endpoint], site=self.admin_site, request=request)
        return {
            "endpoint": endpoint,
            "owner": owners.shown(endpoint),
            "subtitle": None,
            "health": badge(endpoint),
            "advice": Health.of(endpoint).advice,
            "held": _held(endpoint),
            "most_held": HELD_AT_MOST,
            "failures": failures(endpoint),
            "day": day,
            "p95": _milliseconds(day),
            "most_deliveries": f"{health.DELIVERIES_PER_PAGE:,}",
            "limits": limits_of(endpoint),
            "most_in_flight": MAX_IN_FLIGHT,
            "most_per_second": MAX_RATE,
            "own_headers": _own_headers(endpoint),
            "secrets": endpoint.endpointsecret_set.order_by("-pk"),
            "recent": _recent(endpoint),
            "allowed_targets": webhook_settings.ALLOWED_TARGETS,
            "may_trust": endpoint.static_key is None
            and bool(webhook_settings.ALLOWED_TARGETS or endpoint.trusted),
            "static_source": static_source(endpoint),
            "may_act": self.has_act_permission(request) and not endpoint.deleted_at,
            "may_test": dialect is not None and dialect.ping is not None,
            "replay_choices": REPLAY_CHOICES,
            "replay": self._preview(request, endpoint, now),
        }

    def _preview(
        self, request: HttpRequest, endpoint: Endpoint, now: datetime
    ) -> dict[str, Any] | None:
        """Count what a replay would send, when the page is asked to."""
        hours = request.GET.get("hours", "")
        if hours not in map(str, REPLAY_CHOICES):
            return None
        since = now - timedelta(hours=int(hours))
        count = replays.failed_since(endpoint, since)[: REPLAYED_AT_ONCE + 1].count()
        return {
            "hours": int(hours),
            "since": since,
            "count": count,
            "is_too_much": count > REPLAYED_AT_ONCE,
            "at_once": REPLAYED_AT_ONCE,
        }

    @living
    def send_test(self, request: HttpRequest, endpoint: Endpoint) -> HttpResponse:
        dialect = display.dialect(endpoint)
        if dialect is None or dialect.ping is None:
            text = "Nothing was sent: its product has no test event."
            return self.back(request, endpoint, text, "ERROR")
        if not (endpoint.is_subscribed and dialect.enabled):
            text = "Nothing was sent: the endpoint is disabled or switched off."
            return self.back(request, endpoint, text, "ERROR")
        ping = dialect.ping(endpoint.public_id)
        event = publishing.publish_test(
            endpoint, event_type=ping.type, data=ping.data, **ping.metadata
        )
        self.log_change(request, endpoint, f"Sent the test event {event.public_id}.")
        made = Delivery.objects.get(event=event)
        self.message_user(request, "Queued. The answer shows here when it has come.")
        return redirect("admin:webhooks_core_delivery_change", made.pk)

    @living
    def enable(self, request: HttpRequest, endpoint: Endpoint) -> HttpResponse:
        if not endpoint.is_disabled:
            return self.back(request, endpoint, "It is not disabled.", "WARNING")
        endpoints.enable(endpoint)
        self.log_change(request, endpoint, "Enabled.")
        return self.back(request, endpoint, "Enabled: what waited goes out now.")

    @living
    def pause(self, request: HttpRequest, endpoint: Endpoint) -> HttpResponse:
        if endpoint.paused_at is not None:
            return self.back(request, endpoint, "It is paused already.", "WARNING")
        endpoints.pause(endpoint)
        self.log_change(request, endpoint, "Paused.")
        return self.back(request, endpoint, "Paused: what is published now waits.")

    @living
    def resume(self, request: HttpRequest, endpoint: Endpoint) -> HttpResponse:
        if endpoint.paused_at is None:
            return self.back(request, endpoint, "It is not paused.", "WARNING")
        endpoints.resume(endpoint)
        self.log_change(request, endpoint, "Resumed.")
        return self.back(request, endpoint, "Resumed: what waited goes out now.")

    @living
    def set_limits(self, request: HttpRequest, endpoint: Endpoint) -> HttpResponse:
        in_flight, rate = (
            request.POST.get(name, "").strip()
            for name in ("max_in_flight", "rate_per_second")
        )
        limits = {
            "max_in_flight": in_flight,
            "rate_per_second": rate or None,
            "in_order": "in_order" in request.POST,
        }
        try:
            changed = endpoints.update(endpoint, **limits)
        except LimitError as error:
            return self.back(
                request, endpoint, f"Nothing was changed: {error}", "ERROR"
            )
        told = limits_of(changed)
        self.log_change(request, endpoint, f"Limited to {told}.")
        return self.back(request, endpoint, f"From now on: {told}.")

    @living
    def set_trusted(self, request: HttpRequest, endpoint: Endpoint) -> HttpResponse:
        """Let an endpoint lie in the networks that the settings name, or no longer."""
        if endpoint.static_key is not None:
            text = "What the configuration declares may always go there."
            return self.back(request, endpoint, text, "ERROR")
        trusted = "trusted" in request.POST
        endpoints.set_trusted(endpoint, trusted=trusted)
        text = f"Internal networks: {'allowed' if trusted else 'not allowed'}."
        self.log_change(request, endpoint, text)
        return self.back(request, endpoint, text)

    @living
    def replay_failed(self, request: HttpRequest, endpoint: Endpoint) -> HttpResponse:
        since = _time(request.POST.get("since", ""))
        if since is None:
            return self.back(request, endpoint, "Since when? Count first.", "ERROR")
        failed = replays.failed_since(endpoint, since)
        if failed[: REPLAYED_AT_ONCE + 1].count() > REPLAYED_AT_ONCE:
            text = f"Nothing was queued: more than {REPLAYED_AT_ONCE} at once."
            return self.back(request, endpoint, text, "ERROR")
        try:
            queued = replays.replay_failed(endpoint, since=since)
        except NotSubscribedError:
            text = "Nothing was queued: the endpoint is disabled or inactive."
            return self.back(request, endpoint, text, "ERROR")
        self.log_change(
            request, endpoint, f"Replayed {queued} failed since {since:%F %T} UTC."
        )
        return self.back(request, endpoint, f"Queued {queued} again, 50 per second.")


def badge(endpoint: Endpoint) -> SafeString:
    """Return the health of an endpoint as a coloured word."""
    state = Health.of(endpoint)
    return display.badge(state.tone, state.value)


def _held(endpoint: Endpoint) -> int:
    """Return how many deliveries wait for an endpoint that receives nothing now."""
    if endpoint.is_receiving:
        return 0
    waiting = Delivery.objects.waiting().filter(endpoint=endpoint)
    return waiting[:HELD_AT_MOST].count()


def _day(endpoint: Endpoint) -> Day:
    day: Day = vars(endpoint)["day"]
    return day


def _milliseconds(day: Day) -> str | None:
    return None if day.p95_ms is None else f"{day.p95_ms:,} ms"


def failures(endpoint: Endpoint) -> str:
    """Return `3/20`: failures in a row, and at how many the engine disables."""
    dialect, count = display.dialect(endpoint), endpoint.consecutive_failures
    limit = dialect and dialect.disable_after
    return f"{count}/{limit}" if limit else f"{count}"


def limits_of(endpoint: Endpoint) -> str:
    """Return `4 at once, 10 per second, in order`."""
    told = [f"{endpoint.in_flight} at once"]
    if endpoint.rate_per_second is not None:
        told.append(f"{endpoint.rate_per_second} per second")
    if endpoint.in_order:
        told.append("in order")
    return ", ".join(told)


def _own_headers(endpoint: Endpoint) -> str:
    try:
        return ", ".join(display.custom_names(endpoint))
    except SecretUnreadableError:
        return "none of WEBHOOK_SECRET_KEYS reads them"


def _recent(endpoint: Endpoint) -> list[tuple[Delivery, SafeString, str]]:
    """Return the newest deliveries, each with its state and how its last attempt ended."""
    attempts = Attempt.objects.defer("response_body").order_by("number")
    rows = (
        Delivery.objects.page(endpoint, number=1, size=RECENT)
        .select_related("event", "endpoint")
        .defer("event__body", "endpoint__custom_headers")
        .prefetch_related(Prefetch("attempt_set", attempts))
    )
    return [(it, display.state(it), _last_result(it)) for it in rows]


def _last_result(delivery: Delivery) -> str:
    attempts = list(delivery.attempt_set.all())
    return display.result(attempts[-1]) if attempts else ""


def _time(text: str) -> datetime | None:
    """Return a time with its zone, as our own form sends it; None for anything else."""
    try:
        at = parse_datetime(text)
    except ValueError:
        return None
    return at if at and at.tzinfo else None
