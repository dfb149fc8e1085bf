"""What an upstream wants back in the next turn, carried by the client: this gateway keeps nothing.

The signatures of a model's thinking stand in `encrypted_content` of the Responses API, Gemini's
signature of a call in its id. Base64 and not encrypted: it is the upstream's own answer. Pure.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from gateway import json

PREFIX = "sp1."
# Between the id of a call and what it carries.
MARK = ".sp1."


def pack(fields: Mapping[str, Any]) -> str:
    """Return fields as a text."""
    return PREFIX + base64.urlsafe_b64encode(json.dumps(fields)).decode()


def unpack(text: Any) -> dict[str, Any]:
    """Return the fields of a text; nothing if it is another server's."""
    if not isinstance(text, str) or not text.startswith(PREFIX):
        return {}
    try:
        data = base64.b64decode(text[len(PREFIX) :], altchars=b"-_", validate=True)
        fields = json.loads(data)
    except (binascii.Error, ValueError):
        return {}
    return fields if isinstance(fields, dict) else {}


def call_id(key: str, extra: Any) -> str:
    """Return the id of a call, with what belongs to the call."""
    return key + MARK + pack({"extra": extra})[len(PREFIX) :] if extra else key


def split(key: str) -> tuple[str, dict[str, Any]]:
    """Return the upstream's id of a call, and the fields that belong to the call."""
    own, mark, rest = key.partition(MARK)
    extra = unpack(PREFIX + rest).get("extra") if mark else None
    return own, {"extra_content": extra} if extra else {}
