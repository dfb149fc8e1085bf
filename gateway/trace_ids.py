"""Trace ids: taken from a valid `traceparent` (W3C Trace Context), otherwise generated. Pure."""

from __future__ import annotations

import re
import secrets

# Versions after 00 may append fields; ff is not a version.
TRACEPARENT = re.compile(
    r"(?!ff)(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<parent>[0-9a-f]{16})"
    r"-[0-9a-f]{2}(?P<more>-.*)?"
)


def trace_id(traceparent: str | None) -> str:
    """Return 32 hexadecimal digits: those of the caller's trace, or new ones."""
    match = TRACEPARENT.fullmatch(traceparent or "")
    if match is None or (match["version"] == "00" and match["more"]):
        return secrets.token_hex(16)
    if not (match["trace"].strip("0") and match["parent"].strip("0")):
        return secrets.token_hex(16)
    return match["trace"]
