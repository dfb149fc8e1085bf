"""Budgets in the admin: limits that operators set, those of the file, and what is used now."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, ClassVar, NamedTuple

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path

from gateway import configuration
from gateway.chat.budget_models import Budget
from gateway.chat.metering import budget_definitions, reports
from gateway.chat.metering.windows import next_start
from gateway.configuration import EntryError
from gateway.configuration.shapes import SUBJECTS, BudgetEntry
from webhooks_core.admin.base import CappedAdmin
from webhooks_core.admin.form_fields import LinesField

# The counters of one budget that the page shows: those that have used the most.
SHOWN_COUNTERS = 20
LINES = ("tenants", "principals", "only_models")
# A counter counts them: another one would begin with what it has counted.
FIXED = ("name", "counts", "window", "per")


class BudgetForm(forms.ModelForm[Budget]):
    per = forms.MultipleChoiceField(
        choices=[(name, name) for name in SUBJECTS],
        widget=forms.CheckboxSelectMultiple,
        required=False,
        help_text=Budget._meta.get_field("per").help_text,  # noqa: SLF001 - public by use
    )

    class Meta:
        model = Budget
        fields = "__all__"  # noqa: DJ007 - operators may edit every field
        field_classes: ClassVar = dict.fromkeys(LINES, LinesField)

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if name in {entry.name for entry in configuration.current().budgets}:
            raise ValidationError("The configuration file has a budget of this name.")
        return name

    def clean(self) -> dict[str, Any]:
        """Check the budget as one of the configuration file."""
        cleaned: dict[str, Any] = self.cleaned_data
        if self.errors:
            return cleaned
        values = {field.name: getattr(self.instance, field.name) for field in COLUMNS}
        try:
            Budget(**values | cleaned).entry()
        except EntryError as error:
            for key, text in error.faults:
                field = "only_models" if key == "models" else key
                self.add_error(field if field in self.fields else None, f"{text}.")
        return cleaned


COLUMNS = [field for field in Budget._meta.fields if field.name != "id"]  # noqa: SLF001 - public by use


@admin.register(Budget)
class BudgetAdmin(CappedAdmin[Budget]):
    form = BudgetForm
    change_list_template = "admin/gateway_chat/budget/list.html"
    list_display = ("name", "allows", "counted_for", "whose", "is_active")
    list_filter = ("is_active",)
    search_fields = ("name",)
    ordering = ("name",)
    empty_hint = "Those of the configuration file are below."

    class Media:
        css: ClassVar = {"all": ("webhooks_core/admin.css",)}

    def get_readonly_fields(
        self, request: HttpRequest, obj: Budget | None = None
    ) -> Any:
        return () if obj is None else FIXED

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        declared = map(_described, configuration.current().budgets)
        context = {"declared": list(declared), **(extra_context or {})}
        return super().changelist_view(request, context)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.used_now)
        return [path("now/", view, name="gateway_chat_budget_now"), *super().get_urls()]

    def used_now(self, request: HttpRequest) -> HttpResponse:
        """Show what each budget in force has used and left in its current window."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        now = datetime.now(UTC)
        sections = [
            (_described(entry), _used(entry, now), next_start(entry.window, now))
            for entry in budget_definitions.budgets()
        ]
        context = self.admin_site.each_context(request) | {
            "title": "Budgets: used now",
            "opts": self.opts,
            "media": self.media,
            "sections": sections,
            "shown": SHOWN_COUNTERS,
        }
        template = "admin/gateway_chat/budget/now.html"
        return TemplateResponse(request, template, context)

    @admin.display(description="limit", ordering="limit")
    def allows(self, row: Budget) -> str:
        return BudgetEntry(row.name, row.counts, row.window, float(row.limit)).allowance

    @admin.display(description="a counter for each")
    def counted_for(self, row: Budget) -> str:
        return ", ".join(row.per) or "all together"

    @admin.display(description="requests of")
    def whose(self, row: Budget) -> str:
        return _whose([*row.tenants, *row.principals], row.only_models)


class Described(NamedTuple):
    """A budget as text."""

    name: str
    allows: str
    counted_for: str
    whose: str


def _described(entry: BudgetEntry) -> Described:
    principals = ["/".join(principal) for principal in sorted(entry.principals)]
    return Described(
        entry.name,
        entry.allowance,
        ", ".join(entry.per) or "all together",
        _whose([*sorted(entry.tenants), *principals], sorted(entry.models)),
    )


def _whose(callers: Iterable[str], models: Iterable[str]) -> str:
    callers, models = ", ".join(callers) or "everybody", ", ".join(models)
    return f"{callers} for {models}" if models else callers


def _used(entry: BudgetEntry, now: datetime) -> list[reports.BudgetUse]:
    """Return the counters of a budget that have used the most."""
    rows = reports.current_counters([entry], now).order_by("-amount", "subject")
    return reports.uses([entry], rows[:SHOWN_COUNTERS], now)
