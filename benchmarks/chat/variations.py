"""What Signpost is measured with in the benchmark of chat, besides a key and usage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

# The name of the gateway that is measured.
OURS = "signpost"


class Variation(NamedTuple):
    """Processes, and entries of the configuration; `name` is that of its row."""

    name: str = OURS
    processes: int = 1
    entries: Mapping[str, Any] = {}

    @classmethod
    def wanted(cls, processes: int, controls: bool) -> list[Variation]:
        """Return those that are measured beside Signpost as it comes."""
        found = []
        if processes > 1:
            found.append(cls(f"{OURS}, {processes} processes", processes))
        if controls:
            found.append(cls(f"{OURS}, a budget", entries=BUDGET))
            everything = BUDGET | RULES | {"request_log": {"models": ["bench"]}}
            found.append(cls(f"{OURS}, budget, rules, log", entries=everything))
        return found


BUDGET = {
    "budgets": [
        {
            "name": "all",
            "counts": "tokens",
            "window": "day",
            "limit": 1e9,
            "per": ["tenant"],
        }
    ]
}
RULES = {
    "policies": [
        {"name": "cards", "action": "deny", "on": "both", "pattern": "card"},
        {"name": "keys", "action": "deny", "on": "both", "pattern": "api_key"},
        {"name": "mail", "action": "mask", "on": "both", "pattern": "email"},
        {"name": "falcon", "action": "deny", "on": "both", "words": ["falcon-9"]},
        {"name": "id", "action": "mask", "on": "both", "regex": r"\bcust-[0-9]{6}\b"},
    ]
}
