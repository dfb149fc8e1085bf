"""The admin of applications and connections: shown and ended, without any secret."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.formats import localize
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import Truncator

from recording.oauth import grants
from recording.oauth.models import AuthMethod
from webhooks_core.admin.base import ReadOnlyAdmin

# The list shows the beginning of a client id, which may be an address. The application's page
# shows it whole.
MAX_ID_LENGTH = 20


class HiddenAdmin(ReadOnlyAdmin[Any]):
    """A table of the toolkit that stays empty here."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        return False


class ApplicationAdmin(admin.ModelAdmin[Any]):
    """Applications; the redirect policy holds here as in registration."""

    fields = (
        "name",
        "redirect_uris",
        "client_id",
        "authentication",
        "registration_source",
        "registered_address",
        "created",
        "last_used_at",
    )
    readonly_fields = fields[2:]
    list_display = (
        "name_and_id",
        "authentication",
        "registration",
        "dates",
    )
    list_filter = ("registration_source", "token_endpoint_auth_method")
    search_fields = ("name", "client_id", "registered_address")
    ordering = ("-created",)
    view_on_site = False
    empty_hint = "Applications register themselves when somebody connects them."
    show_full_result_count = False

    @admin.display(description="application", ordering="name")
    def name_and_id(self, obj: Any) -> SafeString:
        client_id = Truncator(obj.client_id).chars(MAX_ID_LENGTH)
        return format_html("{}<br><code>{}</code>", obj.name, client_id)

    @admin.display(description="authentication", ordering="token_endpoint_auth_method")
    def authentication(self, obj: Any) -> str:
        """Return the method of client authentication; `none` alone reads like a missing value."""
        method: str = obj.token_endpoint_auth_method
        return "none (public)" if method == AuthMethod.NONE else method

    @admin.display(description="registration, address", ordering="registration_source")
    def registration(self, obj: Any) -> SafeString:
        source = obj.get_registration_source_display()
        return format_html("{}<br>{}", source, obj.registered_address or "")

    @admin.display(description="created, last used", ordering="created")
    def dates(self, obj: Any) -> SafeString:
        last_used = localize(obj.last_used_at) if obj.last_used_at else "never used"
        return format_html("{}<br>{}", localize(obj.created), last_used)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Delete an application with its tokens, which nobody may delete alone."""
        deleted, counts, _, protected = super().get_deleted_objects(objs, request)
        return deleted, counts, set(), protected

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Refuse: `manage.py createapplication` shows a secret once, a form would keep it."""
        return False


class TokenAdmin(ReadOnlyAdmin[Any]):
    """Tokens of connections; the only action ends a whole connection."""

    list_select_related = ("application", "user")
    search_fields = ("application__name", "application__client_id", "user__username")
    indexed = ("application__client_id", "user__username")
    ordering = ("-pk",)
    empty_hint = "There is one for each connection that a user has allowed."
    actions = ("end_connections",)

    def has_end_permission(self, request: HttpRequest) -> bool:
        """Return True if the user may end connections: the right to delete tokens."""
        return request.user.has_perm("oauth2_provider.delete_refreshtoken")

    @admin.action(
        description="End the connections of these tokens", permissions=["end"]
    )
    def end_connections(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        rows = list(queryset)
        for row in rows:
            grants.end(row)
        LogEntry.objects.log_actions(
            user_id=request.user.pk or 0,
            queryset=rows,
            action_flag=CHANGE,
            change_message="Connection ended",
        )
        self.message_user(request, "The connections were ended.", messages.SUCCESS)


class AccessTokenAdmin(TokenAdmin):
    """Access tokens, each valid for an hour."""

    fields = ("user", "application", "scope", "resource", "created", "expires")
    list_display = ("pk", "user", "application", "created", "expires")


class RefreshTokenAdmin(TokenAdmin):
    """Refresh tokens: the live ones are the connections."""

    fields = ("user", "application", "resource", "token_family", "created", "revoked")
    list_display = ("pk", "user", "application", "created", "revoked")
    list_filter = (("revoked", admin.EmptyFieldListFilter),)


class GrantAdmin(ReadOnlyAdmin[Any]):
    """Authorization codes, of which only hashes are stored."""

    fields = ("user", "application", "redirect_uri", "scope", "resource")
    list_display = ("pk", "user", "application", "created", "expires")
    empty_hint = "A code lives for a minute, from the consent to the token."
    list_select_related = ("application", "user")
    search_fields = ("application__name", "application__client_id", "user__username")
