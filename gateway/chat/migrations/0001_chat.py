import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
import django.utils.timezone
import gateway.chat.models
import webhooks_core.secrets
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Budget",
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
                ("name", models.CharField(max_length=64, unique=True)),
                (
                    "counts",
                    models.CharField(
                        choices=[
                            ("requests", "requests"),
                            ("tokens", "tokens"),
                            ("cost", "cost"),
                        ],
                        default="requests",
                        max_length=16,
                    ),
                ),
                (
                    "window",
                    models.CharField(
                        choices=[
                            ("minute", "minute"),
                            ("hour", "hour"),
                            ("day", "day"),
                            ("week", "week"),
                            ("month", "month"),
                        ],
                        default="month",
                        help_text="By the calendar in UTC; a week begins on Monday.",
                        max_length=16,
                    ),
                ),
                (
                    "limit",
                    models.DecimalField(
                        decimal_places=9,
                        help_text="Requests, tokens, or a cost in the currency of the prices.",
                        max_digits=19,
                    ),
                ),
                (
                    "per",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text="What has a counter of its own. None means one counter for all.",
                    ),
                ),
                (
                    "tenants",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text="Whose requests count, one a line.",
                    ),
                ),
                (
                    "principals",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text="One tenant/principal a line. Without both, the requests of all count.",
                    ),
                ),
                (
                    "only_models",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text="Names of model endpoints, one a line; empty means all.",
                        verbose_name="models",
                    ),
                ),
                ("is_active", models.BooleanField(default=True)),
                (
                    "created_at",
                    models.DateTimeField(
                        default=django.utils.timezone.now, editable=False
                    ),
                ),
                ("updated_at", models.DateTimeField(auto_now=True)),
            ],
            options={
                "ordering": ["name"],
            },
        ),
        migrations.CreateModel(
            name="ModelEndpoint",
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
                ("name", models.CharField(max_length=128, unique=True)),
                (
                    "upstream",
                    models.CharField(
                        choices=gateway.chat.models.upstream_choices, max_length=32
                    ),
                ),
                (
                    "inference_type",
                    models.CharField(
                        choices=[("chat", "chat"), ("embedding", "embedding")],
                        default="chat",
                        max_length=64,
                    ),
                ),
                (
                    "supports",
                    models.JSONField(
                        blank=True,
                        help_text="One of streaming, tools, vision, audio, json_object, json_schema, reasoning a line; empty means everything.",
                        null=True,
                        validators=[gateway.chat.models.check_supports],
                    ),
                ),
                (
                    "stream_usage",
                    models.BooleanField(
                        default=True,
                        help_text="Ask the upstream for the usage of streams.",
                    ),
                ),
                (
                    "thinking",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("", "adaptive"),
                            ("unasked", "unasked"),
                            ("budget", "budget"),
                        ],
                        db_default="",
                        default="",
                        help_text="Of Anthropic's models: when a request asks for it, also unasked, or with a budget of tokens (before Claude 4.6).",
                        max_length=16,
                    ),
                ),
                (
                    "strict_end",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="A stream without a finish reason is a failure.",
                    ),
                ),
                (
                    "options",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="As YAML, as in the configuration file: drop_params, extra_headers, extra_body, retries, fallbacks, context_fallbacks, balance, proxy, responses, server, api_version. It is shown again: write ${NAME} for a secret.",
                        verbose_name="more keys",
                    ),
                ),
                ("is_active", models.BooleanField(default=True)),
                ("allow_everyone", models.BooleanField(default=True)),
                (
                    "allow_tenants",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text="One a line; only without “everyone”.",
                    ),
                ),
                (
                    "allow_principals",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text="One tenant/principal a line.",
                    ),
                ),
                (
                    "connect_s",
                    models.FloatField(
                        default=5.0,
                        validators=[django.core.validators.MinValueValidator(0.01)],
                        verbose_name="seconds to connect",
                    ),
                ),
                (
                    "first_byte_s",
                    models.FloatField(
                        default=60.0,
                        validators=[django.core.validators.MinValueValidator(0.01)],
                        verbose_name="seconds to the first byte of a stream",
                    ),
                ),
                (
                    "idle_s",
                    models.FloatField(
                        default=60.0,
                        validators=[django.core.validators.MinValueValidator(0.01)],
                        verbose_name="seconds between bytes of a stream",
                    ),
                ),
                (
                    "total_s",
                    models.FloatField(
                        blank=True,
                        default=600.0,
                        help_text="Of streams and of synchronous responses; empty means no limit.",
                        null=True,
                        validators=[django.core.validators.MinValueValidator(0.01)],
                        verbose_name="seconds in all",
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        default=django.utils.timezone.now, editable=False
                    ),
                ),
                ("updated_at", models.DateTimeField(auto_now=True)),
            ],
            options={
                "ordering": ["name"],
            },
        ),
        migrations.CreateModel(
            name="ModelPrice",
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
                ("model", models.CharField(max_length=128, unique=True)),
                (
                    "prompt_price",
                    models.DecimalField(
                        decimal_places=6,
                        help_text="Of a million tokens sent in.",
                        max_digits=12,
                        validators=[django.core.validators.MinValueValidator(0)],
                    ),
                ),
                (
                    "completion_price",
                    models.DecimalField(
                        decimal_places=6,
                        help_text="Of a million tokens that came back.",
                        max_digits=12,
                        validators=[django.core.validators.MinValueValidator(0)],
                    ),
                ),
                (
                    "cached_input_price",
                    models.DecimalField(
                        blank=True,
                        decimal_places=6,
                        help_text="Of a million tokens read from the cache; empty means the prompt price.",
                        max_digits=12,
                        null=True,
                        validators=[django.core.validators.MinValueValidator(0)],
                    ),
                ),
                (
                    "cache_write_price",
                    models.DecimalField(
                        blank=True,
                        decimal_places=6,
                        help_text="Of a million tokens written to the cache; empty means the prompt price.",
                        max_digits=12,
                        null=True,
                        validators=[django.core.validators.MinValueValidator(0)],
                    ),
                ),
                (
                    "reasoning_price",
                    models.DecimalField(
                        blank=True,
                        decimal_places=6,
                        help_text="Of a million tokens of reasoning; empty means the completion price.",
                        max_digits=12,
                        null=True,
                        validators=[django.core.validators.MinValueValidator(0)],
                    ),
                ),
                (
                    "updated_at",
                    models.DateTimeField(
                        auto_now=True,
                        db_default=django.db.models.functions.datetime.Now(),
                    ),
                ),
            ],
            options={
                "ordering": ["model"],
            },
        ),
        migrations.CreateModel(
            name="BudgetCounter",
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
                ("budget", models.CharField(max_length=64)),
                ("subject", models.CharField(blank=True, max_length=600)),
                ("window", models.BigIntegerField()),
                ("tenant", models.CharField(blank=True, max_length=128)),
                ("amount", models.BigIntegerField(default=0)),
                ("reported", models.PositiveSmallIntegerField(db_default=0, default=0)),
            ],
            options={
                "indexes": [models.Index(fields=["window"], name="budget_counter_age")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("budget", "subject", "window"),
                        name="budget_counter_once",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="LoggedRequest",
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
                ("created_at", models.DateTimeField()),
                ("tenant", models.CharField(max_length=128)),
                ("principal", models.CharField(max_length=128)),
                ("key_id", models.BigIntegerField(null=True)),
                ("model", models.CharField(max_length=128)),
                ("upstream_model", models.CharField(blank=True, max_length=255)),
                ("request_id", models.CharField(max_length=128)),
                ("status", models.PositiveSmallIntegerField()),
                ("error_status", models.PositiveSmallIntegerField(default=0)),
                ("streamed", models.BooleanField()),
                ("prompt_tokens", models.PositiveIntegerField(null=True)),
                ("completion_tokens", models.PositiveIntegerField(null=True)),
                ("first_chunk_ms", models.PositiveIntegerField(null=True)),
                ("duration_ms", models.PositiveIntegerField()),
                ("public_id", models.CharField(max_length=40, unique=True)),
                ("operation", models.CharField(max_length=32)),
                ("answered_by", models.CharField(max_length=128)),
                (
                    "base_url",
                    models.CharField(
                        blank=True, max_length=2048, verbose_name="base URL"
                    ),
                ),
                ("error", models.TextField(blank=True)),
                ("estimated", models.BooleanField(default=False)),
                ("tools", models.TextField(default="[]")),
                ("excerpt", models.CharField(blank=True, max_length=120)),
                ("prompt", models.TextField()),
                ("answer", models.TextField()),
                ("truncated", models.BooleanField(default=False)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["tenant", "-id"], name="log_of_tenant"),
                    models.Index(fields=["created_at"], name="log_by_age"),
                    models.Index(fields=["request_id"], name="log_by_request"),
                ],
            },
        ),
        migrations.CreateModel(
            name="ModelTarget",
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
                    "base_url",
                    models.CharField(
                        blank=True, max_length=2048, verbose_name="base URL"
                    ),
                ),
                (
                    "model",
                    models.CharField(
                        blank=True,
                        help_text="The upstream's own name of the model.",
                        max_length=255,
                    ),
                ),
                (
                    "api_key",
                    webhooks_core.secrets.EncryptedTextField(
                        blank=True,
                        default="",
                        help_text="Stored encrypted; ${NAME} stands for an environment variable.",
                    ),
                ),
                (
                    "weight",
                    models.PositiveSmallIntegerField(
                        default=1,
                        validators=[django.core.validators.MinValueValidator(1)],
                    ),
                ),
                (
                    "endpoint",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="targets",
                        to="gateway_chat.modelendpoint",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
            },
        ),
        migrations.CreateModel(
            name="UsageBucket",
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
                ("metric", models.CharField(max_length=32)),
                ("model", models.CharField(max_length=128)),
                ("bucket", models.PositiveSmallIntegerField()),
                ("count", models.BigIntegerField(default=0)),
                ("total", models.FloatField(default=0.0)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("metric", "model", "bucket"), name="usage_bucket_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="UsageDay",
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
                ("requests", models.BigIntegerField(default=0)),
                ("failures", models.BigIntegerField(default=0)),
                ("prompt_tokens", models.BigIntegerField(default=0)),
                ("completion_tokens", models.BigIntegerField(default=0)),
                ("cost_nano", models.BigIntegerField(default=0)),
                ("estimated_requests", models.BigIntegerField(db_default=0, default=0)),
                ("day", models.DateField()),
                ("tenant", models.CharField(max_length=128)),
                ("principal", models.CharField(max_length=128)),
                ("model", models.CharField(max_length=128)),
            ],
            options={
                "verbose_name": "daily usage",
                "verbose_name_plural": "daily usage",
                "indexes": [
                    models.Index(
                        fields=["-day", "tenant", "principal", "model"],
                        name="usage_day_newest",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "day", "principal", "model"),
                        name="usage_day_once",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="UsageRecord",
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
                ("created_at", models.DateTimeField()),
                ("tenant", models.CharField(max_length=128)),
                ("principal", models.CharField(max_length=128)),
                ("key_id", models.BigIntegerField(null=True)),
                ("model", models.CharField(max_length=128)),
                ("upstream_model", models.CharField(blank=True, max_length=255)),
                ("request_id", models.CharField(max_length=128)),
                ("status", models.PositiveSmallIntegerField()),
                ("error_status", models.PositiveSmallIntegerField(default=0)),
                ("streamed", models.BooleanField()),
                ("prompt_tokens", models.PositiveIntegerField(null=True)),
                ("completion_tokens", models.PositiveIntegerField(null=True)),
                ("first_chunk_ms", models.PositiveIntegerField(null=True)),
                ("duration_ms", models.PositiveIntegerField()),
                (
                    "session",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=128
                    ),
                ),
                (
                    "agent",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=128
                    ),
                ),
                (
                    "parent_agent",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=128
                    ),
                ),
                (
                    "ending",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=32
                    ),
                ),
                ("cached_tokens", models.PositiveIntegerField(null=True)),
                ("cache_write_tokens", models.PositiveIntegerField(null=True)),
                ("reasoning_tokens", models.PositiveIntegerField(null=True)),
                ("estimated", models.BooleanField(db_default=False, default=False)),
                ("cost_nano", models.BigIntegerField(null=True)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["tenant", "-id"], name="usage_of_tenant"),
                    models.Index(fields=["created_at"], name="usage_by_age"),
                    models.Index(fields=["request_id"], name="usage_by_request"),
                ],
            },
        ),
        migrations.CreateModel(
            name="UsageTotal",
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
                ("requests", models.BigIntegerField(default=0)),
                ("failures", models.BigIntegerField(default=0)),
                ("prompt_tokens", models.BigIntegerField(default=0)),
                ("completion_tokens", models.BigIntegerField(default=0)),
                ("cost_nano", models.BigIntegerField(default=0)),
                ("estimated_requests", models.BigIntegerField(db_default=0, default=0)),
                ("model", models.CharField(max_length=128)),
                ("status", models.PositiveSmallIntegerField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("model", "status"), name="usage_total_once"
                    )
                ],
            },
        ),
    ]
