import django.db.models.deletion
import django.db.models.functions.comparison
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

from webhooks_core.database.compression import compress_with_lz4


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("webhooks_core", "__first__"),
    ]

    operations = [
        migrations.CreateModel(
            name="PersonalToken",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                ("name", models.CharField(blank=True, max_length=100)),
                ("digest", models.CharField(max_length=64, unique=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("last_used_at", models.DateTimeField(null=True)),
                ("revoked_at", models.DateTimeField(null=True)),
                (
                    "display_prefix",
                    models.CharField(max_length=24, verbose_name="token"),
                ),
                ("expires_at", models.DateTimeField()),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="Recording",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                (
                    "account",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("audio_id", models.CharField(max_length=255)),
                (
                    "size",
                    models.PositiveIntegerField(help_text="Bytes of the document."),
                ),
                ("title", models.TextField(blank=True, default="")),
                ("recorded_at", models.DateTimeField(blank=True, null=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("updated_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("search_text", models.TextField(default="")),
                ("document", models.BinaryField()),
                ("summaries", models.BinaryField(null=True)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["audio_id"], name="recording_by_id"),
                    models.Index(
                        models.F("account"),
                        models.OrderBy(
                            django.db.models.functions.comparison.Coalesce(
                                "recorded_at", "created_at"
                            ),
                            descending=True,
                        ),
                        name="recording_by_time",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("account", "audio_id"), name="recording_of_account"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="EventSubscription",
            fields=[
                (
                    "endpoint",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="webhooks_core.endpoint",
                    ),
                ),
                ("client", models.CharField(max_length=64)),
                ("subscription_id", models.CharField(max_length=40, unique=True)),
                ("expires_at", models.DateTimeField()),
                (
                    "account",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        compress_with_lz4("recording_recording", "document"),
        compress_with_lz4("recording_recording", "search_text"),
    ]
