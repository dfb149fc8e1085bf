"""Keep how a model thinks, whether its streams need a finish reason, and which had none."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("gateway_chat", "0001_chat"),
    ]

    operations = [
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
