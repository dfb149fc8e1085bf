"""Books, authors and categories over GraphQL."""

from __future__ import annotations

import django_stubs_ext

# Classes such as ModelAdmin[Book] are named at run time too, in a project of any settings.
django_stubs_ext.monkeypatch()
