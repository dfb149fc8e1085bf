"""Text of strangers for a terminal, which would obey control characters."""

from __future__ import annotations

import json
from collections.abc import Callable


def printable(text: str, *, keep: str = "") -> str:
    """Return a text with every unprintable character as an escape, but those to keep."""
    return _replaced(text, keep, lambda c: c.encode("unicode_escape").decode())


def printable_json(document: str) -> str:
    """Return the same JSON document with every unprintable character as an escape of JSON."""
    return _replaced(document, "\n", lambda c: json.dumps(c)[1:-1])


def _replaced(text: str, keep: str, escape: Callable[[str], str]) -> str:
    if text.isascii() and text.isprintable():
        return text
    text = text.encode("utf-8", "backslashreplace").decode()  # half a surrogate pair
    return "".join(c if c.isprintable() or c in keep else escape(c) for c in text)
