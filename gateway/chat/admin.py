"""Admin pages of chat: endpoints and prices can be edited, usage is read-only."""

from __future__ import annotations

from typing import Any, ClassVar, cast

import orjson
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from gateway.chat import definition_admin  # noqa: F401 - registers models and budgets
from gateway.chat.metering.reports import plain_cost
from gateway.chat.models import (
    LoggedRequest,
    ModelPrice,
    UsageDay,
    UsageRecord,
    UsageTotal,
)
from gateway.chat.request_log import store
from webhooks_core.admin.base import CappedAdmin, ReadOnlyAdmin
from webhooks_core.owners import payloads


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
    list_filter = ("created_at", StatusFilter, ModelFilter, "streamed")
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
