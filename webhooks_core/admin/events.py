"""Events, and the page of event types with their samples and schemas."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from webhooks_core import profiles
from webhooks_core.admin import base, display, owners
from webhooks_core.admin.base import (
    HistoryAdmin,
    NewestChangeList,
    newest_ids,
)
from webhooks_core.admin.filters import CreatedFilter, TypeFilter, created_range
from webhooks_core.models import Event
from webhooks_core.owners import payloads
from webhooks_core.owners.id_ranges import IdRange
from webhooks_core.profiles import EventType


class EventTypeFilter(TypeFilter):
    field = "type"


@admin.register(Event)
class EventAdmin(HistoryAdmin[Event]):
    list_display = ("id_and_type", owners.with_product, "in_bytes", "created")
    list_filter = (CreatedFilter, EventTypeFilter)
    search_fields = ("public_id",)
    search_help_text = "The complete id of an event"
    empty_hint = "The page Event types lists those that products send."
    fields = (
        *("shown_id", "type", "profile", "owned"),
        *("in_bytes", "created", "dedupe_key", "deliveries", "text"),
    )
    readonly_fields = fields
    pages = {"catalogue": "catalogue/"}
    list_links = {"admin:webhooks_core_event_catalogue": "Event types"}

    def get_queryset(self, request: HttpRequest) -> QuerySet[Event]:
        return super().get_queryset(request).defer("body")

    def newest(self, changelist: NewestChangeList, rows: QuerySet[Any]) -> list[int]:
        """Return the newest of all matches: filter and search have indexes."""
        pks = newest_ids(rows)
        if len(pks) == base.LISTED_AT_MOST:
            changelist.next_before = pks[-1]
        return pks

    def bounds(self, request: HttpRequest) -> IdRange:
        return created_range(Event, request, super().bounds(request))

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        changelist = super().get_changelist_instance(request)
        rows = changelist.result_list = list(changelist.result_list)
        owners.attach(rows, site=self.admin_site, request=request)
        return changelist

    def page_context(self, request: HttpRequest, obj: Event) -> dict[str, Any]:
        owners.attach([obj], site=self.admin_site, request=request)
        return {}

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Event], search_term: str
    ) -> tuple[QuerySet[Event], bool]:
        if term := search_term.strip():
            queryset = queryset.filter(public_id=term)
        return queryset, False

    @admin.display(description="event")
    def shown_id(self, obj: Event) -> SafeString:
        return format_html("<code>{}</code>", obj.public_id)

    @admin.display(description="event, type")
    def id_and_type(self, obj: Event) -> SafeString:
        return format_html("{}<br>{}", self.shown_id(obj), obj.type)

    @admin.display(description="owner")
    def owned(self, obj: Event) -> str:
        return owners.label(obj)

    @admin.display(description="bytes")
    def in_bytes(self, obj: Event) -> str:
        return f"{obj.size:,}"

    @admin.display
    def created(self, obj: Event) -> SafeString | None:
        return display.time(obj.created_at)

    @admin.display
    def deliveries(self, obj: Event) -> SafeString:
        """Return a link, since there may be thousands."""
        address = f"{reverse('admin:webhooks_core_delivery_changelist')}?q="
        link = '<a href="{}{}">all deliveries of this event</a>'
        return format_html(link, address, obj.public_id)

    @admin.display(description="body")
    def text(self, obj: Event) -> SafeString:
        return format_html("<pre>{}</pre>", payloads.Text.of(bytes(obj.body)).text)

    def catalogue(self, request: HttpRequest) -> HttpResponse:
        """Show the event types of all products, without a query."""
        template = "admin/webhooks_core/event/catalogue.html"
        products = [
            (profile, [_with_json(kind) for kind in profile.event_types.values()])
            for profile in profiles.registered()
        ]
        return self.render(request, template, title="Event types", products=products)


def _with_json(event_type: EventType) -> tuple[EventType, str, str]:
    """Return an event type with its sample and its schema as JSON."""
    sample, schema = (
        payloads.pretty_json(value) for value in (event_type.sample, event_type.schema)
    )
    return event_type, sample, schema
