"""The tables, and on PostgreSQL an index of trigrams of the folded titles."""

import catalog.models
import django.db.models.deletion
from django.db import migrations, models

# The extension stays when this is undone: others may use it.
FORWARDS = [
    "CREATE EXTENSION IF NOT EXISTS pg_trgm",
    "CREATE INDEX book_by_trigram ON catalog_book USING gin (name_folded gin_trgm_ops)",
]
BACKWARDS = ["DROP INDEX book_by_trigram"]


def on_postgresql(statements):
    def operation(apps, schema_editor):
        if schema_editor.connection.vendor == "postgresql":
            for statement in statements:
                schema_editor.execute(statement)

    return operation


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Author",
            fields=[
                ("id", models.AutoField(primary_key=True, serialize=False)),
                ("first_name", models.CharField(max_length=255)),
                ("last_name", models.CharField(max_length=255)),
            ],
            options={"ordering": ["pk"]},
        ),
        migrations.CreateModel(
            name="Category",
            fields=[
                ("id", models.AutoField(primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=255)),
                (
                    "description",
                    models.TextField(blank=True, max_length=10000, null=True),
                ),
            ],
            options={"verbose_name_plural": "categories", "ordering": ["pk"]},
        ),
        migrations.CreateModel(
            name="Book",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=255)),
                ("name_folded", catalog.models.FoldedTextField("name")),
                ("page_count", models.PositiveIntegerField()),
                (
                    "author",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="books",
                        to="catalog.author",
                    ),
                ),
                (
                    "category",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="books",
                        to="catalog.category",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
                "indexes": [
                    models.Index(fields=["name_folded"], name="book_by_folded_name")
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("page_count__gte", 0), ("page_count__lt", 2147483648)
                        ),
                        name="book_page_count_is_a_graphql_int",
                    ),
                ],
            },
        ),
        migrations.RunPython(on_postgresql(FORWARDS), on_postgresql(BACKWARDS)),
    ]
