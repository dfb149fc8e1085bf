"""Deliveries: the list, and the page of one with its attempts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from webhooks_core import profiles
from webhooks_core.admin import base, display
from webhooks_core.admin.base import (
    NewestChangeList,
    RefusedError,
)
from webhooks_core.admin.filters import (
    CodeFilter,
    CreatedFilter,
    DeliveryFilter,
    DeliveryTypeFilter,
    ErrorFilter,
    StatusFilter,
    TriggerFilter,
    created_range,
)
from webhooks_core.admin.resending import ResendFailedAdmin
from webhooks_core.models import Delivery, Endpoint, Event
from webhooks_core.models.lookups import among
from webhooks_core.owners import attempts, payloads, replays
from webhooks_core.owners.endpoint_state import Health
from webhooks_core.owners.id_ranges import IdRange

RESENT_AT_ONCE = 500
NOT_SUBSCRIBED = (
    "the endpoint is deleted, disabled or inactive, its product is not installed, or the event "
    "was removed for its age."
)
DUE_NOW = "Its next attempt is due now."
NOT_WAITING = "Nothing was changed: it has ended, or an attempt is in progress."


@admin.register(Delivery)
class DeliveryAdmin(ResendFailedAdmin):
    list_links = {
        "admin:webhooks_core_delivery_resend_failed": "Resend all that failed…"
    }
    change_form_template = "admin/webhooks_core/delivery/page.html"
    pages = {**ResendFailedAdmin.pages, "body": "<int:pk>/body/"}
    operations = ("resend", "retry_now", "cancel")
    list_display = ("id_and_type", "state", "last_result", "sent_to")
    list_filter = (
        *(StatusFilter, CreatedFilter, CodeFilter, ErrorFilter),
        *(DeliveryTypeFilter, TriggerFilter),
    )
    search_fields = ("public_id",)
    search_help_text = "The complete id of a delivery, an event or an endpoint"
    actions = ("resend_selected",)
    empty_hint = "Each event creates one for each endpoint that receives its type."

    def get_queryset(self, request: HttpRequest) -> QuerySet[Delivery]:
        return display.with_attempts(super().get_queryset(request))

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Delivery], search_term: str
    ) -> tuple[QuerySet[Delivery], bool]:
        if term := search_term.strip():
            queryset = queryset.filter(**_id_lookup(term))
        return queryset, False

    # The list.

    def newest(self, changelist: NewestChangeList, rows: QuerySet[Any]) -> list[int]:
        """Return the matches among the newest ids of the most selective filter."""
        fewest: Sequence[int] | None = None
        for ids in _sources(changelist):
            if fewest is None or len(ids) < len(fewest):
                fewest = ids
            if len(fewest) < base.LISTED_AT_MOST:
                break
        if fewest is None:
            return super().newest(changelist, rows)
        changelist.is_cut = len(fewest) == base.LISTED_AT_MOST
        if changelist.is_cut:
            changelist.next_before = min(fewest)
        if len(changelist.params) == 1:
            return sorted(set(fewest), reverse=True)
        return base.newest_ids(rows.filter(among(set(fewest))))

    def bounds(self, request: HttpRequest) -> IdRange:
        return created_range(Delivery, request, super().bounds(request))

    def list_title(self, changelist: NewestChangeList) -> str:
        """Return for example `Failed deliveries to hooks.example.com/acme, created: the last hour`."""
        specs = changelist.filter_specs
        chosen = {type(spec): base.chosen(changelist, spec) for spec in specs}
        state = chosen.pop(StatusFilter, "")
        title = f"{state} deliveries".strip().capitalize()
        if changelist.query:
            title += f" {self.search_name(changelist.query)}"
        rest = [
            base.text_of(changelist, spec) for spec in specs if chosen.get(type(spec))
        ]
        return ", ".join([title, *rest])

    def search_name(self, term: str) -> str:
        """Return for example `to hooks.example.com/acme`, of an endpoint's id."""
        endpoint = Endpoint.objects.filter(public_id=term.strip()).only("url").first()
        return f"to {display.host_and_path(endpoint.url)}" if endpoint else f"of {term}"

    @admin.display(description="delivery, type")
    def id_and_type(self, obj: Delivery) -> SafeString:
        trigger = "" if obj.trigger == Delivery.Trigger.EVENT else f" ({obj.trigger})"
        cell = "<code>{}</code><br>{}{}"
        return format_html(cell, obj.public_id, obj.event.type, trigger)

    @admin.display(description="status, next attempt")
    def state(self, obj: Delivery) -> SafeString:
        at = None if display.is_suspended(obj) else obj.next_attempt_at
        return format_html("{}<br>{}", display.state(obj), display.time(at) or "")

    @admin.display(description="endpoint, created")
    def sent_to(self, obj: Delivery) -> SafeString:
        host = display.host_and_path(obj.endpoint.url)
        page = reverse("admin:webhooks_core_endpoint_change", args=(obj.endpoint_id,))
        cell = '<a href="{}" title="{}">{}</a><br>{}'
        created = display.time(obj.created_at)
        return format_html(cell, page, obj.endpoint.public_id, host, created)

    @admin.display(description="last result, latency")
    def last_result(self, obj: Delivery) -> SafeString | None:
        if (last := display.last_attempt(obj)) is None:
            return None
        result = display.badge(attempts.tone(last), display.result(last))
        plural = "" if obj.attempts == 1 else "s"
        latency = f"{last.duration_ms:,}"
        cell = "{} {} ms<br>{} attempt{}"
        return format_html(cell, result, latency, obj.attempts, plural)

    @admin.action(description="Resend selected deliveries", permissions=["act"])
    def resend_selected(
        self, request: HttpRequest, queryset: QuerySet[Delivery]
    ) -> None:
        selected = list(queryset[: RESENT_AT_ONCE + 1])
        if len(selected) > RESENT_AT_ONCE:
            text = f"Nothing was resent: choose at most {RESENT_AT_ONCE} at once."
            self.message_user(request, text, "ERROR")
            return
        resent = self._resend(request, selected[::-1])
        queued = len(resent) - resent.count(None)
        self.message_user(request, f"Queued {queued} of {len(resent)} again.")
        if queued < len(resent):
            self.message_user(request, f"Left out where {NOT_SUBSCRIBED}", "WARNING")

    # The page.

    def page_context(self, request: HttpRequest, obj: Delivery) -> dict[str, Any]:
        now, raw = timezone.now(), bytes(obj.event.body)
        profile = profiles.find(obj.endpoint.profile)
        body, headers = payloads.Text.of(raw), payloads.headers(obj, now=now)
        same = Delivery.objects.filter(event=obj.event_id, endpoint=obj.endpoint_id)
        return {
            "delivery": obj,
            "subtitle": None,
            "state": display.state(obj),
            "is_suspended": display.is_suspended(obj),
            "endpoint_health": Health.of(obj.endpoint).value,
            "now": now,
            "is_due": bool(obj.next_attempt_at and obj.next_attempt_at <= now),
            "most_attempts": profile and profile.retry.max_attempts,
            "steps": display.timeline(obj.attempt_set.order_by("number")),
            "body": body,
            "pretty": payloads.pretty(raw),
            "headers": headers,
            "curl": payloads.curl(obj, headers, body) if headers else "",
            "others": same.exclude(pk=obj.pk).order_by("-replay_number")[:20],
            "is_awaited": _is_awaited(obj, now),
            "may_act": self.has_act_permission(request),
            "is_pending": obj.status == Delivery.Status.PENDING,
        }

    def body(self, request: HttpRequest, pk: int) -> HttpResponse:
        return payloads.download(self.row(request, pk).event)

    def resend(self, request: HttpRequest, delivery: Delivery) -> HttpResponse:
        [replay] = self._resend(request, [delivery])
        if replay is None:
            raise RefusedError(f"Nothing was queued: {NOT_SUBSCRIBED}")
        if replay.pk == delivery.pk:
            return self.back(request, delivery.pk, DUE_NOW)
        return self.back(request, replay.pk, f"Queued again as {replay.public_id}.")

    def retry_now(self, request: HttpRequest, delivery: Delivery) -> HttpResponse:
        if not replays.retry_now(delivery, by=base.operator(request)):
            raise RefusedError(NOT_WAITING)
        self.log_change(request, delivery, "Retried at once.")
        return self.back(request, delivery.pk, DUE_NOW)

    def cancel(self, request: HttpRequest, delivery: Delivery) -> HttpResponse:
        if not replays.cancel(delivery, by=base.operator(request)):
            raise RefusedError(NOT_WAITING)
        self.log_change(request, delivery, "Cancelled.")
        return self.back(request, delivery.pk, "Cancelled: it is not sent any more.")

    def _resend(
        self, request: HttpRequest, deliveries: Sequence[Delivery]
    ) -> list[Delivery | None]:
        """Resend those whose product is installed; log what was sent."""
        known = [row for row in deliveries if profiles.find(row.endpoint.profile)]
        sent = replays.resend_all(known, by=base.operator(request))
        for delivery, replay in zip(known, sent, strict=True):
            if replay is not None:
                self.log_change(request, delivery, f"Resent as {replay.public_id}.")
        return sent + [None] * (len(deliveries) - len(known))


