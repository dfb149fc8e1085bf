"""Schedules that are created after each `migrate`: migrations contain no data."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.apps import AppConfig, apps
from django.db import connections
from django.db.models.signals import post_migrate  # noqa: TID251 - Django offers nothing else


def schedule_after_migrate(app: AppConfig, func: str, **fields: Any) -> None:
    """Schedule `func` in django-q2 without end, with these `fields` of its Schedule.

    An existing schedule of this function is kept: an operator may have changed it.
    """
    create = partial(_create_schedule, func=func, fields={"repeats": -1, **fields})
    post_migrate.connect(create, sender=app, weak=False, dispatch_uid=func)


def _create_schedule(
    using: str, *, func: str, fields: dict[str, Any], **_: Any
) -> None:
    if not apps.is_installed("django_q"):
        return
    schedule = apps.get_model("django_q.Schedule")
    if schedule._meta.db_table in connections[using].introspection.table_names():
        schedules = schedule._default_manager.using(using)
        schedules.get_or_create(func=func, defaults=fields)
