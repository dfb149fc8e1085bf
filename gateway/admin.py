"""Gateway keys, decisions and documents for operators: keys are created and revoked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from gateway import keys
from gateway.identity import KEYS, SCOPES
from gateway.models import (
    Document,
    GatewayKey,
    PolicyDecision,
    PortalLink,
)
from gateway.portal import links
from webhooks_core.admin import display
from webhooks_core.admin.base import HistoryAdmin
from webhooks_core.admin.form_fields import LinesField

TONES = {"live": "success", "expired": "neutral", "revoked": "error"}
# Enough to recognise a document: its text may have megabytes.
SHOWN_CHARACTERS = 20_000


class KeyForm(forms.ModelForm[GatewayKey]):
    """The owner, the name and the rights of a new key, whose text is generated."""

    days = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=keys.MAX_DAYS,
        help_text="Until the key expires; without a number, it never does.",
    )
    scopes = forms.TypedMultipleChoiceField(
        required=False,
        empty_value=None,
        choices=[(name, name) for name in SCOPES],
        widget=forms.CheckboxSelectMultiple,
        help_text=f"None means all but {KEYS}, which manages the tenant's keys over HTTP.",
    )
    models = LinesField(
        required=False,
        help_text="The only models that it calls, one a line; empty means all.",
    )
    budget = forms.CharField(
        required=False,
        help_text="What its requests may use besides all other budgets, like cost month 12.5 or "
        "requests hour 1000.",
    )

    class Meta:
        model = GatewayKey
        fields = ("tenant", "principal", "name")

    def clean_models(self) -> list[str] | None:
        return self.cleaned_data["models"] or None

    def clean_budget(self) -> dict[str, Any] | None:
        words = self.cleaned_data["budget"].split()
        try:
            return keys.parse_budget(words) if words else None
        except keys.KeyInputError as error:
            raise forms.ValidationError(str(error)) from error

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = self.cleaned_data
        if not self.errors:
            try:
                keys.check(**cleaned)
            except keys.KeyInputError as error:
                raise forms.ValidationError(str(error)) from error
        return cleaned


class TenantHistoryAdmin(HistoryAdmin[Any]):
    """Rows that a principal of a tenant caused."""

    indexed: tuple[str, ...] = ("public_id", "tenant")

    @admin.display(description="id")
    def shown_id(self, obj: Any) -> SafeString:
        return format_html("<code>{}</code>", obj.public_id)

    @admin.display(description="tenant, principal")
    def caller(self, obj: Any) -> SafeString:
        return format_html("{}<br>{}", obj.tenant, obj.principal)

    @admin.display
    def created(self, obj: Any) -> SafeString | None:
        return display.time(obj.created_at)

    @admin.display
    def revoked(self, obj: Any) -> str:
        return display.time(obj.revoked_at) or "no"


@admin.register(GatewayKey)
class GatewayKeyAdmin(TenantHistoryAdmin):
    form = KeyForm
    operations = {"revoke": "Revoke this key"}
    list_display = (
        *("shown_key", "tenant", "principal", "name", "state"),
        *("created", "expires", "last_used"),
    )
    search_fields = ("display_prefix", "tenant", "principal", "name")
    indexed = ("tenant",)
    search_help_text = "First characters of the key, tenant, principal or name"
    actions = ("revoke_selected",)
    new_fields: ClassVar = (
        *("tenant", "principal", "name", "days"),
        *("scopes", "models", "budget"),
    )
    fields_of_key: ClassVar = (
        *(*list_display, "revoked"),
        *("shown_scopes", "shown_models", "shown_budget", "creator"),
    )

    def get_fields(self, request: HttpRequest, obj: GatewayKey | None = None) -> Any:
        return self.new_fields if obj is None else self.fields_of_key

    def get_readonly_fields(
        self, request: HttpRequest, obj: GatewayKey | None = None
    ) -> Any:
        return () if obj is None else self.fields_of_key

    def has_add_permission(self, request: HttpRequest) -> bool:
        return admin.ModelAdmin.has_add_permission(self, request)

    def shown_operations(self, obj: GatewayKey) -> Mapping[str, str]:
        return {} if obj.revoked_at else self.operations

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        context |= {
            "show_save_and_add_another": False,
            "show_save_and_continue": False,
        }
        return super().render_change_form(request, context, *args, **kwargs)

    # Creation.

    def save_model(
        self, request: HttpRequest, obj: GatewayKey, form: Any, change: bool
    ) -> None:
        created = keys.create(**form.cleaned_data)
        # The admin continues with `obj`: it becomes the row, and holds the text for the page.
        vars(obj).update(vars(created.key), text=created.text)

    def response_add(
        self, request: HttpRequest, obj: GatewayKey, post_url_continue: Any = None
    ) -> HttpResponse:
        """Show the key: no other page does."""
        context = self.admin_site.each_context(request) | {
            "title": "New gateway key",
            "opts": self.opts,
            "shown": obj,
            "secret": vars(obj)["text"],
        }
        template = "admin/gateway/gatewaykey/created.html"
        return TemplateResponse(request, template, context)

    # Revocation.

    def revoke(self, request: HttpRequest, key: GatewayKey) -> HttpResponse:
        if keys.revoke([key.pk]):
            self.log_change(request, key, "Revoked.")
            text = f"Revoked: within {keys.CACHE_S:g} seconds nobody accepts it."
            self.message_user(request, text)
        else:
            self.message_user(request, "It is revoked already.", "WARNING")
        return redirect("admin:gateway_gatewaykey_change", key.pk)

    @admin.action(description="Revoke selected keys", permissions=["act"])
    def revoke_selected(
        self, request: HttpRequest, queryset: QuerySet[GatewayKey]
    ) -> None:
        live = list(queryset.filter(revoked_at=None))
        revoked = keys.revoke([key.pk for key in live])
        for key in live:
            self.log_change(request, key, "Revoked.")
        self.message_user(request, f"Revoked {revoked}.")

    # The columns.

    @admin.display(description="key")
    def shown_key(self, obj: GatewayKey) -> SafeString:
        return format_html("<code>{}…</code>", obj.display_prefix)

    @admin.display
    def state(self, obj: GatewayKey) -> SafeString:
        state = obj.state(timezone.now())
        return display.badge(TONES[state], state.capitalize())

    @admin.display
    def expires(self, obj: GatewayKey) -> str:
        return display.time(obj.expires_at) or "never"

    @admin.display(description="scopes")
    def shown_scopes(self, obj: GatewayKey) -> str:
        return ", ".join(sorted(obj.rights.scopes))

    @admin.display(description="models")
    def shown_models(self, obj: GatewayKey) -> str:
        return ", ".join(obj.allowed_models or ["all of its principal"])

    @admin.display(description="budget of its own")
    def shown_budget(self, obj: GatewayKey) -> str:
        return obj.budget_entry.allowance if obj.budget_entry else "none"

    @admin.display(description="created by")
    def creator(self, obj: GatewayKey) -> str:
        return obj.created_by or "an operator"

    @admin.display
    def last_used(self, obj: GatewayKey) -> str:
        return display.time(obj.last_used_at) or "never"


@admin.register(PolicyDecision)
class PolicyDecisionAdmin(TenantHistoryAdmin):
    list_display = ("shown_id", "decided", "caller", "operation", "created")
    fields = (
        *("shown_id", "decision", "tenant", "principal", "action"),
        *("resource", "reason", "created", "request_id", "trace_id"),
    )
    search_fields = ("public_id", "tenant", "principal", "resource", "request_id")
    search_help_text = "Part of an id, a tenant, a principal, a resource or a request"

    @admin.display
    def decision(self, obj: PolicyDecision) -> SafeString:
        tone, text = ("success", "Allowed") if obj.allowed else ("error", "Denied")
        return display.badge(tone, text)

    @admin.display(description="decision, reason")
    def decided(self, obj: PolicyDecision) -> SafeString:
        return format_html("{}<br>{}", self.decision(obj), obj.reason)

    @admin.display(description="action, resource")
    def operation(self, obj: PolicyDecision) -> SafeString:
        return format_html("{}<br>{}", obj.action, obj.resource)


LINK_TONES = {
    PortalLink.State.UNUSED: "pending",
    PortalLink.State.OPEN: "success",
    PortalLink.State.EXPIRED: "neutral",
    PortalLink.State.REVOKED: "error",
}


@admin.register(PortalLink)
class PortalLinkAdmin(TenantHistoryAdmin):
    list_select_related = ("key",)
    list_display = ("shown_id", "state", "caller", "actor", "may", "created", "opened")
    fields = (
        *("shown_id", "state", "tenant", "principal", "actor", "may"),
        *("created", "expires", "opened", "revoked"),
    )
    search_fields = ("public_id", "tenant", "principal", "actor")
    search_help_text = "Part of an id, a tenant, a principal or an actor"
    actions = ("revoke_selected",)

    @admin.action(description="Revoke selected links and sessions", permissions=["act"])
    def revoke_selected(
        self, request: HttpRequest, queryset: QuerySet[PortalLink]
    ) -> None:
        for link in queryset:
            self.log_change(request, link, "Revoked.")
        rows = PortalLink.objects.filter(pk__in=[link.pk for link in queryset])
        self.message_user(request, f"Revoked {links.revoke(rows, timezone.now())}.")

    @admin.display
    def state(self, obj: PortalLink) -> SafeString:
        state = obj.state(timezone.now())
        return display.badge(LINK_TONES[state], state.label)

    @admin.display
    def may(self, obj: PortalLink) -> str:
        return ", ".join(obj.capabilities)

    @admin.display
    def expires(self, obj: PortalLink) -> SafeString | None:
        return display.time(obj.session_expires_at or obj.expires_at)

    @admin.display
    def opened(self, obj: PortalLink) -> str:
        return display.time(obj.opened_at) or "no"


@admin.register(Document)
class DocumentAdmin(TenantHistoryAdmin):
    list_display = (
        *("shown_id", "title", "caller", "content_type"),
        *("size", "created"),
    )
    fields = (
        *("shown_id", "title", "tenant", "principal", "content_type"),
        *("size", "created", "characters", "checksum", "metadata_text", "text"),
    )
    search_fields = ("public_id", "tenant", "title", "checksum")
    search_help_text = "Part of an id, a tenant, a title or a checksum"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Document]:
        return Document.objects.without_text()

    @admin.display(description="metadata")
    def metadata_text(self, obj: Document) -> SafeString:
        return _preformatted(bytes(obj.metadata).decode())

    @admin.display
    def text(self, obj: Document) -> SafeString:
        return _preformatted(obj.content)


def _preformatted(text: str) -> SafeString:
    more = "\n…" if len(text) > SHOWN_CHARACTERS else ""
    return format_html("<pre>{}</pre>", text[:SHOWN_CHARACTERS] + more)
