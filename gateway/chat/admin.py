"""Admin pages of chat: models, budgets and prices can be edited, requests are read-only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from gateway import json
from gateway.chat import definition_admin  # noqa: F401 - registers models and budgets
from gateway.chat.metering import reports
from gateway.chat.models import ModelPrice, RequestRecord
from gateway.chat.request_log.entry import CONVERSATION
from webhooks_core.admin import base
from webhooks_core.admin.base import ReadOnlyAdmin


@admin.register(ModelPrice)
class ModelPriceAdmin(admin.ModelAdmin[ModelPrice]):
    list_display = ("model", "prompt_price", "completion_price")
    search_fields = ("model",)


HAS_FAILED = Q(error_status__gte=400) | Q(error_status=0, status__gte=400)
OUTCOMES = {
    "refused": ("Refused before a call", Q(model="")),
    "failed": ("Failed", HAS_FAILED & ~Q(model="")),
    "answered": ("Answered", ~HAS_FAILED),
}


class OutcomeFilter(admin.SimpleListFilter):
    title = parameter_name = "outcome"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(name, text) for name, (text, _) in OUTCOMES.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        outcome = OUTCOMES.get(self.value() or "")
        return queryset.filter(outcome[1]) if outcome else queryset


@admin.register(RequestRecord)
class RequestRecordAdmin(ReadOnlyAdmin[RequestRecord]):
    """Every request, refused ones too; with prompt and answer where the log is switched on."""

    list_display = (
        *("at", "outcome", "shown_model", "used_by", "tokens", "cost", "took"),
        "excerpt",
    )
    list_filter = (OutcomeFilter, "created_at")
    search_fields = ("request_id__exact", "tenant__exact")
    indexed = ("request_id", "tenant")
    search_help_text = "A whole request id, or a tenant"
    fields: ClassVar = (
        *("created_at", "used_by", "operation", "shown_model", "streamed", "outcome"),
        *("took", "tokens", "cost", "error", "answered", "asked", "offered", "details"),
    )
    ordering = ("-pk",)
    sortable_by = ()

    def get_queryset(self, request: HttpRequest) -> QuerySet[RequestRecord]:
        return super().get_queryset(request).defer("prompt", "answer", "tools")

    @admin.display(description="at (UTC)")
    def at(self, row: RequestRecord) -> str:
        return f"{row.created_at:%d %b %H:%M:%S}"

    @admin.display(description="status")
    def outcome(self, row: RequestRecord) -> str:
        """Return the response's status, that of a stream's error, and what its end lacked."""
        error = f"then {row.error_status}" if row.error_status else ""
        refused = "" if row.model else "refused"
        return ", ".join(filter(None, (str(row.status), error, row.ending, refused)))

    @admin.display(description="model")
    def shown_model(self, row: RequestRecord) -> str:
        other = row.model and row.model != row.requested
        return f"{row.requested}, answered by {row.model}" if other else row.requested

    @admin.display(description="used by")
    def used_by(self, row: RequestRecord) -> str:
        return f"{row.tenant}/{row.principal}"

    @admin.display(description="tokens in + out")
    def tokens(self, row: RequestRecord) -> str:
        counts = row.prompt_tokens, row.completion_tokens
        text = " + ".join("?" if count is None else f"{count:,}" for count in counts)
        return f"about {text}" if row.estimated else text

    @admin.display
    def cost(self, row: RequestRecord) -> str:
        if row.cost_nano is None:
            return "-"
        text = reports.cost(row.cost_nano).rstrip("0").rstrip(".")
        return f"about {text}" if row.estimated else text

    @admin.display(description="seconds")
    def took(self, row: RequestRecord) -> str:
        duration = f"{row.duration_ms / 1000:.2f}"
        if row.first_chunk_ms is None:
            return duration
        return f"{row.first_chunk_ms / 1000:.2f} of {duration}"

    @admin.display(description="prompt")
    def asked(self, row: RequestRecord) -> str | SafeString:
        if not row.prompt:
            return "not kept"
        return base.pre("\n\n".join(_messages(row.prompt)))

    @admin.display(description="answer")
    def answered(self, row: RequestRecord) -> str | SafeString:
        if not row.answer:
            return "not kept"
        return base.pre("\n\n".join(map(_said, json.loads(row.answer.encode()))))

    @admin.display(description="tools")
    def offered(self, row: RequestRecord) -> str:
        return ", ".join(json.loads((row.tools or "[]").encode())) or "-"

    @admin.display(description="more")
    def details(self, row: RequestRecord) -> str:
        names = (
            *("request_id", "key_id", "session", "upstream_model", "base_url"),
            *("cached_tokens", "cache_write_tokens", "reasoning_tokens"),
        )
        values = ((name, getattr(row, name)) for name in names)
        return ", ".join(f"{name} {value}" for name, value in values if value)


def _messages(prompt: str) -> Iterator[str]:
    """Yield the messages of a prompt: who, and the text, or JSON for what has none."""
    body = json.loads(prompt.encode())
    items = next((body[name] for name in CONVERSATION if name in body), body)
    for item in items if isinstance(items, list) else [items]:
        is_message = isinstance(item, dict) and isinstance(item.get("content"), str)
        if is_message:
            yield f"{item.get('role', '')}: {item['content']}"
        else:
            yield item if isinstance(item, str) else json.dumps(item).decode()


def _said(choice: Any) -> str:
    """Return what a choice of an answer says."""
    parts = [choice["reasoning"], choice["text"], choice["refusal"]]
    parts += [f"{call['name']}({call['arguments']})" for call in choice["tool_calls"]]
    return "\n".join(filter(None, parts))
