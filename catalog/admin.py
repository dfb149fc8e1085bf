"""The catalogue in the admin: the API's search, counts, and pickers instead of long lists."""

from __future__ import annotations

from typing import Any, TypeVar

from django import forms
from django.contrib import admin
from django.db import models
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html

from catalog.models import Author, Book, Category

Row = TypeVar("Row", Author, Book, Category)


class VerbatimText(forms.CharField):
    """Text that is stored as received: refused if it is blank, never trimmed."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "strip": False})

    def validate(self, value: str) -> None:
        super().validate(value)
        if self.required and not value.strip():
            raise forms.ValidationError(self.error_messages["required"], "required")


class CatalogAdmin(admin.ModelAdmin[Row]):
    """A list that is searched by the folded name and takes a constant number of queries."""

    formfield_overrides = {models.CharField: {"form_class": VerbatimText}}
    search_fields = ("name_folded",)  # shows the search box; see get_search_results
    ordering = ("pk",)
    empty_hint = "Add one above, or import a file by manage.py import_catalog."
    show_full_result_count = False
    list_per_page = 50

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Row], search_term: str
    ) -> tuple[QuerySet[Row], bool]:
        rows: Any = queryset
        return rows.search(search_term), False


class OwnerAdmin(CatalogAdmin[Row]):
    """Authors or categories, each with the number of its books."""

    def get_queryset(self, request: HttpRequest) -> QuerySet[Row]:
        rows: Any = super().get_queryset(request)
        counted: QuerySet[Row] = rows.annotate(book_total=models.Count("books"))
        return counted

    def delete_model(self, request: HttpRequest, obj: Row) -> None:
        self.model.objects.delete_locked([obj.pk])

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Row]) -> None:
        self.model.objects.delete_locked(list(queryset.values_list("pk", flat=True)))

    @admin.display(description="books", ordering="book_total")
    def books_(self, row: Any) -> str:
        """Return the number of books as a link to them."""
        address = reverse("admin:catalog_book_changelist")
        query = f"{self.opts.model_name}__id__exact={row.pk}"
        return format_html('<a href="{}?{}">{}</a>', address, query, row.book_total)


@admin.register(Author)
class AuthorAdmin(OwnerAdmin[Author]):
    list_display = ("id", "first_name", "last_name", "books_")
    list_display_links = ("id", "first_name", "last_name")
    search_help_text = 'A part of "first name last name"'


@admin.register(Category)
class CategoryAdmin(OwnerAdmin[Category]):
    list_display = ("id", "name", "books_", "description")
    list_display_links = ("id", "name")
    search_help_text = "A part of the name"


class PagesFilter(admin.SimpleListFilter):
    """Books by length."""

    title = parameter_name = "pages"
    RANGES = {
        "none": ("none", 0, 0),
        "short": ("1 to 199", 1, 199),
        "middle": ("200 to 499", 200, 499),
        "long": ("500 and more", 500, 2**31 - 1),
    }

    def lookups(self, *_: Any) -> list[tuple[str, str]]:
        return [(key, label) for key, (label, _, _) in self.RANGES.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if (key := self.value()) not in self.RANGES:
            return queryset
        _, least, most = self.RANGES[key]
        return queryset.filter(page_count__range=(least, most))


@admin.register(Book)
class BookAdmin(CatalogAdmin[Book]):
    list_display = ("id", "name", "author", "category", "page_count")
    list_display_links = ("id", "name")
    list_filter = (PagesFilter, ("category", admin.RelatedOnlyFieldListFilter))
    list_select_related = ("author", "category")
    autocomplete_fields = ("author", "category")
    search_help_text = "A part of the title"
