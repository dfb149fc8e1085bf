"""Callers: their names, what they may do, and the token that a request carries. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gateway.configuration.shapes import BudgetEntry


# A server joins repeated headers with commas: whichever of them is a bearer's, the first counts.
BEARER = re.compile(r"(?:.*?,\s*)??bearer(?:$|\s)(.*)", re.IGNORECASE | re.DOTALL)
# Of tenants and principals.
NAME = re.compile(r"[A-Za-z0-9._:@-]{1,128}")
NAME_RULE = "1 to 128 of the characters A-Z a-z 0-9 . _ : @ -"
SYSTEM = "system"


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


@dataclass(frozen=True, slots=True)
class Caller:
    """A principal of a tenant; `key_id` is None for header identity."""

    tenant: str
    principal: str
    key_id: int | None = None
    rights: Rights = Rights()


def is_name(text: str) -> bool:
    """Return True if a text can name a tenant or a principal."""
    return NAME.fullmatch(text) is not None


def bearer_token(authorization: str | None) -> str | None:
    """Return the token of an `Authorization: Bearer …`, malformed or not; None without one.

    Other schemes do not concern the gateway: a proxy may have its own.
    """
    match = BEARER.fullmatch((authorization or "").strip())
    return match[1].strip() if match else None
