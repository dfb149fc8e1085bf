"""Endpoints: their health, and the operations on them."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Any

import orjson
from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from webhooks_core import endpoints, profiles, publishing
from webhooks_core.admin import base, display, owners, resending
from webhooks_core.admin.base import NewestChangeList, RefusedError
from webhooks_core.admin.filters import HealthFilter, ProductFilter
from webhooks_core.admin.owner_page import OwnerPageAdmin
from webhooks_core.admin.rotation import static_source
from webhooks_core.conf import webhook_settings
from webhooks_core.models import Delivery, Endpoint
from webhooks_core.owners import changes, charts, endpoint_state, payloads, replays
from webhooks_core.owners.endpoint_state import Health
from webhooks_core.owners.names import named
from webhooks_core.owners.replays import NotSubscribedError
from webhooks_core.profiles import WebhookProfile
from webhooks_core.secrets import SecretUnreadableError

MAX_SUSPENDED = 1000  # are counted
RECENT = 20  # deliveries on the page


def badge(endpoint: Endpoint) -> SafeString:
    """Return the health of an endpoint as a badge."""
    state = Health.of(endpoint)
    return display.badge(state.tone, state.value)


def _event_types(endpoint: Endpoint, profile: WebhookProfile | None) -> str:
    """Return the listed types; of an empty list, what it means to the product."""
    if endpoint.event_types or profile is None:
        return ", ".join(endpoint.event_types) or "none listed"
    is_all = any(profile.matches([], name) for name in profile.event_types)
    return "all: none is listed" if is_all else "none: it gets only test events"


def failures(endpoint: Endpoint) -> str:
    """Return `3/20`: failures in a row, and the limit at which the engine disables the endpoint."""
    profile, count = profiles.find(endpoint.profile), endpoint.consecutive_failures
    limit = profile and profile.disable_after
    return f"{count}/{limit}" if limit else f"{count}"


@admin.register(Endpoint)
class EndpointAdmin(OwnerPageAdmin):
    change_form_template = "admin/webhooks_core/endpoint/page.html"
    operations = (
        *("send_test", "enable", "pause", "resume"),
        *("set_trusted", "rotate_secret", "replay_failed"),
    )
    list_display = (
        *("shown_url", "shown_health", owners.with_product),
        *("success", "chart"),
    )
    list_filter = (HealthFilter, ProductFilter)
    search_fields = ("public_id", "owner", "url")
    indexed = ("public_id",)
    search_help_text = "Part of an id, an owner or a url, or the name of an owner"
    empty_hint = "Accounts and tenants create them by the webhooks API of a product."

    def get_queryset(self, request: HttpRequest) -> QuerySet[Endpoint]:
        return super().get_queryset(request).defer("custom_headers")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Endpoint], search_term: str
    ) -> tuple[QuerySet[Endpoint], bool]:
        rows, may_repeat = super().get_search_results(request, queryset, search_term)
        if term := search_term.strip():
            rows |= queryset.filter(named(term))
        return rows, may_repeat

    def list_title(self, changelist: NewestChangeList) -> str:
        """Return for example `Failing endpoints`; deleted ones are hidden unless asked for."""
        spec = next(
            spec for spec in changelist.filter_specs if isinstance(spec, HealthFilter)
        )
        health = base.chosen(changelist, spec)
        rest = [
            chip.text for chip in changelist.chips if not chip.text.startswith("health")
        ]
        return ", ".join([f"{health} endpoints".strip().capitalize(), *rest])

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        """Read the statistics of all rows at once."""
        changelist = super().get_changelist_instance(request)
        rows = list(changelist.result_list)
        days = charts.of_endpoints(rows, now=timezone.now())
        states = endpoint_state.describe_all(rows)
        for endpoint in rows:
            endpoint.day = days[endpoint.pk]
            endpoint.sentence = states[endpoint.pk].sentence
        owners.attach(rows, site=self.admin_site, request=request)
        return changelist

    # The list.

    @admin.display(description="endpoint")
    def shown_url(self, obj: Endpoint) -> SafeString:
        is_static = obj.static_key is not None
        badge = display.badge("neutral", "From the configuration") if is_static else ""
        cell = '<span title="{}">{}</span><br><code>{}</code> {}'
        path = display.host_and_path(obj.url)
        return format_html(cell, obj.url, path, obj.public_id, badge)

    @admin.display(description="state")
    def shown_health(self, obj: Endpoint) -> SafeString:
        cell = "{} {} in a row<br>{}" if obj.consecutive_failures else "{}{}<br>{}"
        count = failures(obj) if obj.consecutive_failures else ""
        return format_html(cell, badge(obj), count, obj.sentence)

    @admin.display(description="success, p95")
    def success(self, obj: Endpoint) -> SafeString | None:
        if (share := obj.day.success) is None:
            return None
        return format_html("{}<br>{}", share, obj.day.p95 or "")

    @admin.display(description="24 h")
    def chart(self, obj: Endpoint) -> SafeString:
        return render_to_string("admin/webhooks_core/chart.html", {"day": obj.day})

    # The page.

    def page_context(self, request: HttpRequest, obj: Endpoint) -> dict[str, Any]:
        now, profile = timezone.now(), profiles.find(obj.profile)
        period = charts.period_of(request.GET.get("period", ""))
        days = charts.of_endpoints([obj], now=now, period=period)
        owners.attach([obj], site=self.admin_site, request=request)
        is_trustable = bool(webhook_settings.ALLOWED_TARGETS or obj.trusted)
        return {
            "endpoint": obj,
            "owner": owners.label(obj),
            "subtitle": None,
            "health": badge(obj),
            "advice": "" if obj.refused_at else Health.of(obj).advice,
            "state": endpoint_state.describe(obj, now=now),
            "changes": changes.of(obj)[:RECENT],
            "suspended": _count_suspended(obj),
            "most_suspended": MAX_SUSPENDED,
            "event_types": _event_types(obj, profile),
            "filter": obj.filter and orjson.dumps(obj.filter).decode(),
            "failures": failures(obj),
            "day": days[obj.pk],
            "periods": charts.PERIODS.values(),
            "custom_headers": _custom_headers(obj),
            "secrets": obj.endpointsecret_set.order_by("-pk"),
            "recent": _recent(obj),
            "allowed_targets": webhook_settings.ALLOWED_TARGETS,
            "may_trust": obj.static_key is None and is_trustable,
            "static_source": static_source(obj),
            "may_act": self.has_act_permission(request) and not obj.deleted_at,
            "may_test": profile is not None and profile.ping is not None,
            "replay_choices": resending.REPLAY_CHOICES,
            "replay": resending.question(request, partial(_count_replayable, obj)),
        }

    # The operations.

    def _done(
        self, request: HttpRequest, endpoint: Endpoint, text: str, *, log: str
    ) -> HttpResponse:
        self.log_change(request, endpoint, log)
        return self.back(request, endpoint.pk, text)

    def send_test(self, request: HttpRequest, endpoint: Endpoint) -> HttpResponse:
        profile = profiles.find(endpoint.profile)
        if profile is None or profile.ping is None:
            raise RefusedError("Nothing was sent: its product has no test event.")
        if not (endpoint.is_subscribed and profile.enabled):
            raise RefusedError(
                "Nothing was sent: the endpoint is disabled or switched off."
            )
        ping = profile.ping(endpoint.public_id)
        event = publishing.publish_test(
            endpoint, event_type=ping.type, data=ping.data, **ping.metadata
        )
        self.log_change(request, endpoint, f"Sent the test event {event.public_id}.")
        delivery = Delivery.objects.get(event=event)
        self.message_user(request, "Queued. The response appears here.")
        return redirect("admin:webhooks_core_delivery_change", delivery.pk)

    def enable(self, request: HttpRequest, endpoint: Endpoint) -> HttpResponse:
        if not endpoint.may_be_enabled:
            raise RefusedError("It is not disabled.", "WARNING")
        endpoints.enable(endpoint, by=base.operator(request))
        text = "Enabled: pending deliveries are sent now."
        return self._done(request, endpoint, text, log="Enabled.")

    def pause(self, request: HttpRequest, endpoint: Endpoint) -> HttpResponse:
        if endpoint.paused_at is not None:
            raise RefusedError("It is paused already.", "WARNING")
        endpoints.pause(endpoint, by=base.operator(request))
        text = "Paused: events published from now on wait."
        return self._done(request, endpoint, text, log="Paused.")

    def resume(self, request: HttpRequest, endpoint: Endpoint) -> HttpResponse:
        if endpoint.paused_at is None:
            raise RefusedError("It is not paused.", "WARNING")
        endpoints.resume(endpoint, by=base.operator(request))
        text = "Resumed: pending deliveries are sent now."
        return self._done(request, endpoint, text, log="Resumed.")

    def set_trusted(self, request: HttpRequest, endpoint: Endpoint) -> HttpResponse:
        """Allow or forbid the networks of WEBHOOK_ALLOWED_TARGETS for an endpoint."""
        if endpoint.static_key is not None:
            raise RefusedError("What the configuration declares may always go there.")
        trusted = "trusted" in request.POST
        endpoints.update(endpoint, by=base.operator(request), trusted=trusted)
        text = f"Internal networks: {'allowed' if trusted else 'not allowed'}."
        return self._done(request, endpoint, text, log=text)

    def replay_failed(self, request: HttpRequest, endpoint: Endpoint) -> HttpResponse:
        since = resending.time_of(request.POST.get("since", ""))
        if since is None:
            raise RefusedError("Since when? Count first.")
        if _count_replayable(endpoint, since) > resending.REPLAYED_AT_ONCE:
            raise RefusedError(
                f"Nothing was queued: more than {resending.REPLAYED_AT_ONCE} at once."
            )
        try:
            by = base.operator(request)
            queued = replays.replay_failed(endpoint, since=since, by=by)
        except NotSubscribedError as error:
            text = "Nothing was queued: the endpoint is disabled or inactive."
            raise RefusedError(text) from error
        log = f"Replayed {queued} failed since {since:%F %T} UTC."
        text = f"Queued {queued} again, 50 per second."
        return self._done(request, endpoint, text, log=log)


def _count_suspended(endpoint: Endpoint) -> int:
    """Return how many deliveries are suspended, up to MAX_SUSPENDED."""
    if endpoint.is_receiving:
        return 0
    waiting = Delivery.objects.waiting().filter(endpoint=endpoint)
    return waiting[:MAX_SUSPENDED].count()


def _count_replayable(endpoint: Endpoint, since: datetime) -> int:
    """Count failed deliveries, up to one more than may be replayed at once."""
    failed = replays.failed_since(endpoint, since)
    return failed[: resending.REPLAYED_AT_ONCE + 1].count()


def _custom_headers(endpoint: Endpoint) -> str:
    try:
        return ", ".join(payloads.custom_names(endpoint))
    except SecretUnreadableError:
        return "none of WEBHOOK_SECRET_KEYS decrypts them"


def _recent(endpoint: Endpoint) -> list[tuple[Delivery, SafeString, str]]:
    """Return the newest deliveries, each with its status and its last result."""
    newest = Delivery.objects.page(endpoint, number=1, size=RECENT)
    return [
        (row, display.state(row), display.result(display.last_attempt(row)))
        for row in display.with_attempts(newest)
    ]
