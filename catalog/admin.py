"""The catalogue in the admin: search, counts, and pickers instead of long lists."""

from __future__ import annotations

from typing import Any, TypeVar

from django import forms
from django.contrib import admin
from django.db import models
from django.db.models import QuerySet
from django.http import HttpRequest

from catalog.models import Author, Book, Category
from catalog.texts import folded

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
    formfield_overrides = {models.CharField: {"form_class": VerbatimText}}
    ordering = ("pk",)
    show_full_result_count = False
    list_per_page = 50


class OwnerAdmin(CatalogAdmin[Row]):
    """Authors or categories, each with the number of its books."""

    def get_queryset(self, request: HttpRequest) -> QuerySet[Row]:
        rows: Any = super().get_queryset(request)
        counted: QuerySet[Row] = rows.annotate(book_total=models.Count("books"))
        return counted

    def delete_model(self, request: HttpRequest, obj: Row) -> None:
        self.model.objects.filter(pk=obj.pk).delete()  # locks the row

    @admin.display(description="books", ordering="book_total")
    def books_(self, row: Any) -> int:
        return int(row.book_total)


@admin.register(Author)
class AuthorAdmin(OwnerAdmin[Author]):
    list_display = ("id", "first_name", "last_name", "books_")
    list_display_links = ("id", "first_name", "last_name")
    search_fields = ("first_name", "last_name")


@admin.register(Category)
class CategoryAdmin(OwnerAdmin[Category]):
    list_display = ("id", "name", "books_", "description")
    list_display_links = ("id", "name")
    search_fields = ("name",)


@admin.register(Book)
class BookAdmin(CatalogAdmin[Book]):
    list_display = ("id", "name", "author", "category", "page_count")
    list_display_links = ("id", "name")
    list_filter = (("category", admin.RelatedOnlyFieldListFilter),)
    list_select_related = ("author", "category")
    autocomplete_fields = ("author", "category")
    search_fields = ("name_folded",)
    search_help_text = "A part of the title"

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Book], search_term: str
    ) -> tuple[QuerySet[Book], bool]:
        return super().get_search_results(request, queryset, folded(search_term))