def _sources(changelist: NewestChangeList) -> Iterator[Sequence[int]]:
    """Yield the newest ids of the search and of each filter that matches few rows."""
    endpoints, bounds = Endpoint.objects.all(), changelist.bounds
    if term := changelist.query.strip():
        lookup = _id_lookup(term)
        yield base.newest_ids(bounds.of(Delivery.objects.filter(**lookup)))
        if "endpoint" in lookup:
            endpoints = endpoints.filter(pk=lookup["endpoint"])
    for spec in changelist.filter_specs:
        if not isinstance(spec, DeliveryFilter) or not spec.is_known:
            continue
        if (ids := spec.newest(endpoints, bounds)) is not None:
            yield ids


def _id_lookup(public_id: str) -> dict[str, int]:
    """Return the filter for an id; each lookup reads one unique index."""
    for field, model in (("pk", Delivery), ("event", Event), ("endpoint", Endpoint)):
        rows: Any = model._default_manager  # noqa: SLF001 - public by use
        pk = rows.filter(public_id=public_id).values_list("pk", flat=True).first()
        if pk is not None:
            return {field: pk}
    return {"pk": 0}


def _is_awaited(delivery: Delivery, now: datetime) -> bool:
    """Return True for a pending test of less than a minute ago: an operator awaits its result."""
    return (
        delivery.trigger == Delivery.Trigger.TEST
        and delivery.status == Delivery.Status.PENDING
        and not delivery.last_error
        and now - delivery.created_at < timedelta(minutes=1)
    )
