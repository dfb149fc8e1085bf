"""Gateway keys for operators: created and revoked."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from gateway import keys
from gateway.identity import KEYS, SCOPES
from gateway.models import GatewayKey
from webhooks_core.admin import base
from webhooks_core.admin.base import HistoryAdmin, row_action
from webhooks_core.changes import Actor
from webhooks_core.errors import ConflictError
from webhooks_core.pages.base import show_once

TONES = {"live": "success", "expired": "neutral", "revoked": "error"}


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
    models = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
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

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = self.cleaned_data
        if self.errors:
            return cleaned
        words, lines = cleaned["budget"].split(), cleaned["models"].splitlines()
        try:
            cleaned["budget"] = keys.parse_budget(words) if words else None
            cleaned["models"] = [line.strip() for line in lines if line.strip()] or None
            keys.check(**cleaned)
        except keys.KeyInputError as error:
            raise forms.ValidationError(str(error)) from error
        return cleaned


class RevokedError(ConflictError):
    """It was revoked before."""


@admin.register(GatewayKey)
class GatewayKeyAdmin(HistoryAdmin[GatewayKey]):
    form = KeyForm
    actions = ("revoke_selected",)
    list_display = (
        *("id", "shown_key", "tenant", "principal", "name", "state"),
        *("created_at", "expires_at", "last_used_at"),
    )
    search_fields = ("display_prefix", "tenant", "principal", "name")
    indexed = ("tenant",)
    search_help_text = "First characters of the key, tenant, principal or name"
    new_fields: ClassVar = (
        *("tenant", "principal", "name", "days"),
        *("scopes", "models", "budget"),
    )
    fields_of_key: ClassVar = (
        *(*list_display, "revoked_at"),
        *("shown_scopes", "allowed_models", "shown_budget", "created_by"),
    )

    def get_fields(self, request: HttpRequest, obj: GatewayKey | None = None) -> Any:
        return self.new_fields if obj is None else self.fields_of_key

    def has_add_permission(self, request: HttpRequest) -> bool:
        # Its page shows the key.
        may_add = admin.ModelAdmin.has_add_permission(self, request)
        return may_add and self.has_view_permission(request)

    def save_model(
        self, request: HttpRequest, obj: GatewayKey, form: Any, change: bool
    ) -> None:
        created = keys.create(**form.cleaned_data)
        # The admin continues with `obj`: it becomes the row, and holds the text for the page.
        vars(obj).update(vars(created.key), text=created.text)

    def response_add(
        self, request: HttpRequest, obj: GatewayKey, post_url_continue: Any = None
    ) -> HttpResponse:
        """Show the key on its page, this once."""
        text = "The key was created. It opens the gateway as Authorization: Bearer …"
        page = reverse("admin:gateway_gatewaykey_change", args=(obj.pk,))
        return show_once(request, text, page, vars(obj)["text"])

    @row_action("Revoke selected")
    def revoke_selected(self, obj: GatewayKey, by: Actor) -> str:
        if not keys.revoke([obj.pk]):
            raise RevokedError
        return f"Revoked. Within {keys.CACHE_S:g} seconds nobody accepts it."

    @admin.display
    def state(self, obj: GatewayKey) -> SafeString:
        state = obj.state(timezone.now())
        return base.badge(TONES[state], state.capitalize())

    @admin.display(description="key")
    def shown_key(self, obj: GatewayKey) -> SafeString:
        return format_html("<code>{}…</code>", obj.display_prefix)

    @admin.display(description="scopes")
    def shown_scopes(self, obj: GatewayKey) -> str:
        return ", ".join(sorted(obj.rights.scopes))

    @admin.display(description="budget of its own")
    def shown_budget(self, obj: GatewayKey) -> str:
        return obj.budget_entry.allowance if obj.budget_entry else "none"
