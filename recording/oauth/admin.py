"""The toolkit's admin without what holds or changes secrets; an application ends with its tokens."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from webhooks_core.admin.base import ReadOnlyAdmin


class ApplicationAdmin(admin.ModelAdmin[Any]):
    """Applications; the redirect policy holds here as in registration."""

    fields = (
        *("name", "redirect_uris", "client_id", "token_endpoint_auth_method"),
        *("registration_source", "registered_address", "created"),
    )
    readonly_fields = fields[2:]
    list_display = ("name", "token_endpoint_auth_method", "created")
    list_filter = ("registration_source",)
    search_fields = ("name", "client_id", "registered_address")
    ordering = ("-created",)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Delete an application with its tokens, which nobody may delete alone."""
        deleted, counts, _, protected = super().get_deleted_objects(objs, request)
        return deleted, counts, set(), protected

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Refuse: `manage.py createapplication` shows a secret once, a form would keep it."""
        return False


class RefreshTokenAdmin(ReadOnlyAdmin[Any]):
    """Refresh tokens: the live ones are the connections."""

    fields = ("user", "application", "token_family", "created", "revoked")
    list_display = ("pk", "user", "application", "created", "revoked")
    list_filter = (("revoked", admin.EmptyFieldListFilter),)
    list_select_related = ("application", "user")
    search_fields = ("application__name", "application__client_id", "user__username")
