"""The file as YAML, and the place of everything that is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from django.core.exceptions import ImproperlyConfigured
from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from gateway.configuration.shapes import BudgetEntry, Configuration, ModelEntry

PLAIN = ("null", "bool", "int", "float", "str", "seq", "map")
TAGS = {f"tag:yaml.org,2002:{name}" for name in PLAIN}
# In place of pydantic's, which speaks of Python.
TEXTS = {"unexpected_keyword_argument": "unknown key"}
Place = tuple[int | str, ...]


class ConfigurationError(ImproperlyConfigured):
    """The file is not usable; the message names file, line and key of every fault."""


class EntryError(ValueError):
    """An entry of the admin is not valid; the message names the key of every fault."""


class _Loader(yaml.SafeLoader):
    """Takes dates for texts, and no key twice and no `*name`: nine lines of those are a billion values."""

    yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag in TAGS]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()  # type: ignore[no-untyped-call] # of the library
            text = f"*{event.anchor} is not what JSON has"
            raise yaml.MarkedYAMLError(None, None, text, event.start_mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> Any:
        names = [str(key.value) for key, _ in node.value]
        for number, name in enumerate(names):
            if name in names[:number]:
                mark = node.value[number][0].start_mark
                text = f"{name[:50]} is given twice"
                raise yaml.MarkedYAMLError(None, None, text, mark)
        return super().construct_mapping(node, deep=deep)


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def load(path: Path) -> Configuration:
    """Read a file. Raises ConfigurationError."""
    try:
        root, content = _parsed(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path}: is not UTF-8") from error
    except yaml.YAMLError as error:
        raise ConfigurationError(f"{path}{_reason(error)}") from error
    try:
        values = {} if content is None else content
        read: Configuration = _adapter(Configuration).validate_python(values)
    except ValidationError as errors:
        faults = sorted((_line(root, e["loc"]), _text(e)) for e in errors.errors())
        lines = (f"{path}:{line}: {text}" for line, text in faults)
        raise ConfigurationError("\n".join(lines)) from None
    return read


def model(name: str, text: str, key: str = "") -> ModelEntry:
    """Return a model of the admin: the YAML of an entry, without its name. Raises EntryError.

    `key` is the API key of each target that has none.
    """
    values = {"name": name, **_mapping(text)}
    holders = values.get("targets") if "targets" in values else [values]
    for holder in holders if key and isinstance(holders, list) else ():
        if isinstance(holder, dict):
            holder.setdefault("api_key", key)
    entry: ModelEntry = _checked(ModelEntry, values)
    return entry


def budget(name: str, text: str) -> BudgetEntry:
    """Return a budget of the admin: the YAML of an entry, without its name. Raises EntryError."""
    return checked_budget({"name": name, **_mapping(text)})


def checked_budget(values: Mapping[str, Any]) -> BudgetEntry:
    """Return the budget that these values make. Raises EntryError."""
    entry: BudgetEntry = _checked(BudgetEntry, dict(values))
    return entry


def _mapping(text: str) -> dict[str, Any]:
    try:
        _, content = _parsed(text)
    except yaml.YAMLError as error:
        raise EntryError(f"is not YAML{_reason(error)}") from error
    if not isinstance(content, dict) or "name" in content:
        raise EntryError("must be the keys of an entry, without its name")
    return content


def _checked(kind: Any, values: Any) -> Any:
    try:
        return _adapter(kind).validate_python(values)
    except ValidationError as errors:
        raise EntryError("; ".join(map(_text, errors.errors()))) from None


def _parsed(text: str) -> tuple[yaml.Node | None, Any]:
    """Return YAML as nodes and as values. Raises YAMLError."""
    loader = _Loader(text)
    try:
        root = loader.get_single_node()
        return root, loader.construct_document(root) if root else None
    except (
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        raise yaml.YAMLError(str(error)) from error


def _reason(error: yaml.YAMLError) -> str:
    mark, text = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    line = f":{mark.line + 1}" if mark else ""
    return f"{line}: is not YAML: {text or error}"


def _text(fault: ErrorDetails) -> str:
    """Return the key and the text of a fault."""
    # Between the steps of the file pydantic names its validators.
    place = (step for step in fault["loc"] if "[" not in str(step))
    steps = (f"[{s}]" if isinstance(s, int) else f".{s}" for s in place)
    text = TEXTS.get(fault["type"], fault["msg"].removeprefix("Value error, "))
    text = re.sub(r"^\w+ should", "must", text)
    return ": ".join(filter(None, ("".join(steps).removeprefix("."), text)))


def _line(root: Any, place: Place) -> int:
    """Return the line of an item, or of the key of a value; for what is absent, of what needs it."""
    node = key = root
    for step in place:
        if isinstance(node, yaml.SequenceNode) and isinstance(step, int):
            key = node = node.value[step]
        elif isinstance(node, yaml.MappingNode):
            names = {str(name.value): (name, value) for name, value in node.value}
            key, node = names.get(str(step), (key, node))
    return int(key.start_mark.line) + 1 if key else 1
