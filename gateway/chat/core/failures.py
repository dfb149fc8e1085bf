"""The failures that upstreams report as JSON, in the shapes that servers are known to use. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from gateway import json
from gateway.chat.errors import (
    ChatError,
    InvalidRequestError,
    InvalidValueError,
    UpstreamError,
    UpstreamServiceError,
)
from gateway.json import mapping, objects

REFUSAL_STATUSES = frozenset({400, 413, 422})
REFUSAL_TYPES = frozenset(
    {"invalid_request_error", "request_too_large", "BadRequestError", "validation"}
)
REFUSED = "The upstream refused the request."
PASSED_ON = ("type", "param", "code")
STATUSES = ("code", "status", "status_code", "statusCode", "http_status")
# The fields that give a reason, the most exact first. `error` alone often names only a kind.
REASONS = (
    *("message", "detail", "errors", "error_description", "msg", "error_message"),
    *("error_msg", "errorMessage", "status_msg", "Message", "title", "error"),
)
# Those that may hold, beside a general text, what is wrong with each part of the request.
PARTS = ("detail", "errors", "details")
# How OpenAI and llama.cpp call a request that is too long, and how it reads elsewhere:
# Anthropic, vLLM and Mistral, Gemini.
CONTEXT_CODES = frozenset({"context_length_exceeded", "exceed_context_size_error"})
CONTEXT_TEXT = re.compile(
    r"prompt is too long|maximum context length|max_model_len|context (length|window)"
    r"|exceeds? the (available context|maximum number of tokens)"
    r"|too large for model with \d+ maximum context",
    re.IGNORECASE,
)
MAX_REASONS = 10
MAX_DEPTH = 8
MAX_CHARACTERS = 1000  # of a body whose shape is not known


def is_failure(value: Any) -> bool:
    """Return True if JSON that came with a success says that it is an error."""
    if isinstance(value, list):  # Gemini's errors are in a list
        return bool(value) and is_failure(value[0])
    return isinstance(value, dict) and (
        bool(value.get("error"))
        or "error" in (value.get("object"), value.get("type"))
        or value.get("success") is False
        or bool(mapping(value.get("base_resp")).get("status_code"))
    )


def replaces_answer(value: Any, list_key: str = "choices") -> bool:
    """Return True if a response or chunk reports a failure in place of its list."""
    fields = mapping(value)
    answer = fields.get(list_key)
    if is_failure(value) or (
        isinstance(answer, list) and any(map(_has_failed, answer))
    ):
        return True
    has_answer = answer or isinstance(fields.get("usage"), dict)
    return not has_answer and any(fields.get(name) for name in REASONS)


def _has_failed(choice: Any) -> bool:
    return isinstance(choice, dict) and (
        bool(choice.get("error")) or choice.get("finish_reason") == "error"
    )


def failure_in(
    value: Any, *, refusal: type[ChatError] = InvalidValueError, status: int = 0
) -> ChatError:
    """Return the failure that an upstream's JSON, or its text, stands for.

    400, 413 and 422 refuse the request, and the caller gets the upstream's reason; every
    other status is a failure of the upstream. `status` is the response's; 0 for a success.
    """
    if is_failure(value) and isinstance(value, list):
        value = value[0]
    error = _error(value)
    fields = mapping(error)
    statuses = {status} if status else _statuses(fields) or _statuses(mapping(value))
    kind = fields.get("type") or fields.get("error_type")
    failure: ChatError
    if statuses & REFUSAL_STATUSES or (not statuses and str(kind) in REFUSAL_TYPES):
        failure = refusal(_whole_reason(error, value) or REFUSED)
        failure.upstream = UpstreamError(fields=_passed_on(fields))
    else:
        source = f"HTTP {status}" if status else "an error in the answer"
        failure = UpstreamServiceError(
            f"{source} {kind or fields.get('code') or ''}".strip()[:200]
        )
        failure.upstream = UpstreamError(max(statuses, default=0), _passed_on(fields))
    return failure


def is_too_long(error: BaseException) -> bool:
    """Return True if an upstream refused a request because it exceeds the model's context."""
    if not isinstance(error, InvalidValueError | InvalidRequestError):
        return False
    fields = error.upstream.fields
    if CONTEXT_CODES & {fields.get("code"), fields.get("type")}:
        return True
    return CONTEXT_TEXT.search(str(error)[:MAX_CHARACTERS]) is not None


