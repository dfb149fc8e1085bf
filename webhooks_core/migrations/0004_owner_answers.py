"""What owners ask of their endpoints: since when they fail, what was skipped, who changed what."""

import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models

ENDPOINT = {
    "db_index": False,
    "on_delete": django.db.models.deletion.CASCADE,
    "to": "webhooks_core.endpoint",
}


def key():
    return models.BigAutoField(
        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
    )


def endpoint_field(name):
    field = (
        models.DateTimeField(blank=True, null=True)
        if name.endswith(("_at", "_since"))
        else models.PositiveIntegerField(db_default=0, default=0)
    )
    return migrations.AddField("endpoint", name, field)


class Migration(migrations.Migration):
    dependencies = [("webhooks_core", "0003_attempt_slots")]

    operations = [
        endpoint_field("last_success_at"),
        endpoint_field("failing_since"),
        endpoint_field("disabled_at"),
        endpoint_field("failed_attempts"),
        endpoint_field("alike_failures"),
        migrations.AddField(
            model_name="endpoint",
            name="last_outcome",
            field=models.CharField(
                blank=True,
                choices=[
                    ("ok", "Ok"),
                    ("http", "Http"),
                    ("timeout", "Timeout"),
                    ("dns", "Dns"),
                    ("connect", "Connect"),
                    ("tls", "Tls"),
                    ("blocked", "Blocked"),
                    ("unsigned", "Unsigned"),
                    ("interrupted", "Interrupted"),
                ],
                db_default="",
                default="",
                max_length=16,
            ),
        ),
        migrations.AddField(
            model_name="endpoint",
            name="last_error",
            field=models.CharField(
                blank=True, db_default="", default="", max_length=512
            ),
        ),
        migrations.AddField(
            model_name="endpoint",
            name="last_response",
            field=models.CharField(
                blank=True, db_default="", default="", max_length=200
            ),
        ),
        migrations.CreateModel(
            name="EndpointChange",
            fields=[
                ("id", key()),
                ("actor_kind", models.CharField(max_length=16)),
                ("actor", models.CharField(blank=True, max_length=150)),
                ("at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "action",
                    models.CharField(
                        choices=[
                            ("created", "Created"),
                            ("changed", "Changed"),
                            ("paused", "Paused"),
                            ("resumed", "Resumed"),
                            ("disabled", "Disabled"),
                            ("enabled", "Enabled"),
                            ("deleted", "Deleted"),
                            ("rotated", "Rotated"),
                            ("shown", "Shown"),
                            ("resent", "Resent"),
                            ("retried", "Retried"),
                            ("cancelled", "Cancelled"),
                            ("replay_started", "Replay Started"),
                            ("replay_cancelled", "Replay Cancelled"),
                        ],
                        max_length=16,
                    ),
                ),
                ("subject", models.CharField(blank=True, max_length=40)),
                ("details", models.JSONField(blank=True, default=dict)),
                ("endpoint", models.ForeignKey(**ENDPOINT)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["endpoint", "-id"], name="change_of_endpoint"),
                    models.Index(fields=["at"], name="change_age"),
                ],
            },
        ),
        migrations.CreateModel(
            name="ReplayJob",
            fields=[
                ("id", key()),
                ("public_id", models.CharField(max_length=40)),
                (
                    "kind",
                    models.CharField(
                        choices=[("failed", "Failed"), ("missing", "Missing")],
                        max_length=8,
                    ),
                ),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("running", "Running"),
                            ("done", "Done"),
                            ("cancelled", "Cancelled"),
                            ("stopped", "Stopped"),
                        ],
                        default="running",
                        max_length=10,
                    ),
                ),
                ("since", models.DateTimeField()),
                ("until", models.DateTimeField()),
                ("event_types", models.JSONField(default=list)),
                ("rate_per_s", models.PositiveIntegerField()),
                ("total", models.PositiveIntegerField()),
                ("sent", models.PositiveIntegerField(default=0)),
                ("skipped", models.PositiveIntegerField(default=0)),
                ("position", models.BigIntegerField(default=0)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("continued_at", models.DateTimeField(null=True)),
                ("finished_at", models.DateTimeField(null=True)),
                ("endpoint", models.ForeignKey(**ENDPOINT)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["endpoint", "-id"], name="replay_of_endpoint")
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("public_id",), name="replay_public_id"
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("status", "running")),
                        fields=("endpoint",),
                        name="replay_one_at_a_time",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="SkippedEvent",
            fields=[
                ("id", key()),
                (
                    "reason",
                    models.CharField(
                        choices=[("disabled", "Disabled"), ("inactive", "Inactive")],
                        max_length=8,
                    ),
                ),
                ("endpoint", models.ForeignKey(**ENDPOINT)),
                (
                    "event",
                    models.ForeignKey(**ENDPOINT | {"to": "webhooks_core.event"}),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        fields=["endpoint", "-event"], name="skipped_by_endpoint"
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("event", "endpoint"), name="skipped_once"
                    )
                ],
            },
        ),
        migrations.SeparateDatabaseAndState(
            # The column is the same: its choices have grown.
            state_operations=[
                migrations.AlterField(
                    model_name="delivery",
                    name="trigger",
                    field=models.CharField(
                        choices=[
                            ("event", "Event"),
                            ("test", "Test"),
                            ("replay", "Replay"),
                            ("manual", "Manual"),
                        ],
                        default="event",
                        max_length=8,
                    ),
                )
            ]
        ),
        migrations.AddIndex(
            model_name="delivery",
            index=models.Index(
                condition=models.Q(("status", 2)),
                fields=["endpoint", "-id"],
                name="delivery_failed_of_endpoint",
            ),
        ),
        migrations.AddIndex(
            model_name="delivery",
            index=models.Index(
                condition=models.Q(("trigger", "event"), _negated=True),
                fields=["endpoint", "-id"],
                name="delivery_by_hand_to_endpoint",
            ),
        ),
    ]
