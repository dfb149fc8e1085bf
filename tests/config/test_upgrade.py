"""The web servers of the previous release run over the new schema (docs/guides/upgrade.md)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest
from django.apps import apps
from django.db import IntegrityError, connection, models
from django.db.migrations import Migration, operations
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState

# The newest migration of each app in the newest release.
RELEASED: dict[str, str] = {
    "catalog": "0001_catalog",
    "gateway": "0001_gateway",
    "gateway_chat": "0001_chat",
    "recording": "0001_recording",
    "recording_oauth": "0002_rotation",
    "webhooks_core": "0001_webhooks",
}
OURS = {"config", "catalog", "recording", "gateway", "webhooks_core"}
HARMLESS = (
    operations.CreateModel,
    operations.AddIndex,
    operations.RemoveIndex,
    operations.RemoveConstraint,
    operations.AlterModelOptions,
    operations.AlterModelManagers,
)


def is_compatible(operation: Operation) -> bool:
    """Return True if code that does not know of an operation reads and writes as before."""
    if isinstance(operation, operations.SeparateDatabaseAndState):
        return all(is_compatible(part) for part in operation.database_operations)
    if isinstance(operation, operations.AddField):
        field = operation.field
        # Django keeps no `default` in the database: an INSERT without the column would fail.
        return bool(field.null or field.has_db_default() or field.many_to_many)
    return isinstance(operation, HARMLESS)


def unreleased() -> Iterator[tuple[str, Operation]]:
    graph = MigrationLoader(None).graph
    for label, name in RELEASED.items():
        known = set(graph.forwards_plan((label, name)))
        (leaf,) = graph.leaf_nodes(label)
        for key in graph.forwards_plan(leaf):
            if key not in known and key[0] == label:
                migration: Migration = graph.nodes[key]
                yield from ((key[1], operation) for operation in migration.operations)


def test_no_migration_since_the_release_breaks_its_web_servers():
    broken = [
        (name, operation)
        for name, operation in unreleased()
        if not is_compatible(operation)
    ]
    assert broken == [], "split it: add now, remove in the release after the next"


def test_the_released_migrations_of_every_app_are_named():
    labels = {
        config.label
        for config in apps.get_app_configs()
        if config.name.partition(".")[0] in OURS and config.models_module
    }
    assert set(RELEASED) == labels


TEXT = models.TextField(default="")


@pytest.mark.parametrize(
    ("operation", "compatible"),
    [
        (operations.AddField("thing", "note", models.TextField(null=True)), True),
        (operations.AddField("thing", "note", models.TextField(db_default="")), True),
        (operations.AddField("thing", "note", TEXT), False),
        (operations.RemoveField("thing", "name"), False),
        (operations.RenameField("thing", "name", "title"), False),
        (operations.AlterField("thing", "name", models.IntegerField()), False),
        (operations.AddIndex("thing", models.Index(fields=["name"], name="by")), True),
        (operations.DeleteModel("thing"), False),
        (operations.RunSQL("DROP TABLE upgrade_thing"), False),
        (operations.SeparateDatabaseAndState([operations.DeleteModel("thing")]), False),
        (operations.SeparateDatabaseAndState([], []), True),
    ],
)
def test_operations_that_old_code_tolerates(operation, compatible):
    assert is_compatible(operation) is compatible


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("field", "compatible"),
    [(models.TextField(db_default=""), True), (TEXT, False)],
)
def test_old_code_inserts_beside_a_new_column_only_if_the_database_fills_it(
    field, compatible
):
    fields: list[tuple[str, Any]] = [
        ("id", models.AutoField(primary_key=True)),
        ("name", models.TextField()),
    ]
    before, after = ProjectState(), ProjectState()
    create = operations.CreateModel("thing", fields)
    add = operations.AddField("thing", "note", field)
    with connection.schema_editor() as editor:
        create.state_forwards("upgrade", after)
        create.database_forwards("upgrade", editor, before, after)
        old, before = after.clone(), after.clone()
        add.state_forwards("upgrade", after)
        add.database_forwards("upgrade", editor, before, after)
    assert is_compatible(add) is compatible
    thing = old.apps.get_model("upgrade", "thing")
    try:
        with nullcontext() if compatible else pytest.raises(IntegrityError):
            thing.objects.create(name="a")
    finally:
        with connection.schema_editor() as editor:
            editor.delete_model(thing)
