"""Another name of the model in JSON that otherwise keeps every byte. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import orjson

from gateway import json

KEY = b'"model"'
MEMBER = re.compile(rb'"model"(?=\s*:)(\s*:\s*)("(?:[^"\\]|\\.)*")')
# A key can also be written with escapes of its letters, which are below U+0080.
ESCAPE = b"\\u00"
# So often the key is looked for among the members of inner objects.
MAX_MEMBERS = 16
MARK = b'"\xc2\xb6model"'


def renamed(raw: bytes, value: Mapping[str, Any], name: str) -> bytes:
    """Return JSON with another name in its only member `model`; `value` is what it holds.

    JSON with several such members, or with very many inner ones, is written again. Raises
    ValueError: it is nested too deeply for that.
    """
    # In most bodies the key stands once, so that it is this one.
    if raw.count(KEY) == 1 and ESCAPE not in raw:
        if value.get("model") == name:
            return raw
        match = MEMBER.search(raw)
    else:
        match = _member(raw)
    if match is None:
        return json.dumps({**value, "model": name})
    start, end = match.span(2)
    return raw[:start] + orjson.dumps(name) + raw[end:]


def _member(raw: bytes) -> re.Match[bytes] | None:
    """Return the member `model` of JSON that has one, None if it may have several.

    Each member of the name is tried: with another key in its place, the object has no member
    `model` any more.
    """
    for _, match in zip(range(MAX_MEMBERS), MEMBER.finditer(raw), strict=False):
        start = match.start()
        marked = raw[:start] + MARK + raw[start + len(KEY) :]
        try:
            keys = json.loads(marked).keys()
        except ValueError:
            continue  # a text that looks like a member
        if "\xb6model" in keys and "model" not in keys:
            return match
    return None
