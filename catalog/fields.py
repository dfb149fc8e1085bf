"""Columns and orderings that behave in the same way on SQLite and PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.sql.compiler import SQLCompiler

from catalog.text_checks import folded

if TYPE_CHECKING:
    FoldedBase = models.TextField[str, str]
else:
    FoldedBase = models.TextField


class FoldedTextField(FoldedBase):
    """Other fields of the row, joined by a space, case-folded; every insert and save writes it.

    The databases disagree about letter case (SQLite folds ASCII alone, PostgreSQL follows its
    locale), so Python folds. `QuerySet.update()` must set this column beside its sources.
    """

    def __init__(self, *sources: str, **options: Any) -> None:
        self.sources = sources
        super().__init__(**{**options, "editable": False})

    def deconstruct(self) -> Any:
        name, path, _, options = super().deconstruct()
        del options["editable"]
        return name, path, self.sources, options

    def pre_save(self, model_instance: models.Model, add: bool) -> str:
        texts = (getattr(model_instance, source) for source in self.sources)
        value = folded(" ".join(texts))
        setattr(model_instance, self.attname, value)
        return value


@FoldedTextField.register_lookup
class Like(models.Lookup[str]):
    """The operator LIKE; the caller has escaped the pattern."""

    lookup_name = "like"

    def as_sql(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper
    ) -> tuple[str, tuple[str | int, ...]]:
        left, parameters = self.process_lhs(compiler, connection)
        right, more = self.process_rhs(compiler, connection)
        return f"{left} LIKE {right}", (*parameters, *more)


class CodePoints(models.Func):
    """A text column in the order of its code points, for any locale of the database."""

    template = "(%(expressions)s) COLLATE BINARY"
    output_field = models.TextField()

    def as_postgresql(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **extra: Any
    ) -> Any:
        return self.as_sql(
            compiler, connection, template='(%(expressions)s) COLLATE "C"', **extra
        )
