"""Books, authors and categories over GraphQL."""

from __future__ import annotations

from django.apps import AppConfig
from django.conf import settings


class CatalogConfig(AppConfig):
    name = "catalog"

    def ready(self) -> None:
        from catalog import webhooks
        from webhooks_core import profiles

        profiles.register(
            webhooks.profile(base_url=settings.BASE_URL, local=settings.LOCAL)
        )
