"""The names of tenants and principals. Pure."""

from __future__ import annotations

import re

NAME = re.compile(r"[A-Za-z0-9._:@-]{1,128}")
NAME_RULE = "1 to 128 of the characters A-Z a-z 0-9 . _ : @ -"


def is_name(text: str) -> bool:
    """Return True if a text can name a tenant or a principal."""
    return NAME.fullmatch(text) is not None
