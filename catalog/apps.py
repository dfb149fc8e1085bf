"""Books, authors and categories over GraphQL."""

from __future__ import annotations

from django.apps import AppConfig


class CatalogConfig(AppConfig):
    name = "catalog"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from catalog import checks, cors, persisted  # noqa: F401 - registers the check
        from catalog.conf import option

        # A wrong value stops the start.
        persisted.documents(option("CATALOG_OPERATIONS"))
        cors.check(option("CATALOG_CORS_ORIGINS"))
