"""Chunks of a stream: read only as far as needed, renamed, and freed of empty fields. Pure."""

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

REFUSALS = frozenset({400, 413, 422})
REFUSAL_TYPES = frozenset({"invalid_request_error", "request_too_large"})
REFUSED = "The upstream refused the request."
PASSED_ON = ("type", "param", "code")
MODEL_KEY = b'"model"'
BACKSLASH = ord("\\")
MODEL = re.compile(rb'"model"\s*:\s*("[^"\\]*")')


@dataclass(slots=True)
class Chunk:
    """One chunk, understood: `value` is what the client gets."""

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
        raise UpstreamServiceError("the upstream's JSON is nested too deeply")
    return value


def renamed(payload: bytes, name: str) -> bytes:
    """Return JSON under another name of the model, and otherwise as it was received.

    Raises UpstreamServiceError.
    """
    match = MODEL.search(payload)
    if (
        match is not None
        and payload.count(MODEL_KEY) == 1
        and payload[match.start() - 1] != BACKSLASH
    ):
        begin, end = match.span(1)
        return payload[:begin] + orjson.dumps(name) + payload[end:]
    return dump({**parse(payload), "model": name})


def understand(value: dict[str, Any]) -> Chunk:
    """Return what a chunk means. Raises what an error in its place stands for."""
    if value.get("error"):
        raise failure_in(value, refusal=InvalidRequestError)
    choices = value.get("choices") or []
    usage = Usage.read(value.get("usage"))
    is_list = isinstance(choices, list)
    return Chunk(
        value,
        usage,
        is_finish=is_list and any(map(_finishes, choices)),
        is_usage_only=isinstance(value.get("usage"), dict)
        and is_list
        and all(map(_is_silent, choices)),
    )


def _finishes(choice: Any) -> bool:
    return isinstance(choice, dict) and bool(choice.get("finish_reason"))


def _is_silent(choice: Any) -> bool:
    """Tell whether a choice says nothing: some servers put one beside the usage."""
    return isinstance(choice, dict) and not any(
        value for name, value in choice.items() if name != "index"
    )


def dump(value: Any) -> bytes:
    """Return a chunk or answer as JSON. Raises UpstreamServiceError: nested too deeply."""
    try:
        return exact_json.dumps(value)
    except TypeError as error:
        raise UpstreamServiceError(f"the upstream's JSON: {error}") from error


def dump_without_nulls(value: dict[str, Any]) -> bytes:
    """Return a chunk as JSON without null members. Raises as dump() does."""
    try:
        return dump(without_nulls(value))
    except RecursionError as error:
        raise UpstreamServiceError(
            "the upstream's JSON is nested too deeply"
        ) from error


def without_nulls(value: Any) -> Any:
    """Return JSON without the members that are null, at every depth; arrays keep theirs."""
    if isinstance(value, dict):
        return {k: without_nulls(v) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value


def failure_in(
    value: Any, *, refusal: type[ChatError] = InvalidValueError, status: int = 0
) -> ChatError:
    """Return the failure that an upstream's error object stands for.

    400, 413 and 422 refuse the request, and the caller gets the upstream's message; every
    other one is the upstream's own trouble. `status` is the answer's, when it came as one.
    """
    error = value.get("error") if isinstance(value, dict) else None
    codes = {status} if status else _codes(error)
    failure: ChatError
    if codes & REFUSALS or (not codes and _is_refusal(error)):
        failure = refusal(_message(value) or REFUSED)
        failure.upstream = UpstreamError(fields=_passed_on(value))
    else:
        kind = error.get("type") or error.get("code") if isinstance(error, dict) else ""
        where = f"HTTP {status}" if status else "an error in the stream"
        failure = UpstreamServiceError(f"{where} {kind or ''}".strip()[:200])
        failure.upstream = UpstreamError(max(codes, default=0), _passed_on(value))
    return failure


def _passed_on(value: Any) -> dict[str, str]:
    """Return what OpenAI's clients look at in an error, which may stand in a field or alone."""
    if not isinstance(value, dict):
        return {}
    error = value.get("error")
    told = error if isinstance(error, dict) else value
    return {name: told[name] for name in PASSED_ON if _is_name(told.get(name))}


def _codes(error: Any) -> set[int]:
    """Return the HTTP statuses that an error object names."""
    if not isinstance(error, dict):
        return set()
    texts = (str(error.get(name)) for name in ("code", "status", "status_code"))
    return {int(it) for it in texts if it.isascii() and it.isdigit() and len(it) == 3}


def _is_refusal(error: Any) -> bool:
    return isinstance(error, dict) and str(error.get("type")) in REFUSAL_TYPES


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 200 and value.isprintable()


def _message(value: Any) -> str:
    """Return the text in the shapes that OpenAI-compatible servers are known to use."""
    for _ in range(3):
        if isinstance(value, str):
            return value
        if not isinstance(value, dict):
            return ""
        value = next(
            (value[k] for k in ("error", "message", "detail") if k in value), ""
        )
    return value if isinstance(value, str) else ""


class Template:
    """Rewrites chunks that differ from an earlier one in their text alone, without parsing them.

    Most chunks of a stream are of one form around a changing `"content"`. What stands in the
    changing place is checked to be a plain JSON text: no quote, escape or control character.
    """

    __slots__ = ("_after", "_before", "_new_after", "_new_before")

    MARK = b'"content":"'

    def __init__(self, before: bytes, after: bytes, new: tuple[bytes, bytes]) -> None:
        self._before, self._after = before, after
        self._new_before, self._new_after = new

    @classmethod
    def learn(cls, old: bytes, new: bytes) -> Template | None:
        """Return the template of a chunk and its rewritten form, if they have the form."""
        cuts = [_cut(payload, cls.MARK) for payload in (old, new)]
        if cuts[0] is None or cuts[1] is None or cuts[0][1] != cuts[1][1]:
            return None
        return cls(cuts[0][0], cuts[0][2], (cuts[1][0], cuts[1][2]))

    def apply(self, payload: bytes) -> bytes | None:
        """Return the rewritten chunk, or None for one of another form."""
        if not (payload.startswith(self._before) and payload.endswith(self._after)):
            return None
        if len(payload) < len(self._before) + len(self._after):
            return None
        text = payload[len(self._before) : len(payload) - len(self._after)]
        return self._new_before + text + self._new_after if _is_plain(text) else None

    def text_length(self, payload: bytes) -> int:
        """Return how many characters the changing text of a chunk of this form has."""
        text = payload[len(self._before) : len(payload) - len(self._after)]
        return len(text.decode())


def _cut(payload: bytes, mark: bytes) -> tuple[bytes, bytes, bytes] | None:
    """Return what is before, in and after the only marked text."""
    before, found, rest = payload.partition(mark)
    text, quote, after = rest.partition(b'"')
    if not found or not quote or mark in after or not _is_plain(text):
        return None
    return before + mark, text, quote + after


def _is_plain(text: bytes) -> bool:
    if b'"' in text or b"\\" in text:
        return False
    try:
        return text.decode().isprintable()
    except UnicodeDecodeError:
        return False
