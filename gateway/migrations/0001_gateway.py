import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Document",
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
                ("public_id", models.CharField(max_length=40, unique=True)),
                ("tenant", models.CharField(max_length=128)),
                ("principal", models.CharField(max_length=128)),
                ("title", models.CharField(blank=True, max_length=255)),
                ("content_type", models.CharField(max_length=32)),
                (
                    "checksum",
                    models.CharField(
                        help_text="SHA-256 of the UTF-8 text.", max_length=64
                    ),
                ),
                ("content", models.TextField()),
                ("size", models.PositiveIntegerField(help_text="Bytes of UTF-8.")),
                ("characters", models.PositiveIntegerField()),
                ("chunk_count", models.PositiveIntegerField()),
                ("metadata", models.BinaryField(default=b"{}", help_text="JSON.")),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "checksum"), name="document_once_per_tenant"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="GatewayKey",
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
                ("tenant", models.CharField(max_length=128)),
                ("principal", models.CharField(max_length=128)),
                ("display_prefix", models.CharField(max_length=24, verbose_name="key")),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["tenant", "principal"], name="key_of_tenant")
                ],
            },
        ),
        migrations.CreateModel(
            name="PolicyDecision",
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
                ("public_id", models.CharField(max_length=40, unique=True)),
                ("tenant", models.CharField(max_length=128)),
                ("principal", models.CharField(max_length=128)),
                ("action", models.CharField(max_length=128)),
                ("resource", models.CharField(max_length=255)),
                ("reason", models.CharField(blank=True, max_length=255)),
                ("allowed", models.BooleanField()),
                ("request_id", models.CharField(blank=True, max_length=128)),
                ("trace_id", models.CharField(blank=True, max_length=32)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["tenant", "-id"], name="decision_of_tenant")
                ],
            },
        ),
        migrations.CreateModel(
            name="Chunk",
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
                ("number", models.PositiveIntegerField()),
                ("text", models.TextField()),
                (
                    "document",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="gateway.document",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("document", "number"), name="chunk_once"
                    )
                ],
            },
        ),
    ]
