"""The names of callers, and the token that a request carries. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gateway.rights import UNRESTRICTED, Rights

NAME = re.compile(r"[A-Za-z0-9._:@-]{1,128}")
NAME_RULE = "1 to 128 of the characters A-Z a-z 0-9 . _ : @ -"
# A server joins repeated headers with commas: whichever of them is a bearer's, the first counts.
BEARER = re.compile(r"(?:.*?,\s*)??bearer(?:$|\s)(.*)", re.IGNORECASE | re.DOTALL)
SYSTEM = "system"


def is_name(text: str) -> bool:
    """Return True if a text can name a tenant or a principal."""
    return NAME.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class Caller:
    """A principal of a tenant; `key_id` is None for header identity."""

    tenant: str
    principal: str
    key_id: int | None = None
    rights: Rights = UNRESTRICTED


def bearer_token(authorization: str | None) -> str | None:
    """Return the token of an `Authorization: Bearer …`, malformed or not; None without one.

    Other schemes do not concern the gateway: a proxy may have its own.
    """
    match = BEARER.fullmatch((authorization or "").strip())
    return match[1].strip() if match else None
