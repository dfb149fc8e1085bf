"""What an upstream wants back in the next turn, carried by the client: this gateway keeps nothing.

It stands in `encrypted_content` of items of reasoning or in the signature of thinking, and in the
ids of calls. Base64 and not encrypted: it is the upstream's own answer, whose secret parts the
vendor has encrypted. Pure.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gateway import json

# Fields of a message with reasoning; and of a call, as Gemini's signature of a thought.
REASONING = ("thinking_blocks", "reasoning_details", "reasoning_content", "reasoning")
DETAILS = "reasoning_details"
CALL = "extra_content"
# The parts of a detail that come bit by bit in a stream.
GROWING = ("text", "summary", "data")
ENDPOINT = "endpoint"
PREFIX = "sp1."
# Between the id of a call and what it carries.
MARK = ".sp1."


@dataclass(frozen=True, slots=True)
class Carrier:
    """Packs what the model endpoint of this name wants back; no other endpoint gets it.

    `is_wanted`: the client asked for `encrypted_content`.
    """

    endpoint: str
    is_wanted: bool = False

    def encrypted_content(self, fields: Mapping[str, Any]) -> str | None:
        """Return what the client is to send back with an item of reasoning, if anything.

        Signatures are sent unasked: without them, the next turn would be refused.
        """
        has_proof = fields.get("thinking_blocks") or fields.get(DETAILS)
        return self._pack(fields) if fields and (self.is_wanted or has_proof) else None

    def call_id(self, key: str, extra: Any) -> str:
        """Return the id of a call, with what belongs to the call."""
        if not extra:
            return key
        return f"{key}{MARK}{self._pack({CALL: extra})[len(PREFIX) :]}"

    def reasoning_of(self, text: Any) -> dict[str, Any]:
        """Return the fields of a message that an item of reasoning carries."""
        fields = self._unpack(text)
        return {name: fields[name] for name in REASONING if name in fields}

    def split(self, call_id: str) -> tuple[str, dict[str, Any]]:
        """Return the upstream's id of a call, and the fields that belong to the call."""
        key, mark, rest = call_id.partition(MARK)
        if not mark:
            return call_id, {}
        extra = self._unpack(PREFIX + rest).get(CALL)
        return key, {CALL: extra} if extra else {}

    def _pack(self, fields: Mapping[str, Any]) -> str:
        return pack({**fields, ENDPOINT: self.endpoint})

    def _unpack(self, text: Any) -> dict[str, Any]:
        fields = unpack(text)
        return fields if fields.get(ENDPOINT) == self.endpoint else {}


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


def merge(message: dict[str, Any], fields: Mapping[str, Any]) -> None:
    """Add reasoning to a message: lists and texts go on."""
    for name, value in fields.items():
        before = message.get(name)
        goes_on = isinstance(before, str | list) and type(before) is type(value)
        message[name] = before + value if goes_on else value


def joined(details: Iterable[Any]) -> list[Any]:
    """Return the `reasoning_details` of a stream as those of a whole answer: each one once."""
    whole: list[Any] = []
    for detail in details:
        last = whole[-1] if whole else None
        if not (isinstance(detail, dict) and isinstance(last, dict)) or any(
            detail.get(name) != last.get(name) for name in ("type", "index")
        ):
            whole.append(dict(detail) if isinstance(detail, dict) else detail)
            continue
        for name, value in detail.items():
            before = last.get(name)
            is_more = name in GROWING and isinstance(before, str)
            is_more = is_more and isinstance(value, str)
            if value is not None:
                last[name] = before + value if is_more else value
    return whole
