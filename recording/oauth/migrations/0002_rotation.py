"""Count the siblings of a retired refresh token."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("oauth2_provider", "0022_refreshtoken_token_family_index"),
        ("recording_oauth", "0001_oauth"),
    ]

    operations = [
        migrations.CreateModel(
            name="Rotation",
            fields=[
                (
                    "retired",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="oauth2_provider.refreshtoken",
                    ),
                ),
                ("siblings", models.PositiveSmallIntegerField(default=0)),
            ],
        ),
    ]
