"""Keep how a model thinks, more of its keys, whether its streams need a finish reason, and which had none."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("gateway_chat", "0001_chat"),
    ]

    operations = [
        migrations.AddField(
            model_name="modelendpoint",
            name="options",
            field=models.TextField(
                blank=True,
                db_default="",
                default="",
                help_text="As YAML, as in the configuration file: drop_params, extra_headers, extra_body, retries, fallbacks, context_fallbacks, balance, proxy, responses, server, api_version, cache. It is shown again: write ${NAME} for a secret.",
                verbose_name="more keys",
            ),
        ),
        migrations.AddField(
            model_name="modelendpoint",
            name="strict_end",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="A stream without a finish reason is a failure.",
            ),
        ),
        migrations.AddField(
            model_name="modelendpoint",
            name="thinking",
            field=models.CharField(
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
        migrations.AddField(
            model_name="usagerecord",
            name="ending",
            field=models.CharField(
                blank=True, db_default="", default="", max_length=32
            ),
        ),
    ]
