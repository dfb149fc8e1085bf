"""Changes to categories. Run each inside a transaction."""

from __future__ import annotations

from catalog.models import Category
from catalog.text_checks import check_name, check_text


def add(*, name: str, description: str | None = None) -> int:
    """Store a new category and return its key."""
    check_name(name, field="name")
    if description is not None:
        check_text(description, field="description")
    return Category.objects.create(name=name, description=description).pk
