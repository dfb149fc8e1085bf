"""Events, and their deliveries: the lists, and the page of one with what was sent and answered."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from webhooks_core.admin import base
from webhooks_core.admin.base import HistoryAdmin, ReadOnlyAdmin, row_action
from webhooks_core.changes import Actor
from webhooks_core.models import Attempt, Delivery, Endpoint, Event
from webhooks_core.owners import details, resending, wording

MOST_ENDPOINTS = 1_000


class AttemptInline(admin.TabularInline[Attempt, Delivery]):
    model = Attempt
    max_num = 0
    can_delete = False
    ordering = ("number",)
    fields = ("shown_result", "started", "sent", "answered")
    readonly_fields = fields

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return True  # who may see the delivery

    @admin.display(description="result")
    def shown_result(self, obj: Attempt) -> SafeString:
        tone = "success" if obj.outcome == "ok" else "error"
        result = wording.result(obj)
        label, error = base.badge(tone, result), obj.error.removeprefix(result)
        again = "Sent again on a new connection." if obj.is_repeated else ""
        return format_html("{}<br>{} {}", label, error, again)

    @admin.display(description="started, took")
    def started(self, obj: Attempt) -> SafeString:
        return format_html("{}<br>{} ms", base.time(obj.started_at), obj.duration_ms)

    @admin.display
    def sent(self, obj: Attempt) -> SafeString:
        url, head = obj.details.get("url", ""), obj.details.get("request", "")
        return base.pre(f"POST {url}\n{head}" if head else "nothing")

    @admin.display
    def answered(self, obj: Attempt) -> SafeString:
        text = details.Text.of(bytes(obj.response_body)).text
        head = obj.details.get("response", "")
        address = obj.details.get("address", "")
        return base.pre(f"{address}\n{head}\n\n{text}".strip() or "nothing")


def delivery_line(delivery: Delivery) -> SafeString:
    """Return a delivery as one line with a link: its state, its type, its last error."""
    page = reverse("admin:webhooks_core_delivery_change", args=(delivery.pk,))
    line = '{} <a href="{}">{}</a> {} {}'
    label = base.badge(*wording.state(delivery))
    created = base.time(delivery.created_at)
    return format_html(
        line, label, page, delivery.event.type, created, delivery.last_error[:80]
    )


@admin.register(Delivery)
class DeliveryAdmin(HistoryAdmin[Delivery]):
    list_display = ("public_id", "shown_state", "type", "sent_to", "created")
    list_filter = ("status", "created_at")
    search_fields = ("public_id",)
    search_help_text = (
        "The complete id of a delivery or an event; part of an endpoint's id or URL"
    )
    actions = ("resend",)
    inlines = (AttemptInline,)
    fields = (
        *("shown_state", "waits", "last_error", "sent_to", "public_id", "event_link"),
        *("trigger", "created", "attempts", "body"),
    )
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[Delivery]:
        rows = super().get_queryset(request).select_related("endpoint", "event")
        return rows.defer("endpoint__custom_headers", "event__body")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Delivery], search_term: str
    ) -> tuple[QuerySet[Delivery], bool]:
        """Look an id up in its index, and the endpoints of a URL first: they are few."""
        term = search_term.strip()
        if not term:
            return queryset, False
        if term.startswith(("dlv_", "evt_")):
            own = queryset.filter(public_id=term)
            return own | queryset.filter(event__public_id=term), False
        endpoints = Endpoint.objects.filter(url__icontains=term)
        endpoints |= Endpoint.objects.filter(public_id__contains=term)
        pks = list(endpoints.values_list("pk", flat=True)[:MOST_ENDPOINTS])
        return queryset.filter(endpoint__in=pks), False

    # The columns and fields.

    @admin.display
    def type(self, obj: Delivery) -> str:
        return obj.event.type

    @admin.display(description="state")
    def shown_state(self, obj: Delivery) -> SafeString:
        attempts = wording.summary(obj)
        return format_html("{} {}", base.badge(*wording.state(obj)), attempts)

    @admin.display(description="next attempt")
    def waits(self, obj: Delivery) -> str:
        return wording.waits(obj, timezone.now()) or "-"

    @admin.display(description="endpoint")
    def sent_to(self, obj: Delivery) -> SafeString:
        page = reverse("admin:webhooks_core_endpoint_change", args=(obj.endpoint_id,))
        path = base.host_and_path(obj.endpoint.url)
        return format_html('<a href="{}">{}</a>', page, path)

    @admin.display
    def created(self, obj: Delivery) -> SafeString | None:
        return base.time(obj.created_at)

    @admin.display(description="event")
    def event_link(self, obj: Delivery) -> SafeString:
        page = reverse("admin:webhooks_core_event_change", args=(obj.event_id,))
        every, event = base.deliveries_of(obj.event), obj.event
        line = '<a href="{}">{}</a>, {} bytes; {}'
        return format_html(line, page, event.type, event.size, every)

    @admin.display(description="body, exactly as signed")
    def body(self, obj: Delivery) -> SafeString:
        return base.pre(details.Text.of(bytes(obj.event.body)).text)

    # What is done with them.

    def buttons(self, obj: Delivery) -> Collection[str]:
        return self.actions

    @row_action("Resend")
    def resend(self, delivery: Delivery, by: Actor) -> str:
        is_same = resending.resend(delivery, by=by).pk == delivery.pk
        return "The next attempt is due now." if is_same else "Resent."


@admin.register(Event)
class EventAdmin(ReadOnlyAdmin[Event]):
    list_display = ("public_id", "type", "profile", "owner", "size", "created_at")
    list_filter = ("profile", "created_at")
    ordering = ("-pk",)
    sortable_by = ()
    search_fields = ("public_id__exact",)
    indexed = ("public_id",)
    search_help_text = "The complete id of an event"
    fields = (
        *("public_id", "type", "profile", "owner", "size", "created_at"),
        *("deliveries", "text"),
    )
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[Event]:
        return super().get_queryset(request).defer("body")

    @admin.display
    def deliveries(self, obj: Event) -> SafeString:
        return base.deliveries_of(obj)

    @admin.display(description="body")
    def text(self, obj: Event) -> SafeString:
        return base.pre(details.Text.of(bytes(obj.body)).text)
