"""Ids of calls as Anthropic's API accepts them: some characters, and each id once. Pure."""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterable
from hashlib import sha256
from typing import Any

NOT_IN_IDS = re.compile(r"[^A-Za-z0-9_-]")


def replace_ids(blocks: Iterable[dict[str, Any]]) -> None:
    """Give the calls of a conversation different ids, and their results the same.

    Some clients leave ids empty, or begin again in each turn: the first result of an id is
    that of its first call, and so on.
    """
    calls: Counter[str] = Counter()
    unanswered: defaultdict[str, deque[str]] = defaultdict(deque)
    for block in blocks:
        if block["type"] == "tool_use":
            key = block["id"]
            block["id"] = _id(key, calls[key])
            calls[key] += 1
            unanswered[key].append(block["id"])
        elif block["type"] == "tool_result" and isinstance(block["tool_use_id"], str):
            key = block["tool_use_id"]
            waiting = unanswered[key]
            block["tool_use_id"] = waiting.popleft() if waiting else _id(key)


def _id(key: str, number: int = 0) -> str:
    """Return the id of a call that has so many calls with the same key before it."""
    if key and not number and not NOT_IN_IDS.search(key):
        return key
    # A null character, so that no other key of a client's becomes the same.
    whole = f"{key}\0{number}" if number else key
    digest = sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{NOT_IN_IDS.sub('_', key[:40])}_{digest}"
