"""What the OpenAPI document says about the cache."""

from __future__ import annotations

from typing import Any

from gateway.chat.caching.slots import HEADER, RESULT, SKIP, USE
from webhooks_core.web.json_schema import one_of, parameter

# What a client asks of the cache, and what it is told.
CACHE = parameter(
    HEADER.title(),
    "`use` or `skip` the cache of the model endpoint, if it has one.",
    required=False,
) | {"in": "header", "schema": one_of(USE, SKIP)}
CACHED = {
    "description": "Whether the cache answered; missing if it was not asked.",
    "schema": one_of("hit", "miss"),
}


def cacheable(described_operation: dict[str, Any]) -> dict[str, Any]:
    """Add to an operation whose answers can come from the cache what it says of that."""
    described_operation["responses"]["200"]["headers"] = {RESULT: CACHED}
    return described_operation | {"parameters": [CACHE]}
