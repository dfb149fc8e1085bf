"""What an upstream wants back in the next turn, carried by the client: this gateway keeps nothing.

The signatures of a model's thinking stand in `encrypted_content` of the Responses API, Gemini's
signature of a call in its id. Base64 and not encrypted: it is the upstream's own answer. What a
server of another kind thought is signed by the name of the field in which it wants that back. Pure.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Any

from gateway import json

PREFIX = "sp1."
# Between the id of a call and what it carries.
MARK = ".sp1."
OWN_SIGNATURE = "signpost:"
MARKS = PREFIX.encode(), OWN_SIGNATURE.encode()
# The members of a request that hold any of these.
PROOFS = ("signature", "data", "encrypted_content")
KEYS = ("id", "tool_use_id", "call_id")


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


def is_in(raw: bytes) -> bool:
    """Return True if a request may hold something that this gateway put in."""
    return any(mark in raw for mark in MARKS)


def without(items: list[Any]) -> Iterator[Any]:
    """Yield turns, blocks or items without what this gateway put in, which other servers refuse."""
    for item in items:
        if not isinstance(item, dict):
            yield item
            continue
        if any(_is_own(item.get(name)) for name in PROOFS):
            continue
        kept: dict[str, Any] = {
            n: v.partition(MARK)[0] for n in KEYS if isinstance(v := item.get(n), str)
        }
        content = item.get("content")
        if isinstance(content, list) and content:
            kept["content"] = [*without(content)]
            if not kept["content"]:
                continue
        yield item | kept


def _is_own(proof: Any) -> bool:
    return isinstance(proof, str) and proof.startswith((PREFIX, OWN_SIGNATURE))
