"""What a caller may do: its scopes, and the models that it may call. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gateway.configuration.shapes import BudgetEntry

SCOPES = CHAT, EVENTS, INGEST, KEYS, REQUESTS, USAGE, WEBHOOKS = (
    *("chat", "events", "ingest", "keys"),
    *("requests", "usage", "webhooks"),
)
# What a caller has unless its key says otherwise: operators alone give `keys`.
GENERAL = frozenset(SCOPES) - {KEYS}


@dataclass(frozen=True, slots=True)
class Rights:
    """The rights of a caller within its tenant.

    `models` None means every model that the principal may call. `created_by` is the principal
    whose key created this one: the key calls no model that this principal may not call. It is
    empty for a key of an operator. `budget` is what its requests may use, beside all other budgets.
    """

    scopes: frozenset[str] = GENERAL
    models: frozenset[str] | None = None
    created_by: str = ""
    budget: BudgetEntry | None = None


UNRESTRICTED = Rights()
