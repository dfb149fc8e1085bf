"""Events, as they were published."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from webhooks_core.admin import display
from webhooks_core.admin.base import ReadOnlyAdmin
from webhooks_core.models import Event
from webhooks_core.owners import details


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
        *("dedupe_key", "deliveries", "text"),
    )
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[Event]:
        return super().get_queryset(request).defer("body")

    @admin.display
    def deliveries(self, obj: Event) -> SafeString:
        """Return a link, since there may be thousands."""
        address = f"{reverse('admin:webhooks_core_delivery_changelist')}?q="
        link = '<a href="{}{}">all deliveries of this event</a>'
        return format_html(link, address, obj.public_id)

    @admin.display(description="body")
    def text(self, obj: Event) -> SafeString:
        return display.pre(details.Text.of(bytes(obj.body)).text)
