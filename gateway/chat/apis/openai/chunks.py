"""The raw path of chunks: renamed, without empty fields, parsed only if necessary. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import orjson

from gateway import json
from gateway.chat.errors import UpstreamServiceError
from gateway.chat.failures import is_failure

KEY = b'"model"'
MEMBER = re.compile(rb'"model"(?=\s*:)(\s*:\s*)("(?:[^"\\]|\\.)*")')
# A key can also be written with escapes of its letters, which are below U+0080.
ESCAPE = b"\\u00"
# So often the key is looked for among the members of inner objects.
MAX_MEMBERS = 16
MARK = b'"\xc2\xb6model"'


def parse(payload: bytes, most: int = json.MAX_VALUES) -> dict[str, Any]:
    """Return a JSON object that an upstream sent. Raises UpstreamServiceError."""
    try:
        value = json.loads(payload, most)
    except ValueError as error:
        raise UpstreamServiceError(f"malformed JSON: {error}") from error
    if isinstance(value, list) and is_failure(value):
        value = value[0]
    if not isinstance(value, dict):
        raise UpstreamServiceError("the upstream's JSON is not an object")
    return value


def dump(value: Any) -> bytes:
    """Return a chunk or response as JSON. Raises UpstreamServiceError: nested too deeply."""
    try:
        return json.dumps(value)
    except ValueError as error:
        raise UpstreamServiceError(f"the upstream's JSON: {error}") from error


def renamed(payload: bytes, value: dict[str, Any], model: str) -> bytes:
    """Return JSON with the requested name of the model, if it names one.

    `value` is what the payload holds. Raises UpstreamServiceError.
    """
    if "model" not in value:
        return payload
    try:
        return with_model(payload, value, model)
    except ValueError as error:
        raise UpstreamServiceError(f"the upstream's JSON: {error}") from error


def with_model(raw: bytes, value: Mapping[str, Any], name: str) -> bytes:
    """Return JSON with another name in its only member `model`; `value` is what it holds.

    JSON with several such members, or with very many inner ones, is written again. Raises
    ValueError: it is nested too deeply for that.
    """
    # In most bodies the key stands once, so that it is this one.
    if raw.count(KEY) == 1 and ESCAPE not in raw:
        if value.get("model") == name:
            return raw
        match = MEMBER.match(raw, raw.find(KEY))
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


def without_nulls(value: Any) -> Any:
    """Return JSON without null members at every depth; arrays keep their nulls.

    Raises UpstreamServiceError: it is nested too deeply.
    """
    try:
        return _without_nulls(value)
    except RecursionError as error:
        text = "the upstream's JSON is nested too deeply"
        raise UpstreamServiceError(text) from error


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: _without_nulls(item)
            for name, item in value.items()
            if item is not None
        }
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


class Template:
    """Rewrites chunks that differ from an earlier one only in their text, without parsing them.

    Most chunks of a stream are the same around `"content"`, whose text must need no escape:
    no quote, backslash or control character.
    """

    __slots__ = ("_after", "_before", "_new_after", "_new_before")

    MARK = b'"content":"'

    def __init__(self, before: bytes, after: bytes, new: tuple[bytes, bytes]) -> None:
        self._before, self._after = before, after
        self._new_before, self._new_after = new

    @classmethod
    def learn(
        cls, old: bytes, new: bytes, mark: bytes = MARK, new_mark: bytes = b""
    ) -> Template | None:
        """Return the template of a chunk and its rewritten form, if they have the form.

        `mark` is what stands before the text, `new_mark` what does so in the rewritten form
        if it differs.
        """
        old_parts, new_parts = _split(old, mark), _split(new, new_mark or mark)
        if old_parts is None or new_parts is None or old_parts[1] != new_parts[1]:
            return None
        return cls(old_parts[0], old_parts[2], (new_parts[0], new_parts[2]))

    def apply(self, payload: bytes) -> tuple[bytes, str] | None:
        """Return the rewritten chunk and its text; None for one of another form."""
        before, after = self._before, self._after
        if not (payload.startswith(before) and payload.endswith(after)):
            return None
        if len(payload) < len(before) + len(after):  # they overlap
            return None
        text = payload[len(before) : len(payload) - len(after)]
        plain = _plain(text)
        if plain is None:
            return None
        return self._new_before + text + self._new_after, plain


def _split(payload: bytes, mark: bytes) -> tuple[bytes, bytes, bytes] | None:
    """Return the parts before, in and after the only marked text."""
    before, separator, rest = payload.partition(mark)
    text, quote, after = rest.partition(b'"')
    if not separator or not quote or mark in after or _plain(text) is None:
        return None
    return before + mark, text, quote + after


def _plain(text: bytes) -> str | None:
    """Return a JSON text that needs no escape; None for another."""
    if b'"' in text or b"\\" in text:
        return None
    try:
        decoded = text.decode()
    except UnicodeDecodeError:
        return None
    return decoded if decoded.isprintable() else None
