"""How PostgreSQL compresses large values."""

from __future__ import annotations

from django.apps.registry import Apps
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations import RunPython

_HAS_LZ4 = (
    "SELECT 'lz4' = ANY(enumvals) FROM pg_settings"
    " WHERE name = 'default_toast_compression'"
)


def compress_with_lz4(table: str, column: str) -> RunPython:
    """Return a migration operation: new values of a column are compressed with LZ4.

    PostgreSQL's default, pglz, takes several times longer for a large document. A server built
    without LZ4 keeps it. Values that exist are read as before.
    """

    def operation(_apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
        if schema_editor.connection.vendor != "postgresql":
            return
        with schema_editor.connection.cursor() as cursor:
            cursor.execute(_HAS_LZ4)
            [has_lz4] = cursor.fetchone()
        if has_lz4:
            schema_editor.execute(
                f"ALTER TABLE {table} ALTER COLUMN {column} SET COMPRESSION lz4"
            )

    return RunPython(operation, RunPython.noop)
