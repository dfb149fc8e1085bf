from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("webhooks_core", "0006_limits"),
    ]

    operations = [
        migrations.AddField(
            model_name="shift",
            name="offline_since",
            field=models.DateTimeField(null=True),
        ),
    ]
