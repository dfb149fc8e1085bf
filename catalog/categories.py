"""Changes to categories. Run each inside a transaction."""

from __future__ import annotations

from catalog.events import publish_change
from catalog.models import Category
from catalog.text import DESCRIPTION_LENGTH, checked, checked_optional


def add(*, name: str, description: str | None = None) -> int:
    """Store a new category and return its key."""
    checked(name, field="name")
    if description is not None:
        checked_optional(description, field="description", length=DESCRIPTION_LENGTH)
    key = Category.objects.create(name=name, description=description).pk
    publish_change("category.created", key, name=name, description=description)
    return key
