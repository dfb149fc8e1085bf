"""The tables, and a trigram index of the folded titles: GIN on PostgreSQL, FTS5 on SQLite.

A later migration that rebuilds catalog_book on SQLite (AlterField and the like) drops the
triggers with the old table: it must run FORWARDS["sqlite"] again.
"""

import catalog.fields
import django.db.models.deletion
from django.db import migrations, models

INSERT = "INSERT INTO catalog_book_search (rowid, name_folded) VALUES (new.id, new.name_folded);"
DELETE = (
    "INSERT INTO catalog_book_search (catalog_book_search, rowid, name_folded) "
    "VALUES ('delete', old.id, old.name_folded);"
)
FORWARDS = {
    "sqlite": [
        # The text arrives folded, so that the tokenizer's own idea of letter case stays out.
        "CREATE VIRTUAL TABLE IF NOT EXISTS catalog_book_search USING fts5("
        "name_folded, content='catalog_book', content_rowid='id', "
        "tokenize='trigram case_sensitive 1')",
        f"CREATE TRIGGER catalog_book_search_insert AFTER INSERT ON catalog_book BEGIN {INSERT} END",
        f"CREATE TRIGGER catalog_book_search_delete AFTER DELETE ON catalog_book BEGIN {DELETE} END",
        "CREATE TRIGGER catalog_book_search_update AFTER UPDATE OF name_folded ON catalog_book "
        f"WHEN old.name_folded <> new.name_folded BEGIN {DELETE} {INSERT} END",
        "INSERT INTO catalog_book_search (catalog_book_search) VALUES ('rebuild')",
    ],
    # The extension stays when this is undone: others may use it.
    "postgresql": [
        "CREATE EXTENSION IF NOT EXISTS pg_trgm",
        "CREATE INDEX book_by_trigram ON catalog_book USING gin (name_folded gin_trgm_ops)",
    ],
}
BACKWARDS = {
    "sqlite": [
        *(
            f"DROP TRIGGER catalog_book_search_{on}"
            for on in ("insert", "delete", "update")
        ),
        "DROP TABLE catalog_book_search",
    ],
    "postgresql": ["DROP INDEX book_by_trigram"],
}


def run(statements):
    def operation(apps, schema_editor):
        for statement in statements[schema_editor.connection.vendor]:
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
                (
                    "name_folded",
                    catalog.fields.FoldedTextField("first_name", "last_name"),
                ),
            ],
            options={
                "ordering": ["pk"],
                "indexes": [
                    models.Index(
                        catalog.fields.CodePoints("last_name"),
                        catalog.fields.CodePoints("first_name"),
                        models.F("id"),
                        name="author_by_name",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Category",
            fields=[
                ("id", models.AutoField(primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=255)),
                ("name_folded", catalog.fields.FoldedTextField("name")),
                (
                    "description",
                    models.TextField(blank=True, max_length=10000, null=True),
                ),
            ],
            options={
                "verbose_name_plural": "categories",
                "ordering": ["pk"],
                "indexes": [
                    models.Index(
                        catalog.fields.CodePoints("name"),
                        models.F("id"),
                        name="category_by_name",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Book",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=255)),
                ("name_folded", catalog.fields.FoldedTextField("name")),
                ("page_count", models.PositiveIntegerField()),
                (
                    "author",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="books",
                        to="catalog.author",
                    ),
                ),
                (
                    "category",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="books",
                        to="catalog.category",
                    ),
                ),
                (
                    "external_id",
                    models.CharField(blank=True, max_length=255, null=True),
                ),
            ],
            options={
                "ordering": ["pk"],
                "indexes": [
                    models.Index(
                        catalog.fields.CodePoints("name"),
                        models.F("id"),
                        name="book_by_name",
                    ),
                    models.Index(
                        catalog.fields.CodePoints("name_folded"),
                        models.F("id"),
                        name="book_by_folded_name",
                    ),
                    models.Index(fields=["author", "id"], name="book_by_author"),
                    models.Index(fields=["category", "id"], name="book_by_category"),
                    models.Index(
                        models.F("category"),
                        catalog.fields.CodePoints("name"),
                        models.F("id"),
                        name="book_of_category_by_name",
                    ),
                    models.Index(
                        fields=["category", "page_count", "id"],
                        name="book_of_category_by_pages",
                    ),
                    models.Index(
                        fields=["page_count", "id"], name="book_by_page_count"
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("external_id",), name="book_external_id"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("page_count__gte", 0), ("page_count__lt", 2147483648)
                        ),
                        name="book_page_count_is_a_graphql_int",
                    ),
                ],
            },
        ),
        migrations.RunPython(run(FORWARDS), run(BACKWARDS)),
    ]