def _error(value: Any) -> Any:
    """Return the object that describes the error: within the JSON, or all of it."""
    fields = mapping(value)
    inner = objects(fields.get("choices"))
    errors = [item.get("error") for item in (fields, *inner)]
    candidates = (*errors, fields.get("base_resp"))
    return next((item for item in candidates if item and isinstance(item, dict)), value)


def _statuses(error: Mapping[str, Any]) -> set[int]:
    """Return the HTTP statuses that an error object names."""
    texts = (str(error.get(name)) for name in STATUSES)
    return {
        int(text)
        for text in texts
        if text.isascii() and text.isdigit() and len(text) == 3
    }


def _passed_on(fields: Mapping[str, Any]) -> dict[str, str]:
    """Return the fields of an error that OpenAI's clients read."""
    return {name: fields[name] for name in PASSED_ON if _is_name(fields.get(name))}


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 200 and value.isprintable()


def _whole_reason(error: Any, value: Any) -> str:
    """Return the reason of an error, with the parts that stand beside it in the JSON."""
    reason, fields = _reason(error), mapping(value)
    if not reason:
        return _reason(value) or _text(value)[:MAX_CHARACTERS]
    beside = {name: _reason_in(fields, name, MAX_DEPTH) for name in PARTS}
    return _with_parts(fields, reason, beside)


def _reason(value: Any, depth: int = MAX_DEPTH) -> str:
    """Return the text of an error, or of several, with the place of each if it has one."""
    if isinstance(value, str):
        return value if value.strip() else ""
    if isinstance(value, list) and depth:
        return _joined(_reason(item, depth - 1) for item in value[:MAX_REASONS])
    if not isinstance(value, dict) or not depth:
        return ""
    is_nested = isinstance(value.get("error"), dict | list)
    names = ("error",) if is_nested else ()
    reasons = {n: _reason_in(value, n, depth) for n in (*names, *REASONS, *PARTS)}
    reason = _with_parts(value, next(filter(None, reasons.values()), ""), reasons)
    return _with_place(value, _with_origin(value, reason)) if reason else ""


def _reason_in(error: Mapping[str, Any], name: str, depth: int) -> str:
    """Return the reason in a field; `errors` may be an object with the errors of each field."""
    value = error.get(name)
    if name != "errors" or not isinstance(value, dict):
        return _reason(value, depth - 1)
    is_by_field = all(isinstance(item, list) for item in value.values())
    reason = "" if is_by_field else _reason(value, depth - 1)
    return reason or _by_field(value, depth)


def _by_field(errors: Mapping[str, Any], depth: int) -> str:
    items = islice(errors.items(), MAX_REASONS)
    reasons = ((name, _reason(value, depth - 1)) for name, value in items)
    return _joined(f"{name}: {reason}" for name, reason in reasons if reason)


def _with_parts(
    error: Mapping[str, Any], reason: str, reasons: Mapping[str, str]
) -> str:
    """Put the reasons of the parts of a request behind one that does not have them."""
    for name in PARTS:
        if isinstance(error.get(name), dict | list) and reasons[name] not in reason:
            reason = _joined((reason, reasons[name]))
    return reason


def _with_place(error: Mapping[str, Any], reason: str) -> str:
    """Put pydantic's `loc` before a reason, as `body.messages: Field required`."""
    place = error.get("loc")
    path = ".".join(map(str, place[:MAX_REASONS])) if isinstance(place, list) else ""
    return f"{path}: {reason}" if path else reason


def _with_origin(error: Mapping[str, Any], reason: str) -> str:
    """Put the text of the provider that OpenRouter asked behind its own."""
    raw = mapping(error.get("metadata")).get("raw")
    return f"{reason}: {raw}" if isinstance(raw, str) and raw.strip() else reason


def _joined(reasons: Iterable[str]) -> str:
    return "; ".join(filter(None, reasons))


def _text(value: Any) -> str:
    """Return what the upstream sent, as text; nothing for what is empty or nested too deeply."""
    if isinstance(value, str) or not value:
        return value or ""
    try:
        return json.dumps(value).decode()
    except ValueError:
        return ""
