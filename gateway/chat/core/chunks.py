"""Chunks of a stream: parsed if necessary, renamed, without empty fields. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from gateway import json
from gateway.chat.core.failures import failure_in, is_failure, replaces_answer
from gateway.chat.errors import InvalidRequestError, UpstreamServiceError
from gateway.chat.tokens import Usage
from gateway.json import mapping

MODEL_KEY = b'"model"'
BACKSLASH = ord("\\")
MODEL = re.compile(rb'"model"\s*:\s*("[^"\\]*")')
NESTED_TOO_DEEPLY = "the upstream's JSON is nested too deeply"


@dataclass(slots=True)
class Chunk:
    """A parsed event: `value` is what the client gets. Without choices or usage it is no chunk."""

    value: dict[str, Any]
    usage: Usage | None
    is_known: bool
    is_finish: bool
    is_usage_only: bool


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


def rename(payload: bytes, model: str) -> bytes:
    """Return JSON with another name of the model, otherwise unchanged.

    Raises UpstreamServiceError.
    """
    return rename_only(payload, model) or dump({**parse(payload), "model": model})


def rename_only(payload: bytes, model: str) -> bytes | None:
    """Return JSON with another name in its only member `model`, at any depth; None for other JSON."""
    match = MODEL.search(payload)
    if (
        match is None
        or payload.count(MODEL_KEY) != 1
        or payload[match.start() - 1] == BACKSLASH
    ):
        return None
    start, end = match.span(1)
    return payload[:start] + orjson.dumps(model) + payload[end:]


def understand(value: dict[str, Any]) -> Chunk:
    """Return a chunk. Raises the failure that a chunk reports."""
    if replaces_answer(value):
        raise failure_in(value, refusal=InvalidRequestError)
    choices = value.get("choices") or []
    is_list = isinstance(choices, list)
    usage = usage_in(value)
    return Chunk(
        value,
        usage,
        is_known=isinstance(value.get("choices"), list) or usage is not None,
        is_finish=is_list and any(map(_is_finish, choices)),
        is_usage_only=isinstance(value.get("usage"), dict)
        and is_list
        and all(map(_is_empty, choices)),
    )


def usage_in(value: Mapping[str, Any]) -> Usage | None:
    """Return the usage of a response or chunk: Kimi's is in its choice, Groq's in `x_groq`."""
    return (
        Usage.read(value.get("usage"))
        or Usage.read(first_choice(value).get("usage"))
        or Usage.read(mapping(value.get("x_groq")).get("usage"))
    )


def first_choice(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the first choice of a response or chunk; an empty one if there is none."""
    choices = value.get("choices")
    return mapping(choices[0]) if isinstance(choices, list) and choices else {}


def _is_finish(choice: Any) -> bool:
    return isinstance(choice, dict) and bool(choice.get("finish_reason"))


def _is_empty(choice: Any) -> bool:
    """Return True if a choice has only an index: some servers send one with the usage."""
    return isinstance(choice, dict) and not any(
        value for name, value in choice.items() if name != "index"
    )


def dump(value: Any) -> bytes:
    """Return a chunk or response as JSON. Raises UpstreamServiceError: nested too deeply."""
    try:
        return json.dumps(value)
    except ValueError as error:
        raise UpstreamServiceError(f"the upstream's JSON: {error}") from error


def dump_without_nulls(value: dict[str, Any]) -> bytes:
    """Return a chunk as JSON without null members. Raises as dump() does."""
    try:
        return dump(without_nulls(value))
    except RecursionError as error:
        raise UpstreamServiceError(NESTED_TOO_DEEPLY) from error


def without_nulls(value: Any) -> Any:
    """Return JSON without null members at every depth; arrays keep their nulls."""
    if isinstance(value, dict):
        members = value.items()
        return {name: without_nulls(item) for name, item in members if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
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

    def apply(self, payload: bytes) -> tuple[bytes, int] | None:
        """Return the rewritten chunk and its text's length; None for one of another form."""
        before, after = self._before, self._after
        if not (payload.startswith(before) and payload.endswith(after)):
            return None
        if len(payload) < len(before) + len(after):  # they overlap
            return None
        text = payload[len(before) : len(payload) - len(after)]
        length = _plain_length(text)
        if length is None:
            return None
        return self._new_before + text + self._new_after, length


def _split(payload: bytes, mark: bytes) -> tuple[bytes, bytes, bytes] | None:
    """Return the parts before, in and after the only marked text."""
    before, separator, rest = payload.partition(mark)
    text, quote, after = rest.partition(b'"')
    if not separator or not quote or mark in after or _plain_length(text) is None:
        return None
    return before + mark, text, quote + after


def _plain_length(text: bytes) -> int | None:
    """Return how many characters a JSON text has that needs no escape; None for another."""
    if b'"' in text or b"\\" in text:
        return None
    try:
        decoded = text.decode()
    except UnicodeDecodeError:
        return None
    return len(decoded) if decoded.isprintable() else None
