"""Let the worker purge expired codes and tokens and unused applications every hour."""

from django.db import migrations

PURGE = "recording.oauth.prune.purge"


def schedule(apps, editor):
    apps.get_model("django_q", "Schedule").objects.get_or_create(
        func=PURGE,
        defaults={"name": "oauth: purge", "schedule_type": "H", "repeats": -1},
    )


def unschedule(apps, editor):
    apps.get_model("django_q", "Schedule").objects.filter(func=PURGE).delete()


class Migration(migrations.Migration):
    dependencies = [
        ("recording_oauth", "0001_initial"),
        ("django_q", "0019_alter_task_options_alter_ormq_key_alter_ormq_lock_and_more"),
    ]

    operations = [migrations.RunPython(schedule, unschedule)]
