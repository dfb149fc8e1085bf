"""Books, authors and categories over GraphQL."""

from __future__ import annotations

from django.apps import AppConfig, apps
from django.conf import settings


class CatalogConfig(AppConfig):
    name = "catalog"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from catalog import checks, cors, persisted  # noqa: F401 - registers the check
        from catalog.conf import option

        # A wrong value stops the start.
        persisted.documents(option("CATALOG_OPERATIONS"))
        cors.check(option("CATALOG_CORS_ORIGINS"))
        if not apps.is_installed("webhooks_core"):
            return  # a project without events
        from catalog import webhooks
        from webhooks_core import profiles

        profiles.register(
            webhooks.profile(base_url=settings.BASE_URL, local=settings.LOCAL)
        )
