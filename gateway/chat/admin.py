"""Admin pages of chat: endpoints and prices can be edited, usage is read-only."""

from __future__ import annotations

import os
from typing import Any, ClassVar, cast

import orjson
from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from gateway import configuration
from gateway.chat import budget_admin  # noqa: F401 - registers the page of budgets
from gateway.chat.metering.reports import plain_cost
from gateway.chat.models import (
    LoggedRequest,
    ModelEndpoint,
    ModelPrice,
    ModelTarget,
    UsageDay,
    UsageRecord,
    UsageTotal,
)
from gateway.chat.request_log import store
from gateway.configuration import EntryError
from gateway.configuration.rules import as_key, is_base_url, resolve
from gateway.identity import is_name
from webhooks_core.admin.base import CappedAdmin, ReadOnlyAdmin
from webhooks_core.admin.filters import CreatedFilter
from webhooks_core.admin.form_fields import LinesField
from webhooks_core.owners import payloads
from webhooks_core.secrets import EncryptedText


class EndpointForm(forms.ModelForm[ModelEndpoint]):
    class Meta:
        model = ModelEndpoint
        fields = "__all__"  # noqa: DJ007 - operators may edit every field
        field_classes: ClassVar = dict.fromkeys(
            ("supports", "allow_tenants", "allow_principals"), LinesField
        )

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if name in {entry.name for entry in configuration.current().models}:
            raise ValidationError(
                "The configuration file has an endpoint of this name."
            )
        return name

    def clean_supports(self) -> list[str] | None:
        return self.cleaned_data["supports"] or None

    def clean_allow_tenants(self) -> list[str]:
        tenants: list[str] = self.cleaned_data["allow_tenants"]
        if wrong := [name for name in tenants if not is_name(name)]:
            raise ValidationError(f"{wrong[0]!r} cannot be a tenant.")
        return tenants

    def clean_allow_principals(self) -> list[str]:
        principals: list[str] = self.cleaned_data["allow_principals"]
        for text in principals:
            tenant, _, principal = text.partition("/")
            if not (is_name(tenant) and is_name(principal)):
                raise ValidationError(f"{text!r} is not tenant/principal.")
        return principals

    def clean(self) -> dict[str, Any]:
        """Check the further keys as those of the configuration file."""
        cleaned: dict[str, Any] = self.cleaned_data
        if self.errors or not cleaned["options"]:
            return cleaned
        name = cleaned["name"]
        try:
            options = configuration.model_options(
                name, cleaned["upstream"], cleaned["options"]
            )
        except EntryError as error:
            self.add_error("options", f"{error}.")
            return cleaned
        known = {entry.name for entry in configuration.current().models}
        known |= {*ModelEndpoint.objects.values_list("name", flat=True)}
        for key in ("fallbacks", "context_fallbacks"):
            if unknown := {*options.get(key, ())} - (known - {name}):
                text = f"{key}: {min(unknown)!r} is no other model endpoint."
                self.add_error("options", text)
        return cleaned


class TargetForm(forms.ModelForm[ModelTarget]):
    """The key can be set and is never shown; an empty field keeps it."""

    api_key = forms.CharField(
        required=False,
        strip=True,
        label="API key",
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text=(
            "Stored encrypted and never shown; empty keeps the one that is stored. "
            "${NAME} stands for an environment variable."
        ),
    )

    class Meta:
        model = ModelTarget
        fields = ("base_url", "model", "api_key", "weight")

    def clean_base_url(self) -> str:
        url: str = self.cleaned_data["base_url"]
        if url and not is_base_url(url):
            raise ValidationError("Not an http or https address without a query.")
        return url

    def clean_api_key(self) -> Any:
        """Return the key encrypted: a text would be read as a dump's ciphertext."""
        text: str = self.cleaned_data["api_key"]
        if not text:
            return self.instance.api_key
        try:
            as_key(resolve(text, os.environ))
        except ValueError as error:
            raise ValidationError(f"API key: {error}.") from error
        return EncryptedText.encrypt(text)


class TargetInline(admin.StackedInline[ModelTarget, ModelEndpoint]):
    model = ModelTarget
    form = TargetForm
    extra = 0
    min_num = 1


@admin.register(ModelEndpoint)
class ModelEndpointAdmin(CappedAdmin[ModelEndpoint]):
    form = EndpointForm
    inlines = (TargetInline,)
    list_display = ("name", "upstream", "inference_type", "is_active", "allow_everyone")
    list_filter = ("upstream", "is_active")
    search_fields = ("name",)
    empty_hint = "Those of the configuration file are not listed here."


@admin.register(ModelPrice)
class ModelPriceAdmin(CappedAdmin[ModelPrice]):
    list_display = ("model", "prompt_price", "completion_price")
    search_fields = ("model",)
    empty_hint = (
        "Models cost what the public list of their vendor says, and others nothing."
    )


class UsedFilter(admin.SimpleListFilter):
    """Values of a column, read from the sums of all usage: the list's own table is large."""

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        name = self.parameter_name or ""
        used = set(UsageTotal.objects.values_list(name, flat=True))
        return [(str(value), str(value)) for value in sorted(used)]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if (value := self.value()) is None:
            return queryset
        known = value in dict(self.lookup_choices)
        return queryset.filter(
            **{self.parameter_name or "": value} if known else {"pk": 0}
        )


class ModelFilter(UsedFilter):
    title = parameter_name = "model"


