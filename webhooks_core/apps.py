"""What every signed webhook needs: events, deliveries, signing, retries."""

from __future__ import annotations

import django_stubs_ext
from django.apps import AppConfig

# Before any model is imported, whoever's settings these are: ours name what generics hold.
django_stubs_ext.monkeypatch()


class WebhooksCoreConfig(AppConfig):
    name = "webhooks_core"
    verbose_name = "Webhooks"

    def ready(self) -> None:
        from webhooks_core import bootstrap

        bootstrap.after_migrate(self)
