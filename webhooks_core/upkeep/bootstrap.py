"""Rows that are created after each `migrate`: migrations contain no data."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.apps import AppConfig, apps
from django.contrib.auth.management import create_permissions
from django.db import connections
from django.db.models import Model
from django.db.models.signals import post_migrate  # noqa: TID251 - Django offers nothing else

from webhooks_core.conf import webhook_settings

SUPPORT_VIEWS = ("attempt", "delivery", "dispatcherlease", "endpoint", "event")


def after_migrate(app: AppConfig) -> None:
    """Create the engine's rows after each `migrate` of its app."""
    post_migrate.connect(_create_state, sender=app)
    post_migrate.connect(_create_support_group, sender=app)
    schedule_after_migrate(
        app,
        "webhooks_core.tasks.sweep",
        name="webhooks: sweep",
        schedule_type="I",
        minutes=1,
    )


def schedule_after_migrate(app: AppConfig, func: str, **fields: Any) -> None:
    """Schedule `func` in django-q2 without end, with these `fields` of its Schedule.

    An existing schedule of this function is kept: an operator may have changed it.
    """
    create = partial(_create_schedule, func=func, fields={"repeats": -1, **fields})
    post_migrate.connect(create, sender=app, weak=False, dispatch_uid=func)


def _create_state(using: str, **_: Any) -> None:
    if (states := _rows("webhooks_core.EngineState", using)) is not None:
        states.get_or_create(pk=1)


def _create_schedule(
    using: str, *, func: str, fields: dict[str, Any], **_: Any
) -> None:
    if (schedules := _rows("django_q.Schedule", using)) is not None:
        schedules.get_or_create(func=func, defaults=fields)


def _create_support_group(app_config: AppConfig, using: str, **_: Any) -> None:
    """Create the group whose members see all webhooks and change nothing."""
    name = webhook_settings.SUPPORT_GROUP
    groups, permissions = _rows("auth.Group", using), _rows("auth.Permission", using)
    if not name or groups is None or permissions is None:
        return
    group, is_new = groups.get_or_create(name=name)
    if is_new:
        create_permissions(app_config, using=using, verbosity=0)
        codenames = [f"view_{model}" for model in SUPPORT_VIEWS]
        own = permissions.filter(content_type__app_label=app_config.label)
        group.permissions.set(own.filter(codename__in=codenames))


def _rows(model_name: str, using: str) -> Any:
    """Return a model's rows; None while its app is not installed or its table is missing."""
    try:
        model = apps.get_model(model_name)
    except LookupError:
        return None
    return model._default_manager.using(using) if has_table(model, using) else None


def has_table(model: type[Model], using: str = "default") -> bool:
    """Return False before the migration that creates a model's table."""
    return model._meta.db_table in connections[using].introspection.table_names()
