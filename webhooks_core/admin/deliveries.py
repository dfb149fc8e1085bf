"""Deliveries: the list to find one in, and the page that tells all about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.contrib import admin
from django.db.models import Prefetch, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from webhooks_core import replays
from webhooks_core.admin import base, display
from webhooks_core.admin.base import HistoryAdmin, NewestChangeList
from webhooks_core.admin.filters import (
    DeliveryFilter,
    DeliveryTypeFilter,
    ErrorFilter,
    StatusFilter,
    TriggerFilter,
)
from webhooks_core.admin.health import Health
from webhooks_core.models import Attempt, Delivery, Endpoint, Event
from webhooks_core.models.lookups import among
from webhooks_core.replays import NotSubscribedError

RESENT_AT_ONCE = 500
NOT_SUBSCRIBED = "the endpoint is deleted, disabled, inactive or of no product here."


@admin.register(Delivery)
class DeliveryAdmin(HistoryAdmin[Delivery]):
    change_form_template = "admin/webhooks_core/delivery/page.html"
    operations = ("resend",)
    list_display = (
        "shown_id",
        "state",
        "last_result",
        "sent_to",
    )
    list_filter = (StatusFilter, ErrorFilter, DeliveryTypeFilter, TriggerFilter)
    search_fields = ("public_id",)
    search_help_text = "The whole id of a delivery, an event or an endpoint"
    actions = ("resend_selected",)
    empty_hint = "An event makes one for each endpoint that receives its type."

    def get_queryset(self, request: HttpRequest) -> QuerySet[Delivery]:
        attempts = Attempt.objects.defer("response_body").order_by("number")
        return (
            super()
            .get_queryset(request)
            .select_related("endpoint", "event")
            .defer("event__body", "endpoint__custom_headers")
            .prefetch_related(Prefetch("attempt_set", attempts))
        )

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Delivery], search_term: str
    ) -> tuple[QuerySet[Delivery], bool]:
        if not (term := search_term.strip()):
            return queryset, False
        return queryset.filter(**_found(term)), False

    # The list.

    def newest(self, shown: NewestChangeList, rows: QuerySet[Any]) -> list[int]:
        """Return what fits among the newest that the rarest of the filters leaves."""
        rarest: Sequence[int] | None = None
        for newest in _sources(shown):
            if rarest is None or len(newest) < len(rarest):
                rarest = newest
            if len(rarest) < base.LISTED_AT_MOST:
                break
        if rarest is None:
            return super().newest(shown, rows)
        shown.is_cut = len(rarest) == base.LISTED_AT_MOST
        if len(shown.params) == 1:
            return sorted(set(rarest), reverse=True)
        return base.newest_ids(rows.filter(among(set(rarest))))

    @admin.display(description="delivery, type")
    def shown_id(self, obj: Delivery) -> SafeString:
        extra = "" if obj.trigger == Delivery.Trigger.EVENT else f" ({obj.trigger})"
        shown = "<code>{}</code><br>{}{}"
        return format_html(shown, obj.public_id, obj.event.type, extra)

    @admin.display(description="status, next attempt")
    def state(self, obj: Delivery) -> SafeString:
        at = None if display.is_held(obj) else obj.next_attempt_at
        return format_html("{}<br>{}", display.state(obj), display.when(at) or "")

    @admin.display(description="endpoint, created")
    def sent_to(self, obj: Delivery) -> SafeString:
        host = obj.endpoint.url.partition("://")[2].partition("/")[0]
        page = reverse("admin:webhooks_core_endpoint_change", args=(obj.endpoint_id,))
        link = '<a href="{}" title="{}">{}</a><br>{}'
        made = display.when(obj.created_at)
        return format_html(link, page, obj.endpoint.public_id, host, made)

    @admin.display(description="last result, latency")
    def last_result(self, obj: Delivery) -> SafeString | None:
        if (last := _last(obj)) is None:
            return None
        result = display.badge(display.tone(last), display.result(last))
        plural = "" if obj.attempts == 1 else "s"
        latency = f"{last.duration_ms:,}"
        shown = "{} {} ms<br>{} attempt{}"
        return format_html(shown, result, latency, obj.attempts, plural)

    @admin.action(description="Resend selected deliveries", permissions=["act"])
    def resend_selected(
        self, request: HttpRequest, queryset: QuerySet[Delivery]
    ) -> None:
        chosen = list(queryset[: RESENT_AT_ONCE + 1])
        if len(chosen) > RESENT_AT_ONCE:
            text = f"Nothing was resent: choose at most {RESENT_AT_ONCE} at once."
            self.message_user(request, text, "ERROR")
            return
        made = [self._resend(request, delivery) for delivery in reversed(chosen)]
        queued = len(made) - made.count(None)
        self.message_user(request, f"Queued {queued} of {len(made)} again.")
        if queued < len(made):
            self.message_user(request, f"Left out where {NOT_SUBSCRIBED}", "WARNING")

    # The page.

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.body)
        name = "webhooks_core_delivery_body"
        return [path("<int:pk>/body/", view, name=name), *super().get_urls()]

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        delivery = self.get_object(request, object_id)
        if delivery is not None and self.has_view_permission(request, delivery):
            extra_context = (extra_context or {}) | self._facts(request, delivery)
        return super().change_view(request, object_id, form_url, extra_context)

    def _facts(self, request: HttpRequest, delivery: Delivery) -> dict[str, Any]:
        now, raw = timezone.now(), bytes(delivery.event.body)
        dialect = display.dialect(delivery.endpoint)
        body, sent = display.Text.of(raw), display.headers(delivery, now=now)
        attempts = delivery.attempt_set.order_by("number")
        copies = Delivery.objects.filter(
            event=delivery.event_id, endpoint=delivery.endpoint_id
        )
        return {
            "delivery": delivery,
            "subtitle": None,
            "state": display.state(delivery),
            "is_held": display.is_held(delivery),
            "endpoint_health": Health.of(delivery.endpoint).value,
            "now": now,
            "is_due": bool(
                delivery.next_attempt_at and delivery.next_attempt_at <= now
            ),
            "most_attempts": dialect and dialect.retry.max_attempts,
            "steps": display.timeline(attempts),
            "body": body,
            "pretty": display.pretty(raw),
            "headers": sent,
            "curl": display.curl(delivery, sent, body) if sent else "",
            "copies": copies.exclude(pk=delivery.pk).order_by("-replay_number")[:20],
            "awaits_answer": _awaits_answer(delivery, now),
            "may_act": self.has_act_permission(request),
        }

    def body(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Answer the exact bytes as a file: never as a page."""
        event = self.row(request, pk).event
        name = f'attachment; filename="{event.public_id}.json"'
        return HttpResponse(
            bytes(event.body),
            content_type="application/octet-stream",
            headers={"Content-Disposition": name},
        )

    def resend(self, request: HttpRequest, delivery: Delivery) -> HttpResponse:
        made = self._resend(request, delivery)
        if made is None:
            text = f"Nothing was queued: {NOT_SUBSCRIBED}"
            self.message_user(request, text, "ERROR")
        else:
            self.message_user(request, f"Queued again as {made.public_id}.")
        shown = made or delivery
        return redirect("admin:webhooks_core_delivery_change", shown.pk)

    def _resend(self, request: HttpRequest, delivery: Delivery) -> Delivery | None:
        if display.dialect(delivery.endpoint) is None:
            return None
        try:
            made = replays.replay(delivery)
        except NotSubscribedError:
            return None
        self.log_change(request, delivery, f"Resent as {made.public_id}.")
        return made


