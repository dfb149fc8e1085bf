"""YAML that knows where every value stands, so that a fault can name file, line and key."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import yaml

from gateway.identity import is_name

T = TypeVar("T")

UNBRACED = re.compile(r"\$[A-Za-z_][A-Za-z0-9_]*")
REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


@dataclass(slots=True)
class Faults:
    """What is wrong with one file, gathered so that one look shows everything."""

    file: str
    lines: list[tuple[int, str]] = field(default_factory=list)

    def add(self, line: int, key: str, message: str) -> None:
        parts = [self.file, *([str(line)] if line else [])]
        told = ": ".join([":".join(parts), *([key] if key else []), message])
        self.lines.append((line, told))

    def __bool__(self) -> bool:
        return bool(self.lines)

    def __str__(self) -> str:
        return "\n".join(text for _, text in sorted(self.lines))


@dataclass(frozen=True, slots=True)
class Value:
    """A value of the file. The readers return None for what they have told a fault about."""

    node: yaml.Node
    key: str
    faults: Faults

    def fault(self, message: str) -> None:
        self.faults.add(self.node.start_mark.line + 1, self.key, message)

    @property
    def is_null(self) -> bool:
        return self._tag() == "null"

    def text(self, *, maximum: int = 2048) -> str | None:
        """Return a string; numbers and the like need quotes to be one."""
        if self._tag() != "str":
            self.fault("must be a string")
            return None
        if not self.node.value or len(self.node.value) > maximum:
            self.fault(f"must have 1 to {maximum} characters")
            return None
        return str(self.node.value)

    def boolean(self) -> bool | None:
        found = self._scalar() if self._tag() == "bool" else None
        if not isinstance(found, bool):
            self.fault("must be true or false")
            return None
        return found

    def integer(self, *, minimum: int, maximum: int) -> int | None:
        if self._tag() != "int" or not minimum <= self._scalar() <= maximum:
            self.fault(f"must be an integer from {minimum} to {maximum}")
            return None
        return int(self._scalar())

    def seconds(self, *, minimum: float, maximum: float) -> float | None:
        if self._tag() in {"int", "float"} and minimum <= self._scalar() <= maximum:
            return float(self._scalar())
        self.fault(f"must be a number from {minimum:g} to {maximum:g}")
        return None

    def items(self) -> list[Value]:
        """Return the values of a sequence; none when it is not one."""
        if not isinstance(self.node, yaml.SequenceNode):
            self.fault("must be a list")
            return []
        return [
            Value(item, f"{self.key}[{number}]", self.faults)
            for number, item in enumerate(self.node.value)
        ]

    def mapping(self, known: Sequence[str]) -> Mapping[str, Value]:
        """Return the values of a mapping by key; unknown and repeated keys are faults."""
        if not isinstance(self.node, yaml.MappingNode):
            self.fault("must be a mapping")
            return {}
        found: dict[str, Value] = {}
        for key_node, node in self.node.value:
            is_text = isinstance(key_node, yaml.ScalarNode)
            name = str(key_node.value)[:80] if is_text else "?"
            key = Value(key_node, f"{self.key}.{name}".lstrip("."), self.faults)
            if name not in known:
                key.fault(f"unknown key; known are {', '.join(known)}")
            elif name in found:
                key.fault("given twice")
            else:
                found[name] = Value(node, key.key, self.faults)
        return found

    def secret(self, environ: Mapping[str, str]) -> str | None:
        """Return a string, or what the variable holds that `${NAME}` refers to."""
        text = self.text()
        if text is not None and UNBRACED.fullmatch(text):
            self.fault(f"must be written ${{{text[1:]}}} to name a variable")
            return None
        if text is None or "${" not in text:
            return text
        match = REFERENCE.fullmatch(text)
        if match is None:
            self.fault("is neither a text nor a whole ${NAME}")
            return None
        if not environ.get(match[1]):
            self.fault(f"the environment variable {match[1]} is not set")
            return None
        return environ[match[1]]

    def _tag(self) -> str:
        """Return a scalar's type; of anything else, and of a type not YAML's own, nothing."""
        of_yaml, mark, name = str(self.node.tag).rpartition("tag:yaml.org,2002:")
        is_scalar = isinstance(self.node, yaml.ScalarNode)
        return name if is_scalar and mark and not of_yaml else ""

    def _scalar(self) -> Any:
        """Return what a scalar stands for; NaN when it is not of the type that it claims."""
        loader = yaml.SafeLoader("")
        try:
            return loader.construct_object(self.node)
        except (ValueError, LookupError):
            return math.nan


def parse(path: Path, faults: Faults) -> Value | None:
    """Return the document of a file; None, with a fault, when there is none."""
    try:
        text = path.read_text(encoding="utf-8")
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except OSError as error:
        faults.add(0, "", f"cannot be read: {error.strerror}")
        return None
    except UnicodeDecodeError:
        faults.add(0, "", "is not UTF-8")
        return None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        faults.add(line, "", f"is not YAML: {error.problem}")
        return None
    except (yaml.YAMLError, RecursionError):
        faults.add(0, "", "is not YAML")
        return None
    return None if node is None else Value(node, "", faults)


def present(
    values: Mapping[str, Value],
    name: str,
    read: Callable[[Value], T | None],
    default: T,
) -> T:
    """Return what `read` makes of a key, or the default when the key is absent or faulty."""
    value = values.get(name)
    if value is None:
        return default
    found = read(value)
    return default if found is None else found


def has(value: Value, keys: Mapping[str, Value], names: Sequence[str]) -> bool:
    missing = [name for name in names if name not in keys]
    if missing:
        value.fault(f"needs {', '.join(missing)}")
    return not missing


def identity_name(value: Value) -> str | None:
    text = value.text()
    if text is not None and not is_name(text):
        value.fault("must have 1 to 128 of the characters A-Z a-z 0-9 . _ : @ -")
        return None
    return text
