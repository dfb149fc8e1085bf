"""A trigram index of the folded titles: GIN on PostgreSQL, FTS5 on SQLite.

A later migration that rebuilds catalog_book on SQLite (AlterField and the like) drops the
triggers with the old table: it must run FORWARDS["sqlite"] again.
"""

from django.db import migrations

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
    dependencies = [("catalog", "0001_catalogue")]

    operations = [
        migrations.RunPython(run(FORWARDS), run(BACKWARDS)),
    ]
