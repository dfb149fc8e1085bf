"""Values of a configuration of LiteLLM, with their places, and notes about them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from webhooks_core.web.faults import Place, path_of

NO_COUNTERPART = "has no counterpart"
# How LiteLLM names a variable of the environment.
VARIABLE = re.compile(r"os\.environ/([A-Za-z_][A-Za-z0-9_]*)")
MAX_VALUES, MAX_DEPTH = 100_000, 50


class ImportRefusedError(ValueError):
    """The file is no configuration of LiteLLM; the message has the place."""


@dataclass(slots=True)
class Notes:
    """What the reader of the result must know, in the order of the file."""

    texts: list[str] = field(default_factory=list)
    variables: dict[str, None] = field(default_factory=dict)
    reserved: frozenset[str] = frozenset()  # variables that have values already
    _secrets: dict[str, str] = field(default_factory=dict, repr=False)

    def add(self, place: Place, text: str = NO_COUNTERPART) -> None:
        note = f"{path_of(place)}: {text}"
        if note not in self.texts:
            self.texts.append(note)

    def variable(self, name: str) -> str:
        """Return a reference to a variable of the environment, which the result needs."""
        self.variables[name] = None
        return f"${{{name}}}"

    def secret(self, text: str, name: str, place: Place) -> str:
        """Return a reference in place of a secret that stands in the file itself."""
        if text not in self._secrets:
            base = re.sub(r"[^A-Z0-9]+", "_", name.upper()).strip("_")
            base = f"_{base}" if base[:1].isdigit() else base
            variable, number = base, 2
            while variable in self.reserved or variable in self.variables:
                variable, number = f"{base}_{number}", number + 1
            self._secrets[text] = variable
        variable = self._secrets[text]
        self.add(place, f"put what stands there into the variable {variable}")
        return self.variable(variable)


@dataclass(frozen=True, slots=True)
class Section:
    """A mapping of the file. What nothing takes from it has no counterpart."""

    values: dict[str, Any]
    place: Place
    notes: Notes

    @classmethod
    def of(cls, value: Any, place: Place, notes: Notes) -> Section:
        """Return a mapping, or an empty one for nothing. Raises ImportRefusedError."""
        if value is None:
            value = {}
        if not isinstance(value, Mapping):
            raise ImportRefusedError(f"{path_of(place)}: must be a mapping")
        return cls({str(key): each for key, each in value.items()}, place, notes)

    def take(self, *names: str) -> Any:
        """Return the first value of these names that is there, and forget all of them."""
        values = [self.values.pop(name, None) for name in names]
        return next((value for value in values if value is not None), None)

    def section(self, name: str) -> Section:
        return Section.of(self.take(name), (*self.place, name), self.notes)

    def sections(self, name: str) -> Iterator[Section]:
        """Yield the mappings of a list. Raises ImportRefusedError."""
        for number, value in enumerate(self.items(name)):
            yield Section.of(value, (*self.place, name, number), self.notes)

    def items(self, name: str) -> list[Any]:
        """Return a list, or an empty one for nothing. Raises ImportRefusedError."""
        value = self.take(name)
        if not isinstance(value, list | None):
            raise ImportRefusedError(f"{path_of((*self.place, name))}: must be a list")
        return value or []

    def text(self, name: str) -> str:
        """Return a text, with `${NAME}` in place of LiteLLM's form. Raises ImportRefusedError."""
        value = self.take(name)
        if value is None:
            return ""
        if isinstance(value, date):  # YAML's reading of a version such as 2024-10-21
            value = value.isoformat()
        if not isinstance(value, str):
            raise ImportRefusedError(f"{path_of((*self.place, name))}: must be a text")
        match = VARIABLE.fullmatch(value.strip())
        return self.notes.variable(match[1]) if match else value.strip()

    def number(self, *names: str) -> float | None:
        """Return a positive number; one that is none is noted."""
        value = self.take(*names)
        if value is None:
            return None
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if is_number and 0 < value < 10**9:
            return float(value)
        self.note(names[0], "is not used: it is no positive number")
        return None

    def flag(self, name: str) -> bool:
        value = self.take(name)
        if isinstance(value, bool | None):
            return bool(value)
        raise ImportRefusedError(
            f"{path_of((*self.place, name))}: must be true or false"
        )

    def note(self, name: str, text: str = NO_COUNTERPART) -> None:
        self.notes.add((*self.place, name), text)

    def note_rest(self, texts: Mapping[str, str]) -> None:
        """Note what nothing has taken; `texts` say what comes in place of some of it."""
        for name in self.values:
            self.note(name, texts.get(name, NO_COUNTERPART))


def check_size(content: Any) -> None:
    """Raise ImportRefusedError for more than a configuration has, as of nested anchors."""
    for number, (_, depth) in enumerate(_values(content)):
        if number >= MAX_VALUES:
            raise ImportRefusedError(f"has more than {MAX_VALUES} values")
        if depth > MAX_DEPTH:
            raise ImportRefusedError(f"is nested deeper than {MAX_DEPTH} levels")


def variables_in(content: Any) -> frozenset[str]:
    """Return the variables of the environment that a file names."""
    texts = (value for value, _ in _values(content) if isinstance(value, str))
    return frozenset(name for text in texts for name in VARIABLE.findall(text))


def _values(content: Any) -> Iterator[tuple[Any, int]]:
    """Yield every value, with its depth."""
    waiting = [(content, 0)]
    while waiting:
        value, depth = waiting.pop()
        yield value, depth
        if isinstance(value, Mapping):
            waiting.extend((each, depth + 1) for each in value.values())
        elif isinstance(value, list):
            waiting.extend((each, depth + 1) for each in value)
