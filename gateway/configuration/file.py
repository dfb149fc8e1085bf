"""The file as YAML, and the place of everything that is wrong with it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from django.core.exceptions import ImproperlyConfigured
from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from gateway.configuration.shapes import (
    OPTIONS,
    BudgetEntry,
    CheckedBudget,
    Configuration,
    Declared,
)
from webhooks_core.web.faults import Place, path_of, place_and_text

# Where pydantic speaks of Python's types.
TEXTS = {
    "bool_type": "must be true or false",
    "dataclass_type": "must be a mapping",
    "frozen_set_type": "must be a list",
    "tuple_type": "must be a list",
}
BOOLEAN, TEXT = "tag:yaml.org,2002:bool", "tag:yaml.org,2002:str"
UNKNOWN = {"unexpected_keyword_argument", "invalid_key"}


class ConfigurationError(ImproperlyConfigured):
    """The file is not usable; the message names file, line and key of every fault."""


class EntryError(ValueError):
    """An entry of the admin is not valid; `faults` are pairs of a key, or "", and a text."""

    def __init__(self, faults: Sequence[tuple[str, str]]) -> None:
        super().__init__("; ".join(": ".join(filter(None, fault)) for fault in faults))
        self.faults = faults


class _Loader(yaml.SafeLoader):
    """Refuses a repeated key, and a scalar that does not fit its tag."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep=deep)
        except (ValueError, LookupError, AttributeError) as error:
            problem = f"a value does not fit its type {node.tag}"
            raise yaml.MarkedYAMLError(None, None, problem, node.start_mark) from error

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> Any:
        for key, _ in node.value:
            if key.tag == BOOLEAN:  # YAML 1.1 reads `on` so
                key.tag = TEXT
        names = [str(key.value) for key, _ in node.value]
        for number, name in enumerate(names):
            if name in names[:number]:
                mark = node.value[number][0].start_mark
                raise yaml.MarkedYAMLError(None, None, f"{name} is given twice", mark)
        return super().construct_mapping(node, deep=deep)


@cache
def _adapter(kind: Any = Configuration) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


@cache
def schema() -> dict[str, Any]:
    """Return the JSON Schema of the file."""
    return _adapter().json_schema()


def _place_and_text(fault: ErrorDetails) -> tuple[Place, str]:
    return place_and_text(fault, TEXTS, missing="needs {}")


def _entry(kind: Any, values: Any, environ: Mapping[str, str] | None = None) -> Any:
    """Return an entry of the admin, checked as one of the file. Raises EntryError."""
    try:
        return _adapter(kind).validate_python(values, context={"environ": environ})
    except ValidationError as errors:
        faults = map(_place_and_text, errors.errors())
        raise EntryError(
            [(str(place[0]) if place else "", text) for place, text in faults]
        ) from None


def load(path: Path, *, environ: Mapping[str, str] | None = None) -> Configuration:
    """Read a file; `environ` is what `${NAME}` refers to. Raises ConfigurationError."""
    root, content = parsed(path)
    if content is None:
        return Configuration()
    # Outside the settings, only this reads the environment: the operator chooses the names.
    context = {"environ": os.environ if environ is None else environ}
    try:
        configuration: Configuration = _adapter().validate_python(
            content, context=context
        )
    except ValidationError as errors:
        faults = sorted(_fault(root, fault) for fault in errors.errors())
        lines = (": ".join(filter(None, (f"{path}:{n}", *rest))) for n, *rest in faults)
        raise ConfigurationError("\n".join(lines)) from None
    return configuration


def budget(values: Mapping[str, Any]) -> BudgetEntry:
    """Return a budget of the admin, checked as one of the file. Raises EntryError."""
    entry: BudgetEntry = _entry(CheckedBudget, dict(values))
    return entry


def model_options(name: str, upstream: str, text: str) -> dict[str, Any]:
    """Return the keys that an endpoint of the admin has as YAML, checked as those of the file.

    Raises EntryError.
    """
    try:
        options = yaml.load(text, _Loader) or {}  # noqa: S506 - a safe loader
    except (yaml.YAMLError, RecursionError) as error:
        raise EntryError([("", "is not YAML")]) from error
    if not isinstance(options, dict) or not options.keys() <= set(OPTIONS):
        raise EntryError([("", f"must have only keys of {', '.join(OPTIONS)}")])
    fixed = {"name": name, "upstream": upstream, "base_url": "http://localhost"}
    entry = _entry(Declared, options | fixed, os.environ)
    return {key: getattr(entry, key) for key in options}


def parsed(path: Path) -> tuple[yaml.Node | None, Any]:
    """Return a YAML file as nodes and as values. Raises ConfigurationError."""
    try:
        loader = _Loader(path.read_text(encoding="utf-8"))
        root = loader.get_single_node()
        return root, loader.construct_document(root) if root else None
    except OSError as error:
        reason = f": cannot be read: {error.strerror}"
    except UnicodeDecodeError:
        reason = ": is not UTF-8"
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        reason = f"{line}: is not YAML: {error.problem}"
    except (yaml.YAMLError, RecursionError):
        reason = ": is not YAML"
    raise ConfigurationError(f"{path}{reason}")


def _fault(root: Any, fault: ErrorDetails) -> tuple[int, str, str]:
    """Return the line, the key and the text of a fault."""
    place, text = _place_and_text(fault)
    if fault["type"] in UNKNOWN:
        text = f"unknown key; known are {', '.join(_known_keys(place[:-1]))}"
    return _line(root, place), path_of(place), text


def _line(node: Any, place: Place) -> int:
    """Return the line of an item, or of the key of a value."""
    key = node
    for step in place:
        if isinstance(node, yaml.SequenceNode):
            key = node = node.value[int(step)]
        else:
            names = {str(name.value): (name, value) for name, value in node.value}
            key, node = names.get(str(step), (node, node))  # a key may be no text
    return int(key.start_mark.line) + 1


def _known_keys(place: Place) -> Mapping[str, Any]:
    part = _resolved(schema())
    for step in place:
        part = _resolved(
            part["items"] if isinstance(step, int) else part["properties"][step]
        )
    return dict(part["properties"])


def _resolved(part: dict[str, Any]) -> dict[str, Any]:
    """Return the mapping or the list that a part of the schema is."""
    part = part.get("anyOf", [part])[-1]
    name = part.get("$ref", "").rpartition("/")[2]
    return dict(schema()["$defs"][name] if name else part)
