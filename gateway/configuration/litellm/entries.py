"""Entries of `models`: from deployments with the same name, their aliases and fallbacks. Pure."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from gateway.configuration.litellm.deployments import Deployment
from gateway.configuration.litellm.source import ImportRefusedError, Notes, Section
from webhooks_core.web.faults import path_of

MAX_WEIGHT = 1000
# LiteLLM's lists of fallbacks, and the key of an entry.
FALLBACKS = {"fallbacks": "fallbacks", "context_window_fallbacks": "context_fallbacks"}


@dataclass(slots=True)
class Entries:
    """The entries by name. `groups` has the names of all entries of a name in LiteLLM."""

    notes: Notes
    balance: str = "weight"
    groups: dict[str, list[str]] = field(default_factory=dict)
    _entries: dict[str, dict[str, Any]] = field(default_factory=dict)

    def all(self) -> list[dict[str, Any]]:
        return [*self._entries.values()]

    def add(self, deployments: Iterable[Deployment]) -> None:
        """Add an entry for each name, and more of them where deployments differ.

        An entry has one kind of server. So others become fallbacks of the first.
        """
        by_name = defaultdict(list)
        for deployment in deployments:
            by_name[deployment.name].append(deployment)
        for name, group in by_name.items():
            parts = defaultdict(list)
            for deployment in group:
                key = json.dumps(deployment.settings, sort_keys=True, default=str)
                parts[key].append(deployment)
            for part in parts.values():
                self._add_part(name, part)
            first, *others = self.groups[name]
            if others:
                self._entries[first]["fallbacks"] = others
                names = ", ".join(others)
                text = f"differs from others of its name: {names} are fallbacks of it"
                self.notes.add(group[0].place, text)

    def _add_part(self, name: str, part: Sequence[Deployment]) -> None:
        names = self.groups.setdefault(name, [])
        own = f"{name} ({len(names) + 1})" if names else name
        names.append(own)
        targets = _targets(part)
        settings = dict(part[0].settings)
        if len(targets) > 1 and self.balance != "weight":
            settings["balance"] = self.balance
        entry = {"name": own, "upstream": settings.pop("upstream")}
        place = targets[0] if len(targets) == 1 else {"targets": targets}
        self._entries[own] = {**entry, **place, **settings}

    def add_aliases(self, aliases: Section) -> None:
        """Add a copy of an entry for each other name."""
        for alias in [*aliases.values]:
            value = aliases.take(alias)
            if isinstance(value, dict):
                value = value.get("model")
            if alias in self._entries or value not in self._entries:
                aliases.note(
                    alias, "is left out: no entry of that name, or two of this"
                )
                continue
            self._entries[alias] = deepcopy(self._entries[value]) | {"name": alias}
            self.groups[value].append(alias)

    def add_fallbacks(self, section: Section) -> None:
        """Add the fallbacks that a section of settings has. Raises ImportRefusedError."""
        for key, own_key in FALLBACKS.items():
            for item in section.sections(key):
                for name in [*item.values]:
                    others = list(_names(item, name))
                    self._fall_back(name, others, own_key, item)
        defaults = Section(
            {"*": section.take("default_fallbacks")}, section.place, self.notes
        )
        if defaults.values["*"] is not None:
            self._fall_back("*", list(_names(defaults, "*")), "fallbacks", defaults)

    def _fall_back(
        self, name: str, others: list[str], key: str, section: Section
    ) -> None:
        names = [*self._entries] if name == "*" else [name]
        for missing in {name, *others} - {"*", *self._entries}:
            section.note(name, f"there is no entry {missing}")
        for each in (self._entries[own] for own in names if own in self._entries):
            if name == "*" and each.get(key):
                continue  # those of all are for entries without their own
            known = [other for other in others if other in self._entries]
            all_names = (*each.get(key, ()), *known)
            own_fallbacks = [n for n in dict.fromkeys(all_names) if n != each["name"]]
            if own_fallbacks:
                each[key] = own_fallbacks

    def leave_out(self, faults_of: Callable[[Any], Sequence[str]]) -> None:
        """Leave out the entries in which there are faults, and every mention of them."""
        for name, entry in [*self._entries.items()]:
            without = {k: v for k, v in entry.items() if k not in FALLBACKS.values()}
            if faults := faults_of(without):
                del self._entries[name]
                self.notes.texts.append(f"{name}: is left out: {'; '.join(faults)}")
        for entry in self._entries.values():
            for key in FALLBACKS.values():
                names = [each for each in entry.pop(key, ()) if each in self._entries]
                if names:
                    entry[key] = names
        for group, names in self.groups.items():
            self.groups[group] = [name for name in names if name in self._entries]

    def needed(self, variables: Iterable[str]) -> list[str]:
        """Return those of the variables that the entries refer to."""
        text = json.dumps(self.all(), default=str)
        return [name for name in variables if f"${{{name}}}" in text]


def _names(section: Section, key: str) -> Iterator[str]:
    """Yield the names of fallbacks: texts, or mappings with a model. Raises ImportRefusedError."""
    for value in section.items(key):
        name = value.get("model") if isinstance(value, dict) else value
        if not isinstance(name, str):
            place = path_of((*section.place, key))
            raise ImportRefusedError(f"{place}: must be a list of names")
        yield name


def _targets(part: Sequence[Deployment]) -> list[dict[str, Any]]:
    """Return the different targets, with weights if LiteLLM has such for all of them."""
    weights = [_weight(deployment) for deployment in part]
    targets = [dict(deployment.target) for deployment in part]
    known = [weight for weight in weights if weight is not None]
    if len(known) == len(part) and len({*known}) > 1:
        scale = 1.0
        if max(known) > MAX_WEIGHT or any(not w.is_integer() for w in known):
            scale = MAX_WEIGHT / max(known)
        for target, weight in zip(targets, known, strict=True):
            target["weight"] = max(1, round(weight * scale))
    return [
        target
        for number, target in enumerate(targets)
        if target not in targets[:number]
    ]


def _weight(deployment: Deployment) -> float | None:
    limits = deployment.limits
    return deployment.weight or limits["requests"] or limits["tokens"]
