import django.core.validators
import django.db.models.deletion
import django.utils.timezone
import webhooks_core.secrets
from django.db import migrations, models

from webhooks_core.database.compression import compress_with_lz4

# Room in each page lets an update stay there: without a new entry in any index if it changes no
# indexed column. The vacuum follows the rows that changed, not the size of the history. The
# queues' rows are few, and each is written many times a minute.
STORAGE = {
    "delivery": "fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02,"
    " autovacuum_analyze_scale_factor = 0.02",
    "endpoint": "fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05",
    "endpointqueue": "fillfactor = 50, autovacuum_vacuum_scale_factor = 0,"
    " autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0",
    "dispatcherlease": "fillfactor = 50, autovacuum_vacuum_scale_factor = 0,"
    " autovacuum_vacuum_threshold = 100",
}


def set_storage(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        for table, parameters in STORAGE.items():
            schema_editor.execute(
                f"ALTER TABLE webhooks_core_{table} SET ({parameters})"
            )


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Delivery",
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
                ("public_id", models.CharField(max_length=40)),
                (
                    "status",
                    models.PositiveSmallIntegerField(
                        choices=[(0, "Waiting"), (1, "Delivered"), (2, "Failed")],
                        default=0,
                    ),
                ),
                ("attempts", models.PositiveIntegerField(default=0)),
                ("interruptions", models.PositiveSmallIntegerField(default=0)),
                ("lone_interruptions", models.PositiveSmallIntegerField(default=0)),
                (
                    "next_attempt_at",
                    models.DateTimeField(default=django.utils.timezone.now, null=True),
                ),
                ("claimed_by", models.BigIntegerField(null=True)),
                ("claimed_at", models.DateTimeField(null=True)),
                ("last_error", models.CharField(blank=True, max_length=512)),
                ("delivered_at", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "trigger",
                    models.CharField(
                        choices=[
                            ("event", "Sent for the event"),
                            ("test", "Test"),
                            ("manual", "Resent"),
                        ],
                        default="event",
                        max_length=8,
                    ),
                ),
                ("replay_number", models.PositiveIntegerField(default=0)),
            ],
            options={
                "verbose_name_plural": "deliveries",
            },
        ),
        migrations.CreateModel(
            name="Endpoint",
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
                ("public_id", models.CharField(max_length=40)),
                ("profile", models.CharField(max_length=32)),
                ("owner", models.CharField(max_length=128)),
                ("url", models.CharField(max_length=2048, verbose_name="URL")),
                ("event_types", models.JSONField(default=list)),
                ("filter", models.JSONField(blank=True, null=True)),
                ("description", models.CharField(blank=True, max_length=1000)),
                (
                    "status",
                    models.PositiveSmallIntegerField(
                        choices=[(1, "Active"), (2, "Disabled")], default=1
                    ),
                ),
                (
                    "active",
                    models.BooleanField(
                        default=True, help_text="The owner's own toggle."
                    ),
                ),
                ("consecutive_failures", models.PositiveIntegerField(default=0)),
                ("timeouts", models.PositiveIntegerField(default=0)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("updated_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("last_attempt_at", models.DateTimeField(blank=True, null=True)),
                ("last_success_at", models.DateTimeField(blank=True, null=True)),
                ("failing_since", models.DateTimeField(blank=True, null=True)),
                (
                    "failed_attempts",
                    models.PositiveIntegerField(db_default=0, default=0),
                ),
                (
                    "alike_failures",
                    models.PositiveIntegerField(db_default=0, default=0),
                ),
                (
                    "last_outcome",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("ok", "Delivered"),
                            ("http", "No valid HTTP"),
                            ("timeout", "Timeout"),
                            ("dns", "Name not found"),
                            ("connect", "No connection"),
                            ("tls", "TLS failed"),
                            ("blocked", "Address refused"),
                            ("unsigned", "Not signed"),
                            ("interrupted", "Interrupted"),
                        ],
                        db_default="",
                        default="",
                        max_length=16,
                    ),
                ),
                (
                    "last_error",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=512
                    ),
                ),
                (
                    "last_response",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=200
                    ),
                ),
                ("disabled_at", models.DateTimeField(blank=True, null=True)),
                ("enabled_at", models.DateTimeField(blank=True, null=True)),
                ("alerted_at", models.DateTimeField(blank=True, null=True)),
                ("deleted_at", models.DateTimeField(blank=True, null=True)),
                ("static_key", models.CharField(blank=True, max_length=128, null=True)),
                ("slot", models.PositiveSmallIntegerField(blank=True, null=True)),
                (
                    "trusted",
                    models.BooleanField(
                        default=False,
                        help_text="May be sent to the networks of WEBHOOK_ALLOWED_TARGETS.",
                    ),
                ),
                (
                    "max_in_flight",
                    models.PositiveSmallIntegerField(default=4),
                ),
                (
                    "standard_headers",
                    models.BooleanField(
                        default=False,
                        help_text="Send the Standard Webhooks headers too.",
                    ),
                ),
                (
                    "custom_headers",
                    webhooks_core.secrets.EncryptedTextField(blank=True, null=True),
                ),
            ],
        ),
        migrations.CreateModel(
            name="EndpointSecret",
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
                ("value", webhooks_core.secrets.EncryptedTextField()),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
            ],
        ),
        migrations.CreateModel(
            name="EngineState",
            fields=[
                (
                    "id",
                    models.PositiveSmallIntegerField(
                        default=1, primary_key=True, serialize=False
                    ),
                ),
                ("woken_at", models.DateTimeField(null=True)),
                ("swept_at", models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name="Event",
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
                ("public_id", models.CharField(max_length=40)),
                ("profile", models.CharField(max_length=32)),
                ("owner", models.CharField(max_length=128)),
                ("type", models.CharField(max_length=128)),
                ("size", models.PositiveIntegerField()),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("body", models.BinaryField()),
            ],
        ),
        migrations.CreateModel(
            name="OwnerRemoval",
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
                ("profile", models.CharField(max_length=32)),
                ("owner", models.CharField(max_length=128)),
                ("ended_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="Attempt",
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
                ("started_at", models.DateTimeField()),
                ("duration_ms", models.PositiveIntegerField(default=0)),
                (
                    "outcome",
                    models.CharField(
                        choices=[
                            ("ok", "Delivered"),
                            ("http", "No valid HTTP"),
                            ("timeout", "Timeout"),
                            ("dns", "Name not found"),
                            ("connect", "No connection"),
                            ("tls", "TLS failed"),
                            ("blocked", "Address refused"),
                            ("unsigned", "Not signed"),
                            ("interrupted", "Interrupted"),
                        ],
                        max_length=16,
                    ),
                ),
                ("status_code", models.PositiveSmallIntegerField(null=True)),
                ("error", models.CharField(blank=True, max_length=512)),
                ("response_body", models.BinaryField(default=b"")),
                ("is_repeated", models.BooleanField(db_default=False, default=False)),
                ("details", models.JSONField(default=dict)),
                (
                    "delivery",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="webhooks_core.delivery",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="DispatcherLease",
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
                ("slot", models.PositiveSmallIntegerField(unique=True)),
                ("host", models.CharField(max_length=255)),
                ("pid", models.PositiveIntegerField()),
                ("expires_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="EndpointQueue",
            fields=[
                (
                    "endpoint",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="queue",
                        serialize=False,
                        to="webhooks_core.endpoint",
                    ),
                ),
                ("next_due_at", models.DateTimeField(null=True)),
                ("leased_by", models.BigIntegerField(null=True)),
            ],
        ),
        migrations.AddIndex(
            model_name="endpoint",
            index=models.Index(
                condition=models.Q(("deleted_at", None)),
                fields=["profile", "owner", "-id"],
                name="endpoint_of_owner",
            ),
        ),
        migrations.AddConstraint(
            model_name="endpoint",
            constraint=models.UniqueConstraint(
                fields=("public_id",), name="endpoint_public_id"
            ),
        ),
        migrations.AddConstraint(
            model_name="endpoint",
            constraint=models.UniqueConstraint(
                condition=models.Q(("slot__isnull", False)),
                fields=("profile", "owner", "slot"),
                name="endpoint_slot",
            ),
        ),
        migrations.AddConstraint(
            model_name="endpoint",
            constraint=models.UniqueConstraint(
                condition=models.Q(("static_key__isnull", False)),
                fields=("profile", "owner", "static_key"),
                name="endpoint_static_key",
            ),
        ),
        migrations.AddConstraint(
            model_name="endpoint",
            constraint=models.CheckConstraint(
                condition=models.Q(("max_in_flight__gte", 1)),
                name="endpoint_some_in_flight",
            ),
        ),
        migrations.AddField(
            model_name="delivery",
            name="endpoint",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                to="webhooks_core.endpoint",
            ),
        ),
        migrations.AddField(
            model_name="endpointsecret",
            name="endpoint",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, to="webhooks_core.endpoint"
            ),
        ),
        migrations.AddIndex(
            model_name="event",
            index=models.Index(
                fields=["profile", "owner", "type", "-id"], name="event_of_owner"
            ),
        ),
        migrations.AddIndex(
            model_name="event",
            index=models.Index(fields=["created_at"], name="event_age"),
        ),
        migrations.AddConstraint(
            model_name="event",
            constraint=models.UniqueConstraint(
                fields=("public_id",), name="event_public_id"
            ),
        ),
        migrations.AddField(
            model_name="delivery",
            name="event",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                to="webhooks_core.event",
            ),
        ),
        migrations.AddConstraint(
            model_name="ownerremoval",
            constraint=models.UniqueConstraint(
                fields=("profile", "owner"), name="removal_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="attempt",
            constraint=models.UniqueConstraint(
                fields=("delivery", "number"), name="attempt_once"
            ),
        ),
        migrations.AddIndex(
            model_name="endpointqueue",
            index=models.Index(
                condition=models.Q(("next_due_at__isnull", False)),
                fields=["next_due_at"],
                name="queue_due",
            ),
        ),
        migrations.AddIndex(
            model_name="endpointqueue",
            index=models.Index(
                condition=models.Q(("leased_by__isnull", False)),
                fields=["leased_by"],
                name="queue_leased_by",
            ),
        ),
        migrations.AddIndex(
            model_name="delivery",
            index=models.Index(
                condition=models.Q(("status", 0)),
                fields=["endpoint", "next_attempt_at", "id"],
                name="delivery_due",
            ),
        ),
        migrations.AddIndex(
            model_name="delivery",
            index=models.Index(fields=["endpoint", "-id"], name="delivery_of_endpoint"),
        ),
        migrations.AddIndex(
            model_name="delivery",
            index=models.Index(
                condition=models.Q(("status", 2)),
                fields=["-id"],
                name="delivery_failed",
            ),
        ),
        migrations.AddIndex(
            model_name="delivery",
            index=models.Index(
                condition=models.Q(("status", 2)),
                fields=["endpoint", "-id"],
                name="delivery_failed_of_endpoint",
            ),
        ),
        migrations.AddConstraint(
            model_name="delivery",
            constraint=models.UniqueConstraint(
                fields=("public_id",), name="delivery_public_id"
            ),
        ),
        migrations.AddConstraint(
            model_name="delivery",
            constraint=models.UniqueConstraint(
                fields=("event", "endpoint", "replay_number"), name="delivery_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="delivery",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("next_attempt_at__isnull", False), ("status", 0)),
                    models.Q(
                        models.Q(("status", 0), _negated=True),
                        ("claimed_by", None),
                        ("next_attempt_at", None),
                    ),
                    _connector="OR",
                ),
                name="delivery_due_while_pending",
            ),
        ),
        migrations.AddConstraint(
            model_name="delivery",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("delivered_at__isnull", False), ("status", 1)),
                    models.Q(
                        models.Q(("status", 1), _negated=True), ("delivered_at", None)
                    ),
                    _connector="OR",
                ),
                name="delivery_time_when_delivered",
            ),
        ),
        migrations.RunPython(set_storage, migrations.RunPython.noop),
        compress_with_lz4("webhooks_core_event", "body"),
    ]
