"""Gateway keys, decisions and documents for operators: shown and revoked, never edited."""

from __future__ import annotations

from typing import Any, TypeVar

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils import timezone

from gateway import keys
from gateway.models import Document, GatewayKey, PolicyDecision

ModelT = TypeVar("ModelT", bound=Model)

# Enough to recognise a document by; the rest of some megabytes helps nobody in a page.
SHOWN_CHARACTERS = 20_000


class History(admin.ModelAdmin[ModelT]):
    """Shows rows and changes none: what happened stays as it was."""

    list_per_page = 50
    ordering = ("-id",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(
        self, request: HttpRequest, obj: ModelT | None = None
    ) -> bool:
        return False

    def has_delete_permission(
        self, request: HttpRequest, obj: ModelT | None = None
    ) -> bool:
        return False


@admin.register(GatewayKey)
class GatewayKeyAdmin(History[GatewayKey]):
    list_display = (
        "shown",
        "tenant",
        "principal",
        "name",
        "state",
        "created_at",
        "expires_at",
        "last_used_at",
    )
    search_fields = ("shown", "tenant", "principal", "name")
    search_help_text = "First characters of the key, tenant, principal or name"
    fields = (*list_display, "revoked_at")
    actions = ("revoke",)

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return admin.ModelAdmin.has_change_permission(self, request)

    @admin.display
    def state(self, obj: GatewayKey) -> str:
        return obj.state(timezone.now())

    @admin.action(description="Revoke selected keys", permissions=["revoke"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[GatewayKey]) -> None:
        live = list(queryset.filter(revoked_at=None))
        revoked = keys.revoke([key.pk for key in live])
        for key in live:
            self.log_change(request, key, "Revoked.")
        self.message_user(request, f"Revoked {revoked}.")


@admin.register(PolicyDecision)
class PolicyDecisionAdmin(History[PolicyDecision]):
    list_display = (
        "created_at",
        "tenant",
        "principal",
        "action",
        "resource",
        "reason",
        "allowed",
    )
    search_fields = ("public_id", "tenant", "principal", "resource", "request_id")
    search_help_text = "Decision id, tenant, principal, resource or request id"
    date_hierarchy = "created_at"
    fields = ("public_id", *list_display, "request_id", "trace_id")


@admin.register(Document)
class DocumentAdmin(History[Document]):
    list_display = (
        "public_id",
        "tenant",
        "principal",
        "title",
        "content_type",
        "size",
        "chunk_count",
        "created_at",
    )
    search_fields = ("public_id", "tenant", "title", "checksum")
    search_help_text = "Document id, tenant, title or checksum"
    date_hierarchy = "created_at"
    fields = (*list_display, "checksum", "characters", "metadata_text", "text")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Document]:
        return Document.objects.without_text().order_by("-id")

    @admin.display(description="metadata")
    def metadata_text(self, obj: Document) -> str:
        return bytes(obj.metadata).decode()

    @admin.display
    def text(self, obj: Document) -> Any:
        more = "\n…" if len(obj.content) > SHOWN_CHARACTERS else ""
        return obj.content[:SHOWN_CHARACTERS] + more
