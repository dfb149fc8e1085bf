"""Books, authors and categories over GraphQL."""

from __future__ import annotations

from django.apps import AppConfig


class CatalogConfig(AppConfig):
    name = "catalog"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from catalog import cors
        from catalog.conf import option

        # A wrong value stops the start.
        cors.check(option("CATALOG_CORS_ORIGINS"))
