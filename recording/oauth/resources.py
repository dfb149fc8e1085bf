"""Which resource indicators mean the recording API (RFC 8707, RFC 9728)."""

from __future__ import annotations

import re

# The API is one resource server. Its root and each of its addresses name it, because strict
# clients expect the metadata to repeat the exact address that they called (RFC 9728, 3.3).
PATH = re.compile(
    r"|/mcp|/v1|/v1/webhooks(?!/subscriptions)(?:/[A-Za-z0-9_-]{1,64}(?:/test|/deliveries)?)?"
    r"|/v1/webhook-events/samples",
    re.ASCII,
)


def is_protected_path(path: str) -> bool:
    """Return True if a path (empty for the root) belongs to the recording API."""
    return PATH.fullmatch(path) is not None


def is_ours(resource: str, *, issuer: str) -> bool:
    """Return True if a resource indicator names the recording API of this origin."""
    if not resource.startswith(issuer):
        return False
    path = resource[len(issuer) :]
    return path == "/" or is_protected_path(path)
