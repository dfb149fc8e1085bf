"""YAML as plain data with its lines, so that a fault can name file, line and key."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from django.core.exceptions import ImproperlyConfigured
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail, ValidationError
from rest_framework.settings import api_settings

# The code of an error whose place is the key, not its value.
AT_KEY = "key"
NULL = "tag:yaml.org,2002:null"
SCALARS = {f"tag:yaml.org,2002:{name}" for name in ("str", "bool", "int", "float")}

Place = tuple[str | int, ...]


class ConfigurationError(ImproperlyConfigured):
    """The file is not usable; the message names file, line and key of every fault."""


class Document:
    """A file and its faults, collected so that one error shows all of them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._faults: list[tuple[int, str]] = []
        self._known: dict[int, Any] = {}

    def read(self, serializer: serializers.Serializer[Any], default: Any) -> Any:
        """Return the content as a serializer reads it; the default if there is none.

        Raises ConfigurationError.
        """
        root, values = self._compose(), default
        is_null = isinstance(root, yaml.ScalarNode) and root.tag == NULL
        try:
            if root is not None and not is_null:
                values = serializer.run_validation(self._plain(root, ()))
        except ValidationError as errors:
            for place, error in _leaves(errors.detail):
                self._add(_line(root, place, error.code), error, place)
        if self._faults:
            raise ConfigurationError(
                "\n".join(text for _, text in sorted(self._faults))
            )
        return values

    def _compose(self) -> yaml.Node | None:
        try:
            text = self._path.read_text(encoding="utf-8")
            return yaml.compose(text, Loader=yaml.SafeLoader)
        except OSError as error:
            self._add(0, f"cannot be read: {error.strerror}")
        except UnicodeDecodeError:
            self._add(0, "is not UTF-8")
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else 0
            self._add(line, f"is not YAML: {error.problem}")
        except (yaml.YAMLError, RecursionError):
            self._add(0, "is not YAML")
        return None

    def _plain(self, node: yaml.Node, place: Place) -> Any:
        """Return a node as plain data."""
        if id(node) in self._known:  # an alias, perhaps within its own anchor
            return self._known[id(node)]
        if isinstance(node, yaml.SequenceNode):
            items = self._known[id(node)] = []
            for number, item in enumerate(node.value):
                items.append(self._plain(item, (*place, number)))
            return items
        if isinstance(node, yaml.MappingNode):
            mapping = self._known[id(node)] = {}
            for key, value in node.value:
                name = _name(key)
                if name in mapping:
                    self._add(_line(key), "given twice", (*place, name))
                else:
                    mapping[name] = self._plain(value, (*place, name))
            return mapping
        return _scalar(node)

    def _add(self, line: int, message: str, place: Place = ()) -> None:
        file = f"{self._path}:{line}" if line else str(self._path)
        key = "".join(
            f"[{step}]" if isinstance(step, int) else f".{step}" for step in place
        )
        parts = filter(None, (file, key.lstrip("."), message))
        self._faults.append((line, ": ".join(parts)))


def _name(key: yaml.Node) -> str:
    return str(key.value)[:80] if isinstance(key, yaml.ScalarNode) else "?"


def _scalar(node: yaml.Node) -> Any:
    """Return the value of a scalar of a plain type, otherwise the node: no field accepts it."""
    try:
        is_plain = node.tag in SCALARS
        return yaml.SafeLoader("").construct_object(node) if is_plain else node
    except (ValueError, LookupError):
        return node


def _line(node: Any, place: Place = (), code: str | None = None) -> int:
    key = node
    for step in place:
        if isinstance(node, yaml.SequenceNode):
            key = node = node.value[step]
        else:
            key, node = next(pair for pair in node.value if _name(pair[0]) == step)
    return int((key if code == AT_KEY else node).start_mark.line) + 1


def _leaves(errors: Any, place: Place = ()) -> Iterator[tuple[Place, ErrorDetail]]:
    """Yield the messages of a serializer's errors with their places."""
    if isinstance(errors, dict):
        for name, inner in errors.items():
            is_own = name == api_settings.NON_FIELD_ERRORS_KEY
            yield from _leaves(inner, place if is_own else (*place, name))
    else:
        yield from ((place, error) for error in errors)
