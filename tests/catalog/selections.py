"""Random, valid operations: aliases, fragments, variables, directives, duplicates, any order."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from hypothesis import strategies as st

SCALARS = {
    "Book": ["id", "name", "pageCount"],
    "Author": ["id", "firstName", "lastName", "bookCount"],
    "Category": ["id", "name", "description"],
}
OBJECTS = {
    "Book": {"author": "Author", "category": "Category"},
    "Author": {"books": "Book"},
    "Category": {"books": "Book"},
}
ROOTS: dict[str, tuple[str, tuple[str, str] | None]] = {
    "getAllBooks": ("Book", None),
    "getAllAuthors": ("Author", None),
    "getAllCategories": ("Category", None),
    "getBookById": ("Book", ("id", "ID!")),
    "getCategoryById": ("Category", ("id", "ID!")),
    "getAuthorById": ("Author", ("id", "Int")),
    "getBookByName": ("Book", ("name", "String")),
    "searchBooks": ("Book", ("title", "String!")),
}
VALUES: dict[str, list[object]] = {
    "ID!": ["1", "2", "3", "999", "x"],
    "Int": [1, 2, None, 999],
    "String": ["alpha", "ALPHA", None, "nobody"],
    "String!": ["", "a", "AL", "alph", "%", "zzz"],
}


@dataclass
class Operation:
    """A document in the making."""

    draw: st.DrawFn
    variables: dict[str, tuple[str, object]] = field(default_factory=dict)
    fragments: list[str] = field(default_factory=list)

    def pick(self, *options: object):
        return self.draw(st.sampled_from(options))

    def variable(self, kind, value):
        name = f"v{len(self.variables)}"
        self.variables[name] = (kind, value)
        return f"${name}"

    def condition(self):
        if self.pick(0, 0, 0, 0, 1):
            value = self.pick(True, False)
            given = self.pick(json.dumps(value), None)
            given = given or self.variable("Boolean!", value)
            return f" @{self.pick('skip', 'include')}(if: {given})"
        return ""

    def selections(self, kind, depth):
        """Return a selection set; its first field is always there, so that it is never empty."""
        size = self.draw(st.integers(1, 4))
        parts = [self.selection(kind, depth) for _ in range(size)]
        return "{ " + " ".join(parts) + " }"

    def selection(self, kind, depth):
        match self.pick(
            "field", "field", "field", "object", "inline", "fragment", "twice"
        ):
            case "object" if depth:
                name = self.pick(*OBJECTS[kind])
                below = self.selections(OBJECTS[kind][name], depth - 1)
                return f"{self.alias(name)}{self.condition()} {below}"
            case "inline" if depth:
                on = self.pick(f"on {kind}", "")
                return f"... {on}{self.condition()} {self.selections(kind, depth - 1)}"
            case "fragment" if depth and len(self.fragments) < 5:
                name = f"F{len(self.fragments)}"
                self.fragments.append("")
                text = f"fragment {name} on {kind} {self.selections(kind, depth - 1)}"
                self.fragments[int(name[1:])] = text
                return (
                    self.pick(f"...{name}", f"...{name} ...{name}") + self.condition()
                )
            case "twice":
                name = self.pick(*SCALARS[kind])
                return f"{name} {name}"
            case _:
                name = self.pick(*SCALARS[kind], "__typename")
                return f"{self.alias(name)}{self.condition()}"

    def alias(self, name):
        """Alias a field now and then; one alias never names two different fields."""
        return (
            f"{self.pick('a', 'b', 'c')}_{name}: {name}" if self.pick(0, 0, 1) else name
        )

    def root(self):
        name = self.pick(*ROOTS, "__typename")
        if name == "__typename":
            return f"{self.alias(name)}{self.condition()}"
        kind, argument = ROOTS[name]
        given = ""
        alias = self.alias(name)
        if argument is not None:
            key, type_name = argument
            value = self.pick(*VALUES[type_name])
            shown = self.pick(None, json.dumps(value)) or self.variable(
                type_name, value
            )
            given = f"({key}: {shown})"
            # two fields of one response name must have the same arguments
            alias = f"r{len(self.variables)}_{self.draw(st.integers(0, 10**6))}: {name}"
        return f"{alias}{given}{self.condition()} {self.selections(kind, 3)}"


@st.composite
def operations(draw):
    """Return a document and its variables."""
    it = Operation(draw)
    roots = " ".join(it.root() for _ in range(draw(st.integers(1, 3))))
    declared = ", ".join(f"${name}: {kind}" for name, (kind, _) in it.variables.items())
    head = f"query Random({declared})" if declared else "query Random"
    text = "\n".join([f"{head} {{ {roots} }}", *it.fragments])
    return text, {name: value for name, (_, value) in it.variables.items()}
