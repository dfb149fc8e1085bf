"""What every signed webhook needs: events, deliveries, signing, retries."""

from __future__ import annotations

from typing import Any

import structlog
from django.apps import AppConfig
from django.contrib.admin.options import BaseModelAdmin
from django.core.paginator import Paginator
from django.db.models import Field, Lookup
from django.forms.models import BaseModelForm


def _make_subscriptable() -> None:
    """Let `ModelAdmin[Event]` be evaluated: only django-stubs declares it as generic."""
    classes: list[Any] = [BaseModelAdmin, BaseModelForm, Field, Lookup, Paginator]
    for generic in classes:
        if not hasattr(generic, "__class_getitem__"):
            generic.__class_getitem__ = classmethod(lambda cls, *_: cls)


_make_subscriptable()  # before any model is imported


class WebhooksCoreConfig(AppConfig):
    name = "webhooks_core"
    verbose_name = "Webhooks"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from webhooks_core import checks  # noqa: F401 - registers them
        from webhooks_core.upkeep import bootstrap

        bootstrap.schedule_after_migrate(
            self,
            "webhooks_core.tasks.sweep",
            name="webhooks: sweep",
            schedule_type="I",
            minutes=1,
        )
        if not structlog.is_configured():
            _log_to_logging()


def _log_to_logging() -> None:
    """Send log lines to `logging`, as Django does; structlog's default is standard output."""
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.processors.format_exc_info,
            structlog.processors.KeyValueRenderer(key_order=["event"]),
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
    )
