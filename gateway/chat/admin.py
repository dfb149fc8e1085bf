"""Admin pages of chat: models, budgets and prices can be edited, requests are read-only."""

from __future__ import annotations

import json
from copy import copy
from typing import Any, ClassVar, cast

from django import forms
from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet
from django.forms.models import construct_instance
from django.http import HttpRequest
from django.urls import NoReverseMatch
from django.utils.safestring import SafeString

from gateway import configuration
from gateway.chat.metering import reports
from gateway.chat.models import Budget, ModelEndpoint, ModelPrice, RequestRecord
from gateway.configuration import EntryError
from gateway.configuration.shapes import BudgetEntry, ModelEntry
from webhooks_core.admin import base
from webhooks_core.admin.base import ReadOnlyAdmin
from webhooks_core.secrets import EncryptedText, SecretUnreadableError


def names_in_file(section: str) -> list[str]:
    return [entry.name for entry in getattr(configuration.current(), section)]


class DefinedForm(forms.ModelForm[Any]):
    """Checks a row as an entry of the file, whose own entries it does not hide."""

    section: str  # of the file

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if name in names_in_file(self.section):
            raise ValidationError("The configuration file has one of this name.")
        return name

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = self.cleaned_data
        if not self.errors:
            try:
                self.check(construct_instance(self, copy(self.instance)).entry())
            except SecretUnreadableError as error:
                text = "The stored key cannot be read any more: set it anew."
                raise ValidationError({"api_key": text}) from error
            except EntryError as error:
                raise ValidationError({"definition": str(error)}) from error
        return cleaned

    def check(self, entry: Any) -> None:
        """Raise EntryError for an entry that does not fit to what is stored."""


class ModelForm(DefinedForm):
    """The key can be set and is never shown; an empty field keeps it."""

    section = "models"
    api_key = forms.CharField(
        required=False,
        label="API key",
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text="Of each target without one. Stored encrypted and never shown; empty keeps the "
        "one that is stored. ${NAME} stands for an environment variable.",
    )

    class Meta:
        model = ModelEndpoint
        fields = ("name", "definition", "api_key", "is_active")

    def clean_api_key(self) -> Any:
        """Return the key encrypted: a text would be read as a dump's ciphertext."""
        text: str = self.cleaned_data["api_key"]
        stored: Any = self.instance.api_key
        is_kept = not text and isinstance(stored, EncryptedText)
        return stored if is_kept else EncryptedText.encrypt(text)

    def check(self, entry: ModelEntry) -> None:
        stored = ModelEndpoint.objects.values_list("name", flat=True)
        others = {*names_in_file(self.section), *stored} - {entry.name}
        if unknown := {*entry.fallbacks} - others:
            raise EntryError(f"fallbacks: {min(unknown)!r} is no other model.")


class BudgetForm(DefinedForm):
    section = "budgets"

    class Meta:
        model = Budget
        fields = ("name", "definition", "is_active")

    def check(self, entry: BudgetEntry) -> None:
        """Keep what a counter counts: another one would begin with what it has counted."""
        if self.instance.pk is None:
            return
        try:
            before = Budget.objects.get(pk=self.instance.pk).entry()
        except EntryError:  # it counts nothing: any valid entry repairs it
            return
        for name in ("name", "counts", "window", "per"):
            if getattr(before, name) != getattr(entry, name):
                raise EntryError(f"{name} cannot change: make another budget.")


class DefinedList(ChangeList):
    """First what the file declares, without links: only the file changes it. Then the rows."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        if self.page_num == 1 and not self.query:
            names = names_in_file(cast("DefinedAdmin", self.model_admin).form.section)
            declared = [self.model(name=name) for name in names]
            self.result_list = [*declared, *self.result_list]

    def url_for_result(self, result: Any) -> str:
        if result.pk is None:
            raise NoReverseMatch
        return super().url_for_result(result)


class DefinedAdmin(admin.ModelAdmin[Any]):
    form: type[DefinedForm]
    actions = None
    list_display = ("name", "source")
    search_fields = ("name",)
    sortable_by = ()

    def get_changelist(self, request: HttpRequest, **_: Any) -> type[ChangeList]:
        return DefinedList

    @admin.display
    def source(self, row: Any) -> str:
        """Return where an entry stands, and why a row has no effect."""
        if row.pk is None:
            return "the configuration file"
        if row.name in names_in_file(self.form.section):
            return "hidden by the configuration file"
        try:
            row.entry()
        except (EntryError, SecretUnreadableError) as error:
            return f"has no effect: {error}"
        return "here" if row.is_active else "here, switched off"


@admin.register(ModelEndpoint)
class ModelEndpointAdmin(DefinedAdmin):
    form = ModelForm


@admin.register(Budget)
class BudgetAdmin(DefinedAdmin):
    form = BudgetForm


@admin.register(ModelPrice)
class ModelPriceAdmin(admin.ModelAdmin[ModelPrice]):
    list_display = ("model", "prompt_price", "completion_price")
    search_fields = ("model",)


class OutcomeFilter(admin.SimpleListFilter):
    """Not the stock filter, which would read every row for the different statuses."""

    title = parameter_name = "outcome"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("refused", "Refused before a call"), ("failed", "Failed")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        failed = Q(error_status__gte=400) | Q(status__gte=400)
        outcomes = {"refused": Q(model=""), "failed": failed & ~Q(model="")}
        return queryset.filter(outcomes.get(self.value() or "", Q()))


@admin.register(RequestRecord)
class RequestRecordAdmin(ReadOnlyAdmin[RequestRecord]):
    """Every request, refused ones too; with prompt and answer where the log is switched on."""

    list_display = (
        *("created_at", "outcome", "requested", "used_by", "tokens", "cost"),
        "excerpt",
    )
    list_filter = (OutcomeFilter, "created_at")
    search_fields = ("request_id__exact", "tenant__exact")
    indexed = ("request_id", "tenant")
    search_help_text = "A whole request id, or a tenant"
    readonly_fields = ("outcome", "cost", "answered", "asked")
    exclude: ClassVar = ("prompt", "answer", "cost_nano")
    ordering = ("-pk",)
    sortable_by = ()

    def get_queryset(self, request: HttpRequest) -> QuerySet[RequestRecord]:
        return super().get_queryset(request).defer("prompt", "answer", "tools")

    @admin.display(description="status")
    def outcome(self, row: RequestRecord) -> str:
        """Return the response's status, that of a stream's error, and what its end lacked."""
        error = f"then {row.error_status}" if row.error_status else ""
        refused = "" if row.model else "refused"
        return ", ".join(filter(None, (str(row.status), error, row.ending, refused)))

    @admin.display(description="used by")
    def used_by(self, row: RequestRecord) -> str:
        return f"{row.tenant}/{row.principal}"

    @admin.display(description="tokens in + out")
    def tokens(self, row: RequestRecord) -> str:
        counts = row.prompt_tokens, row.completion_tokens
        return " + ".join("?" if count is None else f"{count:,}" for count in counts)

    @admin.display
    def cost(self, row: RequestRecord) -> str:
        return "-" if row.cost_nano is None else reports.cost(row.cost_nano)

    @admin.display(description="prompt")
    def asked(self, row: RequestRecord) -> str | SafeString:
        return _shown(row.prompt)

    @admin.display(description="answer")
    def answered(self, row: RequestRecord) -> str | SafeString:
        return _shown(row.answer)


def _shown(text: str | None) -> str | SafeString:
    """Return JSON for a reader; halves of surrogate pairs, which no page can hold, as `?`."""
    if not text:
        return "not kept"
    indented = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    return base.pre(indented.encode(errors="replace").decode())