def _sources(shown: NewestChangeList) -> Iterator[Sequence[int]]:
    """Yield the newest ids that the search and each filter leave, where they leave few."""
    endpoints = Endpoint.objects.all()
    if term := shown.query.strip():
        found = _found(term)
        yield base.newest_ids(Delivery.objects.filter(**found))
        if "endpoint" in found:
            endpoints = endpoints.filter(pk=found["endpoint"])
    for narrowing in shown.filter_specs:
        if not isinstance(narrowing, DeliveryFilter) or not narrowing.is_known:
            continue
        if (ids := narrowing.newest(endpoints)) is not None:
            yield ids


def _found(term: str) -> dict[str, int]:
    """Return which deliveries an id means: each look-up is one step in one unique index."""
    for field, model in (("pk", Delivery), ("event", Event), ("endpoint", Endpoint)):
        rows: Any = model._default_manager  # noqa: SLF001 - Django's own name for it
        pk = rows.filter(public_id=term).values_list("pk", flat=True).first()
        if pk is not None:
            return {field: pk}
    return {"pk": 0}


def _awaits_answer(delivery: Delivery, now: datetime) -> bool:
    """Tell whether somebody sits before the page of a test that was sent just now."""
    return (
        delivery.trigger == Delivery.Trigger.TEST
        and delivery.status == Delivery.Status.PENDING
        and not delivery.last_error
        and now - delivery.created_at < timedelta(minutes=1)
    )


def _last(delivery: Delivery) -> Attempt | None:
    """Return the last attempt, from what the list has read for all of its rows."""
    attempts = list(delivery.attempt_set.all())
    return attempts[-1] if attempts else None
