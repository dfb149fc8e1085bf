from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("webhooks_core", "0011_list_indexes"),
    ]

    operations = [
        migrations.AddField(
            model_name="endpoint",
            name="last_attempt_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]
