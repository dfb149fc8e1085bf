from __future__ import annotations

from django.db import migrations

SWEEP = "webhooks_core.tasks.sweep"


def add_rows(apps, schema_editor):
    apps.get_model("webhooks_core", "Bell").objects.get_or_create(pk=1)
    apps.get_model("django_q", "Schedule").objects.get_or_create(
        name="webhooks: sweep",
        defaults={"func": SWEEP, "schedule_type": "I", "minutes": 1, "repeats": -1},
    )


def remove_rows(apps, schema_editor):
    apps.get_model("webhooks_core", "Bell").objects.all().delete()
    apps.get_model("django_q", "Schedule").objects.filter(func=SWEEP).delete()


class Migration(migrations.Migration):
    dependencies = [
        ("webhooks_core", "0001_initial"),
        ("django_q", "0019_alter_task_options_alter_ormq_key_alter_ormq_lock_and_more"),
    ]

    operations = [migrations.RunPython(add_rows, remove_rows)]
