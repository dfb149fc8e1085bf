"""The tables, and an index of the recordings' words: GIN on PostgreSQL, FTS5 on SQLite.

A later migration that rebuilds recording_searchterms on SQLite (AlterField and the like) drops the
triggers with the old table: it must run FORWARDS["sqlite"] again.
"""

import django.db.models.deletion
import django.db.models.functions.comparison
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

from webhooks_core.database.compression import compress_with_lz4

INSERT = (
    "INSERT INTO recording_search (rowid, terms) VALUES (new.recording_id, new.terms);"
)
DELETE = (
    "INSERT INTO recording_search (recording_search, rowid, terms) "
    "VALUES ('delete', old.recording_id, old.terms);"
)
FORWARDS = {
    "sqlite": [
        # The terms arrive folded and have no other ASCII characters than letters and digits.
        "CREATE VIRTUAL TABLE IF NOT EXISTS recording_search USING fts5("
        "terms, content='recording_searchterms', content_rowid='recording_id', "
        "tokenize='ascii', detail='none', columnsize=0)",
        f"CREATE TRIGGER recording_search_insert AFTER INSERT ON recording_searchterms BEGIN {INSERT} END",
        f"CREATE TRIGGER recording_search_delete AFTER DELETE ON recording_searchterms BEGIN {DELETE} END",
        "CREATE TRIGGER recording_search_update AFTER UPDATE ON recording_searchterms "
        f"WHEN old.terms <> new.terms BEGIN {DELETE} {INSERT} END",
    ],
    "postgresql": [
        # Its cost is that of reading and splitting a long text, which the planner does not see:
        # with string_to_array alone it would read all rows of up to a thousand recordings.
        "CREATE FUNCTION recording_search_split(terms text) RETURNS text[] LANGUAGE plpgsql "
        "IMMUTABLE STRICT PARALLEL SAFE COST 100000 "
        "AS $$ BEGIN RETURN string_to_array(terms, ' '); END $$",
        "CREATE INDEX recording_search_terms ON recording_searchterms "
        "USING gin (recording_search_split(terms))",
        # With statistics, a common word looks cheaper to find by reading every row.
        "ALTER INDEX recording_search_terms ALTER COLUMN 1 SET STATISTICS 0",
    ],
}
BACKWARDS = {
    "sqlite": [
        *(
            f"DROP TRIGGER recording_search_{on}"
            for on in ("insert", "delete", "update")
        ),
        "DROP TABLE recording_search",
    ],
    "postgresql": [
        "DROP INDEX recording_search_terms",
        "DROP FUNCTION recording_search_split",
    ],
}


def run(statements):
    def operation(apps, schema_editor):
        for statement in statements[schema_editor.connection.vendor]:
            schema_editor.execute(statement)

    return operation


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
            name="SearchTerms",
            fields=[
                (
                    "recording",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        serialize=False,
                        to="recording.recording",
                    ),
                ),
                ("terms", models.TextField(help_text="Separated by spaces.")),
            ],
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
        migrations.RunPython(run(FORWARDS), run(BACKWARDS)),
        compress_with_lz4("recording_recording", "document"),
        compress_with_lz4("recording_searchterms", "terms"),
    ]
