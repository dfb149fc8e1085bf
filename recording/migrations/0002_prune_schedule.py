"""Let the worker delete, once a day, the personal tokens that ended a month ago."""

from django.db import migrations

PRUNE = "recording.tokens.prune"


def schedule(apps, editor):
    apps.get_model("django_q", "Schedule").objects.get_or_create(
        func=PRUNE,
        defaults={
            "name": "recording: prune personal tokens",
            "kwargs": '{"days": 30}',
            "schedule_type": "D",
            "repeats": -1,
        },
    )


def unschedule(apps, editor):
    apps.get_model("django_q", "Schedule").objects.filter(func=PRUNE).delete()


class Migration(migrations.Migration):
    dependencies = [
        ("recording", "0001_recordings_and_personal_tokens"),
        ("django_q", "0019_alter_task_options_alter_ormq_key_alter_ormq_lock_and_more"),
    ]

    operations = [migrations.RunPython(schedule, unschedule)]
