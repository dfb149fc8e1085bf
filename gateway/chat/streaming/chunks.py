"""Chunks of a stream: parsed if necessary, renamed, without empty fields. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson

from gateway.chat import exact_json
from gateway.chat.errors import (
    ChatError,
    InvalidRequestError,
    InvalidValueError,
    UpstreamError,
    UpstreamServiceError,
)
from gateway.chat.metering.tokens import Usage

REFUSAL_STATUSES = frozenset({400, 413, 422})
REFUSAL_TYPES = frozenset({"invalid_request_error", "request_too_large"})
REFUSED = "The upstream refused the request."
PASSED_ON = ("type", "param", "code")
MODEL_KEY = b'"model"'
BACKSLASH = ord("\\")
MODEL = re.compile(rb'"model"\s*:\s*("[^"\\]*")')
NESTED_TOO_DEEPLY = "the upstream's JSON is nested too deeply"


@dataclass(slots=True)
class Chunk:
    """A parsed chunk: `value` is what the client gets."""

    value: dict[str, Any]
    usage: Usage | None
    is_finish: bool
    is_usage_only: bool


def parse(
    payload: bytes, loads: Callable[[bytes], Any] = exact_json.loads
) -> dict[str, Any]:
    """Return a JSON object that an upstream sent. Raises UpstreamServiceError."""
    try:
        value = loads(payload)
    except ValueError as error:
        raise UpstreamServiceError(f"malformed JSON: {error}") from error
    if not isinstance(value, dict):
        raise UpstreamServiceError("the upstream's JSON is not an object")
    if exact_json.is_too_deep(payload, value):
        raise UpstreamServiceError(NESTED_TOO_DEEPLY)
    return value


def rename(payload: bytes, model: str) -> bytes:
    """Return JSON with another name of the model, otherwise unchanged.

    Raises UpstreamServiceError.
    """
    match = MODEL.search(payload)
    if (
        match is not None
        and payload.count(MODEL_KEY) == 1
        and payload[match.start() - 1] != BACKSLASH
    ):
        start, end = match.span(1)
        return payload[:start] + orjson.dumps(model) + payload[end:]
    return dump({**parse(payload), "model": model})


def understand(value: dict[str, Any]) -> Chunk:
    """Return a chunk. Raises the failure that an error object stands for."""
    if value.get("error"):
        raise failure_in(value, refusal=InvalidRequestError)
    choices = value.get("choices") or []
    is_list = isinstance(choices, list)
    return Chunk(
        value,
        Usage.read(value.get("usage")),
        is_finish=is_list and any(map(_is_finish, choices)),
        is_usage_only=isinstance(value.get("usage"), dict)
        and is_list
        and all(map(_is_empty, choices)),
    )


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
        return exact_json.dumps(value)
    except TypeError as error:
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


def failure_in(
    value: Any, *, refusal: type[ChatError] = InvalidValueError, status: int = 0
) -> ChatError:
    """Return the failure that an upstream's error object stands for.

    400, 413 and 422 refuse the request, and the caller gets the upstream's message; every
    other status is a failure of the upstream. `status` is the response's; 0 in a stream.
    """
    error = value.get("error") if isinstance(value, dict) else None
    fields = error if isinstance(error, dict) else {}
    statuses = {status} if status else _statuses(fields)
    is_refusal = str(fields.get("type")) in REFUSAL_TYPES and not statuses
    failure: ChatError
    if is_refusal or statuses & REFUSAL_STATUSES:
        failure = refusal(_message(value) or REFUSED)
        failure.upstream = UpstreamError(fields=_passed_on(value))
    else:
        source = f"HTTP {status}" if status else "an error in the stream"
        kind = fields.get("type") or fields.get("code") or ""
        failure = UpstreamServiceError(f"{source} {kind}".strip()[:200])
        failure.upstream = UpstreamError(max(statuses, default=0), _passed_on(value))
    return failure


def _passed_on(value: Any) -> dict[str, str]:
    """Return the fields of an error that OpenAI's clients read."""
    if not isinstance(value, dict):
        return {}
    error = value.get("error")
    fields = error if isinstance(error, dict) else value
    return {name: fields[name] for name in PASSED_ON if _is_name(fields.get(name))}


def _statuses(error: dict[str, Any]) -> set[int]:
    """Return the HTTP statuses that an error object names."""
    texts = (str(error.get(name)) for name in ("code", "status", "status_code"))
    return {
        int(text)
        for text in texts
        if text.isascii() and text.isdigit() and len(text) == 3
    }


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 200 and value.isprintable()


def _message(value: Any) -> str:
    """Return the text in the shapes that OpenAI-compatible servers are known to use."""
    for _ in range(3):
        if not isinstance(value, dict):
            break
        keys = ("error", "message", "detail")
        value = next((value[key] for key in keys if key in value), "")
    return value if isinstance(value, str) else ""


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
    def learn(cls, old: bytes, new: bytes) -> Template | None:
        """Return the template of a chunk and its rewritten form, if they have the form."""
        old_parts, new_parts = _split(old, cls.MARK), _split(new, cls.MARK)
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
