"""Models and budgets in the admin: those of its tables, in one list with those of the file."""

from __future__ import annotations

from copy import copy
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import ValidationError
from django.forms.models import construct_instance
from django.http import HttpRequest
from django.urls import NoReverseMatch

from gateway import configuration
from gateway.chat.models import Budget, ModelEndpoint
from gateway.configuration import EntryError
from gateway.configuration.shapes import BudgetEntry, ModelEntry
from webhooks_core.secrets import EncryptedText, SecretUnreadableError


def of_file(section: str) -> dict[str, Any]:
    """Return the entries of `models` or `budgets` in the file, by their names."""
    entries = getattr(configuration.current(), section)
    return {entry.name: entry for entry in entries}


class DefinedList(ChangeList):
    """First what the file defines, which it alone changes; then the rows of the table."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        if self.page_num == 1 and not self.query:
            defined: Any = self.model_admin
            unstored = [self.model(name=name) for name in of_file(defined.section)]
            self.result_list = [*unstored, *self.result_list]

    def url_for_result(self, result: Any) -> str:
        if result.pk is None:
            raise NoReverseMatch  # the list shows it without a link
        return super().url_for_result(result)


class DefinedAdmin(admin.ModelAdmin[Any]):
    section: str  # of the file
    actions = None
    list_display = ("name", "summary", "source")
    search_fields = ("name",)
    sortable_by = ()

    def get_changelist(self, request: HttpRequest, **_: Any) -> type[ChangeList]:
        return DefinedList

    def describe(self, entry: Any) -> str:
        """Return what an entry is, in words."""
        raise NotImplementedError

    @admin.display
    def summary(self, obj: Any) -> str:
        try:
            entry = of_file(self.section)[obj.name] if obj.pk is None else obj.entry()
        except (EntryError, SecretUnreadableError) as error:
            return f"has no effect: {error}"
        return self.describe(entry)

    @admin.display
    def source(self, obj: Any) -> str:
        if obj.pk is None:
            return "the configuration file"
        if obj.name in of_file(self.section):
            return "hidden by the configuration file"
        return "here" if obj.is_active else "here, switched off"


class DefinedForm(forms.ModelForm[Any]):
    """Checks a row as an entry of the file."""

    section: str

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if name in of_file(self.section):
            raise ValidationError("The configuration file has one of this name.")
        return name

    def check(self, entry: Any) -> None:
        """Raise ValidationError for an entry that does not fit to the others."""

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = self.cleaned_data
        if self.errors:
            return cleaned
        row = construct_instance(self, copy(self.instance))
        try:
            self.check(row.entry())
        except SecretUnreadableError as error:
            text = "The stored key cannot be read any more: set it anew."
            raise ValidationError({"api_key": text}) from error
        except (EntryError, ValidationError) as error:
            text = getattr(error, "message", str(error))
            raise ValidationError({"definition": text}) from error
        return cleaned


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
        others = {*of_file(self.section), *stored} - {entry.name}
        if unknown := {*entry.fallbacks} - others:
            raise ValidationError(f"fallbacks: {min(unknown)!r} is no other model.")


@admin.register(ModelEndpoint)
class ModelEndpointAdmin(DefinedAdmin):
    form = ModelForm
    section = "models"

    def describe(self, entry: ModelEntry) -> str:
        places = ", ".join(target.base_url for target in entry.targets)
        whose = "" if entry.allow.everyone else "; for some callers alone"
        return f"{entry.upstream} {places}".strip() + whose


class BudgetForm(DefinedForm):
    section = "budgets"

    class Meta:
        model = Budget
        fields = ("name", "definition", "is_active")

    def check(self, entry: BudgetEntry) -> None:
        """Keep what a counter counts: another one would begin with what it has counted."""
        if self.instance.pk is None:
            return
        before = Budget.objects.get(pk=self.instance.pk).entry()
        for name in ("name", "counts", "window", "per"):
            if getattr(before, name) != getattr(entry, name):
                text = f"{name} cannot change: make another budget."
                raise ValidationError(text)


@admin.register(Budget)
class BudgetAdmin(DefinedAdmin):
    form = BudgetForm
    section = "budgets"

    def describe(self, entry: BudgetEntry) -> str:
        callers = [*sorted(entry.tenants), *sorted(entry.principals)]
        whose = ", ".join(callers) or "everybody"
        models = f" for {', '.join(sorted(entry.models))}" if entry.models else ""
        each = f", a counter for each {' and '.join(entry.per)}" if entry.per else ""
        return f"{entry.allowance}: {whose}{models}{each}"
