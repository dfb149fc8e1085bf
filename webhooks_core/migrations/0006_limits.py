from __future__ import annotations

import django.core.validators
from django.db import migrations, models


def mend(apps, schema_editor):
    """Give endpoints of which nothing could ever be sent the least that can be."""
    endpoints = apps.get_model("webhooks_core", "Endpoint").objects
    endpoints.filter(max_in_flight=0).update(max_in_flight=1)
    endpoints.filter(rate_per_second=0).update(rate_per_second=None)


class Migration(migrations.Migration):
    dependencies = [
        ("webhooks_core", "0005_support_group"),
    ]

    operations = [
        migrations.AddField(
            model_name="lane",
            name="held_until",
            field=models.DateTimeField(null=True),
        ),
        migrations.AlterField(
            model_name="endpoint",
            name="in_order",
            field=models.BooleanField(
                default=False,
                help_text="A delivery waits until those of earlier events have ended.",
            ),
        ),
        migrations.AlterField(
            model_name="endpoint",
            name="max_in_flight",
            field=models.PositiveSmallIntegerField(
                default=4,
                validators=[
                    django.core.validators.MinValueValidator(1),
                    django.core.validators.MaxValueValidator(512),
                ],
            ),
        ),
        migrations.AlterField(
            model_name="endpoint",
            name="rate_per_second",
            field=models.PositiveIntegerField(
                blank=True,
                help_text="At most so many attempts within any second.",
                null=True,
                validators=[
                    django.core.validators.MinValueValidator(1),
                    django.core.validators.MaxValueValidator(10000),
                ],
            ),
        ),
        migrations.AddIndex(
            model_name="delivery",
            index=models.Index(
                condition=models.Q(("status", 0)),
                fields=["endpoint", "event", "id"],
                name="delivery_in_order",
            ),
        ),
        migrations.RunPython(mend, migrations.RunPython.noop),
        migrations.AddConstraint(
            model_name="endpoint",
            constraint=models.CheckConstraint(
                condition=models.Q(("max_in_flight__gte", 1)),
                name="endpoint_some_in_flight",
            ),
        ),
        migrations.AddConstraint(
            model_name="endpoint",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("rate_per_second", None),
                    ("rate_per_second__gte", 1),
                    _connector="OR",
                ),
                name="endpoint_some_per_second",
            ),
        ),
    ]