class StatusFilter(UsedFilter):
    title = parameter_name = "status"


class UsageAdmin(ReadOnlyAdmin[Any]):
    """The tokens, the caller and the cost of usage."""

    empty_hint = "Each request that a model endpoint answers is counted."

    class Media:
        css: ClassVar = {"all": ("webhooks_core/admin.css",)}

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.fields or ()

    @admin.display(description="used by")
    def used_by(self, row: Any) -> str:
        return f"{row.tenant}/{row.principal}"

    @admin.display(description="tokens in + out", ordering="prompt_tokens")
    def tokens(self, row: Any) -> str:
        counts = row.prompt_tokens, row.completion_tokens
        text = " + ".join("?" if count is None else f"{count:,}" for count in counts)
        return f"about {text}" if getattr(row, "estimated", False) else text

    @admin.display(description="cost", ordering="cost_nano")
    def cost(self, row: Any) -> str:
        nano = cast("int | None", row.cost_nano)
        if nano is None:
            return "-"
        text = plain_cost(nano)
        return f"about {text}" if getattr(row, "estimated", False) else text


@admin.register(UsageDay)
class UsageDayAdmin(UsageAdmin):
    list_display = ("day", "used_by", "model", "cost", "tokens", "answered")
    fields = (
        *("day", "tenant", "principal", "model"),
        *("cost", "tokens", "requests", "failures", "estimated_requests"),
    )
    list_filter = ("day", ModelFilter)
    search_fields = ("tenant", "principal", "model")
    indexed = ("tenant",)
    ordering = ("-day", "tenant", "principal", "model")
    sortable_by = ("day", "cost", "tokens", "answered")

    @admin.display(description="requests", ordering="requests")
    def answered(self, row: UsageDay) -> str:
        failed = f", {row.failures:,} failed" if row.failures else ""
        return f"{row.requests:,}{failed}"


class RequestAdmin(UsageAdmin):
    """What usage and the log show of one request."""

    search_fields: ClassVar[tuple[str, ...]] = ("request_id", "tenant", "principal")
    indexed: tuple[str, ...] = ("request_id", "tenant")
    ordering = ("-pk",)

    @admin.display(description="at (UTC)", ordering="created_at")
    def at(self, row: Any) -> str:
        return f"{row.created_at:%d %b %H:%M:%S}"

    @admin.display(description="status", ordering="status")
    def outcome(self, row: Any) -> str:
        """Return the response's status, that of a stream's error, and what its end lacked."""
        error = f"then {row.error_status}" if row.error_status else ""
        parts = (str(row.status), error, getattr(row, "ending", ""))
        return ", ".join(filter(None, parts))

    @admin.display(description="seconds", ordering="duration_ms")
    def took(self, row: Any) -> str:
        duration = f"{row.duration_ms / 1000:.2f}"
        if row.first_chunk_ms is None:
            return duration
        return f"{row.first_chunk_ms / 1000:.2f} of {duration}"


@admin.register(UsageRecord)
class UsageRecordAdmin(RequestAdmin):
    """The most important columns come first: a narrow screen shows no more."""

    list_display = ("at", "outcome", "model", "used_by", "tokens", "took", "cost")
    fields = (
        *("created_at", "outcome", "model", "upstream_model", "tenant"),
        *("principal", "key_id", "streamed", "tokens", "estimated"),
        *("cached_tokens", "cache_write_tokens", "reasoning_tokens"),
        *("took", "cost", "request_id", "session", "agent", "parent_agent"),
    )
    list_filter = (StatusFilter, ModelFilter, "streamed")


@admin.register(LoggedRequest)
class LoggedRequestAdmin(RequestAdmin):
    """Prompts and answers; a text is searched among the newest SEARCHED requests."""

    list_display = ("at", "outcome", "model", "excerpt", "used_by", "tokens", "took")
    fields = (
        *("public_id", "request_id", "created_at", "outcome", "error", "operation"),
        *("model", "answered_by", "upstream_model", "base_url", "tenant", "principal"),
        *("key_id", "streamed", "tokens", "took", "offered", "truncated"),
        *("sent", "answered"),
    )
    list_filter = (CreatedFilter, StatusFilter, ModelFilter, "streamed")
    search_fields: ClassVar = (
        *("request_id", "tenant", "principal", "public_id", "prompt", "answer"),
    )
    search_help_text = "A part of the prompt or the answer, an id, a tenant"
    indexed = (*RequestAdmin.indexed, "public_id")
    empty_hint = "The configuration names models and tenants, with the key request_log."

    def searched_at_most(self) -> int:
        return store.SEARCHED

    def get_queryset(self, request: HttpRequest) -> QuerySet[LoggedRequest]:
        return super().get_queryset(request).defer("prompt", "answer", "tools")

    @admin.display(description="tools")
    def offered(self, row: LoggedRequest) -> str:
        return ", ".join(orjson.loads(row.tools)) or "-"

    @admin.display(description="prompt")
    def sent(self, row: LoggedRequest) -> SafeString:
        return _pretty(row.prompt)

    @admin.display(description="answer")
    def answered(self, row: LoggedRequest) -> SafeString:
        return _pretty(row.answer)


def _pretty(text: str) -> SafeString:
    """Return JSON with line breaks, cut to what a page can show."""
    shown = payloads.pretty(text.encode()) or payloads.Text.of(text)
    return format_html("<pre>{}{}</pre>", shown.text, "…" * shown.is_cut)
