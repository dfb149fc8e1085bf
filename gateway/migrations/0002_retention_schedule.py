"""Let the worker remove old policy decisions and documents every hour."""

from django.db import migrations

REMOVE_OLD = "gateway.tasks.remove_old"


def schedule(apps, editor):
    apps.get_model("django_q", "Schedule").objects.get_or_create(
        func=REMOVE_OLD,
        defaults={"name": "gateway: retention", "schedule_type": "H", "repeats": -1},
    )


def unschedule(apps, editor):
    apps.get_model("django_q", "Schedule").objects.filter(func=REMOVE_OLD).delete()


class Migration(migrations.Migration):
    dependencies = [
        ("gateway", "0001_keys_decisions_documents"),
        ("django_q", "0019_alter_task_options_alter_ormq_key_alter_ormq_lock_and_more"),
    ]

    operations = [migrations.RunPython(schedule, unschedule)]
