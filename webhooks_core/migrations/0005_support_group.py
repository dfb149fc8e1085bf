from __future__ import annotations

from django.db import migrations

GROUP = "support"
SHOWN = ("attempt", "delivery", "endpoint", "event", "shift")


def add_group(apps, schema_editor):
    """Make the group of those who may look at webhooks and change nothing.

    Django makes permissions only after all migrations: the five are made here, as it would.
    """
    group, _ = apps.get_model("auth", "Group").objects.get_or_create(name=GROUP)
    content_types = apps.get_model("contenttypes", "ContentType").objects
    permissions = apps.get_model("auth", "Permission").objects
    for model in SHOWN:
        content_type, _ = content_types.get_or_create(
            app_label="webhooks_core", model=model
        )
        permission, _ = permissions.get_or_create(
            content_type=content_type,
            codename=f"view_{model}",
            defaults={"name": f"Can view {model}"},
        )
        group.permissions.add(permission)


def remove_group(apps, schema_editor):
    apps.get_model("auth", "Group").objects.filter(name=GROUP).delete()


class Migration(migrations.Migration):
    dependencies = [
        ("webhooks_core", "0004_shift_machine"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]

    operations = [migrations.RunPython(add_group, remove_group)]
