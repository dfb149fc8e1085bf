"""Ids of calls for clients of Anthropic's API: each upstream's id has one of its own. Pure."""

from __future__ import annotations

import base64
import binascii
import re
import secrets
from collections import Counter
from typing import Any

from gateway.chat.operations.carried import Carrier

PREFIX = "toolu_"
# Other ids are written in base64, with how many calls of the conversation had the same before.
PLAIN = re.compile(r"[A-Za-z0-9_-]+")
CODED = re.compile(r"n([0-9]{1,6})_([A-Za-z0-9_-]*)")


NO_ENDPOINT = Carrier("")


class CallIds:
    """The ids of one conversation. Some servers begin them again in each turn, or leave them out.

    `carrier` puts into an id what the upstream wants back with the call.
    """

    def __init__(self, carrier: Carrier = NO_ENDPOINT) -> None:
        self.carrier = carrier
        self._calls: Counter[str] = Counter()

    def forget(self) -> None:
        self._calls.clear()

    def sent_back(self, client_id: str) -> tuple[str, dict[str, Any]]:
        """Return the upstream's id of a call that a client sends back, and its other fields."""
        upstream_id = decoded(client_id)
        self._calls[upstream_id] += 1
        return self.carrier.split(upstream_id)

    def own(self, client_id: str) -> str:
        """Return the upstream's id of the call that a result belongs to."""
        return self.carrier.split(decoded(client_id))[0]

    def new(self, upstream_id: str, extra: Any = None) -> str:
        """Return the client's id of a new call, with what the upstream wants back."""
        upstream_id = upstream_id or f"call_{secrets.token_hex(8)}"
        upstream_id = self.carrier.call_id(upstream_id, extra)
        number = self._calls[upstream_id]
        self._calls[upstream_id] += 1
        return encoded(upstream_id, number)


def encoded(upstream_id: str, number: int = 0) -> str:
    """Return the client's id of a call that has so many calls with the same id before it."""
    is_plain = PLAIN.fullmatch(upstream_id) and not CODED.fullmatch(upstream_id)
    if is_plain and not number:
        return PREFIX + upstream_id
    coded = base64.urlsafe_b64encode(upstream_id.encode("utf-8", "surrogatepass"))
    return f"{PREFIX}n{number}_{coded.rstrip(b'=').decode()}"


def decoded(client_id: str) -> str:
    """Return the upstream's id; one that was not made here loses at most its prefix."""
    upstream_id = client_id.removeprefix(PREFIX)
    match = CODED.fullmatch(upstream_id)
    if match is None or upstream_id == client_id:
        return upstream_id
    coded = match[2]
    try:
        raw = base64.urlsafe_b64decode(coded + "=" * (-len(coded) % 4))
        return raw.decode("utf-8", "surrogatepass")
    except (binascii.Error, UnicodeDecodeError):
        return upstream_id
