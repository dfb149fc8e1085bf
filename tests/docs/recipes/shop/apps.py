"""A shop that tells what it sold."""

from __future__ import annotations

from django.apps import AppConfig
from django.conf import settings


class ShopConfig(AppConfig):
    name = "shop"

    def ready(self) -> None:
        from shop import webhooks
        from webhooks_core import profiles

        profiles.register(
            webhooks.profile(base_url=settings.BASE_URL, local=settings.LOCAL)
        )
