"""The catalogue: which events there are, what they hold, and how their products send them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from webhooks_core import profiles
from webhooks_core.admin import display, owners
from webhooks_core.admin.base import HistoryAdmin, NewestChangeList, newest_ids
from webhooks_core.admin.filters import TypeFilter
from webhooks_core.models import Event
from webhooks_core.profiles import EventType, WebhookProfile


class OwnTypeFilter(TypeFilter):
    field = "type"


@dataclass(frozen=True, slots=True)
class Entry:
    """An event type as it is shown, its sample and schema as JSON."""

    type: EventType
    sample: str
    schema: str


@admin.register(Event)
class EventAdmin(HistoryAdmin[Event]):
    list_display = ("named", "owned_by", "in_bytes", "created")
    list_filter = (OwnTypeFilter,)
    search_fields = ("public_id",)
    search_help_text = "The whole id of an event"
    empty_hint = "The event catalogue tells which there may be."
    fields = (
        *("shown_id", "type", "profile", "owned"),
        *("in_bytes", "created", "dedupe_key", "deliveries", "text"),
    )
    change_list_template = "admin/webhooks_core/event/list.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Event]:
        return super().get_queryset(request).defer("body")

    def newest(self, shown: NewestChangeList, rows: QuerySet[Any]) -> list[int]:
        """Return them of all events: an index finds what the filter and the search leave."""
        return newest_ids(rows)

    def get_readonly_fields(
        self, request: HttpRequest, obj: Event | None = None
    ) -> Any:
        return self.fields

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        shown = super().get_changelist_instance(request)
        rows = shown.result_list = list(shown.result_list)
        owners.name(rows, site=self.admin_site, request=request)
        return shown

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Event | None:
        event = super().get_object(request, object_id, from_field)
        if event is not None:
            owners.name([event], site=self.admin_site, request=request)
        return event

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Event], search_term: str
    ) -> tuple[QuerySet[Event], bool]:
        term = search_term.strip()
        return queryset.filter(public_id=term) if term else queryset, False

    @admin.display(description="event")
    def shown_id(self, obj: Event) -> SafeString:
        return format_html("<code>{}</code>", obj.public_id)

    @admin.display(description="event, type")
    def named(self, obj: Event) -> SafeString:
        return format_html("{}<br>{}", self.shown_id(obj), obj.type)

    @admin.display(description="product, owner")
    def owned_by(self, obj: Event) -> SafeString:
        return owners.with_product(obj)

    @admin.display(description="owner")
    def owned(self, obj: Event) -> str:
        return owners.shown(obj)

    @admin.display(description="bytes")
    def in_bytes(self, obj: Event) -> str:
        return f"{obj.size:,}"

    @admin.display
    def created(self, obj: Event) -> SafeString | None:
        return display.when(obj.created_at)

    @admin.display
    def deliveries(self, obj: Event) -> SafeString:
        """Link to them: there may be thousands."""
        found = f"{reverse('admin:webhooks_core_delivery_changelist')}?q="
        link = '<a href="{}{}">all deliveries of this event</a>'
        return format_html(link, found, obj.public_id)

    @admin.display(description="body")
    def text(self, obj: Event) -> SafeString:
        return format_html("<pre>{}</pre>", display.Text.of(bytes(obj.body)).text)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.catalogue)
        name = "webhooks_core_event_catalogue"
        return [path("catalogue/", view, name=name), *super().get_urls()]

    def catalogue(self, request: HttpRequest) -> HttpResponse:
        """Show the event types of all products: from the code, without a query."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        context = self.admin_site.each_context(request) | {
            "title": "Event catalogue",
            "opts": self.opts,
            "products": [
                (it, _pauses(it), _entries(it)) for it in profiles.registered()
            ],
        }
        template = "admin/webhooks_core/event/catalogue.html"
        return TemplateResponse(request, template, context)


def _entries(profile: WebhookProfile) -> list[Entry]:
    return [
        Entry(it, _json(it.sample), _json(it.schema) if it.schema else "")
        for it in profile.event_types.values()
    ]


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _pauses(profile: WebhookProfile) -> str:
    return ", ".join(f"{pause:g} s" for pause in profile.retry.delays)
