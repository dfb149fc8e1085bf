"""Answer a field with one query and one compiled loop per list level, not field by field.

What a field selects is compiled once per document (and per value of the variables of @skip and
@include). Each list level becomes one `values_list` and one generated function that builds
the answer's objects from its rows.

A field that no level knows is an ordinary field of graphene: its resolver, or the attribute of
its name, gets the model instance of its row (`fields.py`), and can return instances.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

from django.db import models
from graphene.utils.str_converters import to_camel_case
from graphql import (
    FieldNode,
    FragmentDefinitionNode,
    GraphQLField,
    GraphQLObjectType,
    GraphQLResolveInfo,
    GraphQLSchema,
)
from graphql.execution.collect_fields import collect_sub_fields

from catalog.execution.connections import Connections
from catalog.execution.levels import (
    Instances,
    Json,
    KeyedOwners,
    Level,
    OwnedBooks,
    compile_loop,
)
from catalog.models import MODELS, Owner, TypeName

Fields = dict[str, list[FieldNode]]
Fragments = dict[str, FragmentDefinitionNode]

BOOKS = {"books", "bookCount", "booksPage"}
# Of an owner that is not saved.
NO_BOOKS: Json = {"books": [], "book_count": 0, "books_page": None}
OWNER_OF_TYPE: dict[TypeName, Owner] = {"Author": "author", "Category": "category"}
# Memory of a plan, as characters of a document that take as much.
CHARACTERS_PER_LEVEL = 30
CHARACTERS_PER_FIELD = 3

INSTANCE = ""  # the key of the model instance in an object; no response name is empty

# Columns whose values are those of the answer.
PLAIN = (models.IntegerField, models.CharField, models.TextField, models.ForeignKey)
TYPE_OF_MODEL: dict[Any, TypeName] = {model: name for name, model in MODELS.items()}


@cache
def fields_of(type_name: TypeName) -> dict[str, models.Field[Any, Any]]:
    """Return the columns that levels read, foreign keys too, by the names of their GraphQL fields."""
    meta = MODELS[type_name]._meta  # noqa: SLF001 - documented by Django
    return {
        to_camel_case(field.name): field
        for field in meta.concrete_fields
        if isinstance(field, PLAIN)
    }


class Compiler:
    """Compiles the selections of one operation into levels.

    `prefix` leads from the columns of a level's row to those of a related object.
    """

    def __init__(
        self, schema: GraphQLSchema, fragments: Fragments, variables: Json
    ) -> None:
        self.schema, self.fragments, self.variables = schema, fragments, variables
        self.characters = 0  # of all levels
        self.uses_instances = False

    def object_type(self, name: str) -> GraphQLObjectType:
        object_type = self.schema.get_type(name)
        assert isinstance(object_type, GraphQLObjectType)  # noqa: S101 - names of the schema
        return object_type

    def fields(self, type_name: str, nodes: list[FieldNode]) -> Fields:
        """Return the fields below merged fields of this type, by response name."""
        parent = self.object_type(type_name)
        return collect_sub_fields(
            self.schema, self.fragments, self.variables, parent, nodes
        )

    def level(
        self, type_name: TypeName, nodes: list[FieldNode], *first: str, grouped: bool
    ) -> Level:
        """Compile one list of rows; the columns `first` come first, answered or not."""
        self.characters += CHARACTERS_PER_LEVEL
        level = Level(columns=[*first])
        source = self.object(type_name, nodes, level, "")
        if not level.columns:  # every object is the same, but each row needs one
            level.column("pk")
        level.build = compile_loop(level, source, grouped=grouped)
        return level

    def object(
        self, type_name: TypeName, nodes: list[FieldNode], level: Level, prefix: str
    ) -> str:
        """Return the source of the dict display of one object."""
        fields = self.fields(type_name, nodes)
        self.characters += CHARACTERS_PER_FIELD * len(fields)
        level.values += len(fields)
        # Counts last, so that books that are loaded anyway are counted there.
        order = sorted(fields, key=lambda key: fields[key][0].name.value == "bookCount")
        object_type = self.object_type(type_name)
        values = {
            key: self.value(type_name, fields[key], level, prefix)
            for key in order
            if is_planned(object_type, fields[key][0].name.value)
        }
        parts = [f"{key!r}: {values[key]}" for key in fields if key in values]
        if len(values) < len(fields):
            parts.append(f"{INSTANCE!r}: {self.instance(type_name, level, prefix)}")
        return "{" + ", ".join(parts) + "}"

    def instance(self, type_name: TypeName, level: Level, prefix: str) -> str:
        self.uses_instances = True
        key = level.column(f"{prefix}pk")
        level.below.append(Instances(type_name, key))
        return f"b{len(level.below) - 1}.get(c{key})"

    def value(
        self, type_name: TypeName, nodes: list[FieldNode], level: Level, prefix: str
    ) -> str:
        name = nodes[0].name.value
        if name == "__typename":
            return repr(type_name)
        field = fields_of(type_name).get(name)
        if field is None:
            return self.books(type_name, nodes, level, prefix)
        if isinstance(field, models.ForeignKey):
            return self.owner(field, nodes, level, prefix)
        index = level.column(prefix + ("pk" if field.primary_key else field.name))
        if field.primary_key:
            return f"str(c{index})"
        if isinstance(field, models.CharField | models.TextField):
            level.texts[index] += 1
        level.has_long_text |= isinstance(field, models.TextField)
        return f"c{index}"

    def owner(
        self,
        field: models.ForeignKey[Any, Any],
        nodes: list[FieldNode],
        level: Level,
        prefix: str,
    ) -> str:
        type_name = TYPE_OF_MODEL[field.related_model]
        joined = f"{prefix}{field.name}__"
        if not field.null:
            return self.object(type_name, nodes, level, joined)
        key, columns = level.column(prefix + field.attname), fields_of(type_name)
        names = [each[0].name.value for each in self.fields(type_name, nodes).values()]
        # An owner that answers a text longer than a name is loaded once, by its key.
        if any(isinstance(columns.get(name), models.TextField) for name in names):
            below = self.level(type_name, nodes, "pk", grouped=True)
            level.below.append(KeyedOwners(type_name, key, below))
            return f"(b{len(level.below) - 1}.get(c{key}) or [None])[0]"
        source = self.object(type_name, nodes, level, joined)
        return f"(None if c{key} is None else {source})"

    def books(
        self, type_name: TypeName, nodes: list[FieldNode], level: Level, prefix: str
    ) -> str:
        owner, name = OWNER_OF_TYPE[type_name], nodes[0].name.value
        key = level.column(f"{prefix.removesuffix('__')}_id" if prefix else "pk")
        if name == "bookCount":
            return self.count(owner, key, level)
        if name == "booksPage":
            definition = self.object_type(type_name).fields[name]
            pages = Connections("Book", definition, nodes, owner, key)
            level.below.append(pages.compile(self))
            return f"b{len(level.below) - 1}[c{key}]"
        books = self.level("Book", nodes, f"{owner}_id", grouped=True)
        level.below.append(OwnedBooks(owner, key, books))
        return f"(b{len(level.below) - 1}.get(c{key}) or [])"

    def count(self, owner: Owner, key: int, level: Level) -> str:
        for index, below in enumerate(level.below):
            if isinstance(below, OwnedBooks) and below.key == key and below.level:
                return f"len(b{index}.get(c{key}) or ())"
        level.below.append(OwnedBooks(owner, key, None))
        return f"b{len(level.below) - 1}.get(c{key}, 0)"


def is_unsaved(row: Any) -> bool:
    """Return True for a model instance without a row, unless its row was deleted."""
    if not isinstance(row, models.Model) or row.pk is not None:
        return False
    return row._state.adding  # noqa: SLF001 - documented by Django


def resolve_response_name(
    name: str, default: Any, row: Any, info: GraphQLResolveInfo, **_arguments: Any
) -> Any:
    """Return a field of a row that has no resolver of its own.

    The keys of an object that a level has built are the response names. Other rows are model
    instances.
    """
    if isinstance(row, dict):
        return row[str(info.path.key)]
    if name in NO_BOOKS and is_unsaved(row):
        return NO_BOOKS[name]
    return getattr(row, name, default)


def has_resolver(definition: GraphQLField) -> bool:
    """Return True if a field of a row has a resolver of its own."""
    return getattr(definition.resolve, "func", None) is not resolve_response_name


def is_planned(object_type: GraphQLObjectType, name: str) -> bool:
    """Return True for a column or a relation of a row that a level reads itself."""
    if name == "__typename":
        return True
    type_name: Any = object_type.name
    is_known = name in fields_of(type_name) or (
        name in BOOKS and type_name in OWNER_OF_TYPE
    )
    return is_known and not has_resolver(object_type.fields[name])


@dataclass(slots=True)
class Plan:
    """What the fields of one operation select, each compiled when it is first read."""

    schema: GraphQLSchema
    fragments: Fragments
    # By the response names that lead to a field.
    levels: dict[Any, Any] = field(default_factory=dict)
    characters: int = 0
