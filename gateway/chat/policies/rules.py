"""The rules of the configuration, ready to be applied, and those that apply to a request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256

from django.utils.module_loading import import_string

from gateway.chat.policies import finders
from gateway.chat.policies.finders import Finder
from gateway.configuration.content import BOTH, DENY, PolicyEntry

# How many pairs of a model and a tenant are remembered.
REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule; `find` is None for one that is about no text.

    `digest` is equal for rules that do the same, wherever they apply.
    """

    entry: PolicyEntry
    find: Finder | None
    digest: str

    @classmethod
    def of(cls, entry: PolicyEntry) -> Rule:
        """Return the rule of an entry, which has been checked."""
        find: Finder | None = None
        if entry.regex:
            find = finders.regex(entry.regex)
        elif entry.words:
            find = finders.words(entry.words)
        elif entry.pattern:
            find = finders.PATTERNS[entry.pattern]
        elif entry.python:
            find = import_string(entry.python)
        does = replace(entry, models=frozenset(), tenants=frozenset())
        return cls(entry, find, sha256(repr(does).encode()).hexdigest())

    @property
    def name(self) -> str:
        return self.entry.name

    @property
    def denies(self) -> bool:
        return self.entry.action == DENY

    def is_on(self, place: str) -> bool:
        """Return True if the rule is about requests, or about answers."""
        return self.entry.on in (place, BOTH)

    def applies(self, model: str, tenant: str) -> bool:
        entry = self.entry
        return (not entry.models or model in entry.models) and (
            not entry.tenants or tenant in entry.tenants
        )


@dataclass(slots=True)
class Policies:
    """The rules in their order."""

    rules: Sequence[Rule] = ()
    _known: dict[tuple[str, str], tuple[Rule, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, entries: Sequence[PolicyEntry]) -> Policies:
        return cls([Rule.of(entry) for entry in entries])

    def applying(self, *, model: str, tenant: str) -> tuple[Rule, ...]:
        """Return the rules for a request, in their order."""
        if not self.rules:
            return ()
        key = model, tenant
        if key not in self._known:
            if len(self._known) == REMEMBERED:
                self._known.clear()
            self._known[key] = tuple(r for r in self.rules if r.applies(model, tenant))
        return self._known[key]
