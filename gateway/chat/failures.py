"""The failures that upstreams report as JSON. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from gateway import json
from gateway.chat.errors import (
    TOO_MANY_REQUESTS,
    ChatError,
    RefusedError,
    UpstreamError,
    UpstreamServiceError,
)
from gateway.json import mapping, objects, text_of

REFUSAL_STATUSES = frozenset({400, 413, 422})
REFUSED = "The upstream refused the request."
PASSED_ON = ("type", "param", "code")
REASONS = ("message", "detail", "error")
# Codes for an account that is used up, until its operator pays.
NO_CREDIT = frozenset({"insufficient_quota", "billing_error"})
# How OpenAI and llama.cpp call a request that is too long, and how it reads elsewhere:
# Anthropic, vLLM and Mistral, Gemini.
CONTEXT_CODES = frozenset({"context_length_exceeded", "exceed_context_size_error"})
CONTEXT_TEXT = re.compile(
    r"prompt is too long|maximum context length|max_model_len|context (length|window)"
    r"|exceeds? the (available context|maximum number of tokens)"
    r"|too large for model with \d+ maximum context",
    re.IGNORECASE,
)
# Types and codes of failures without a status that another target would have, too.
REFUSALS = CONTEXT_CODES | {
    *("invalid_request_error", "request_too_large", "BadRequestError"),
    *("invalid_prompt", "invalid_image", "cyber_policy"),
}
LIMIT = "rate_limit_exceeded"
STATUS = re.compile("[1-9][0-9]{2}")
MAX_FAULTS = 10
MAX_CHARACTERS = 1000  # of a body whose shape is not known


def is_failure(value: Any) -> bool:
    """Return True if JSON that came with a success says that it is an error."""
    if isinstance(value, list):  # Gemini's errors are in a list
        return bool(value) and is_failure(value[0])
    return isinstance(value, dict) and (
        bool(value.get("error"))
        or "error" in (value.get("object"), value.get("type"))
        or any(map(_has_failed, objects(value.get("choices"))))
    )


def _has_failed(choice: Mapping[str, Any]) -> bool:
    return bool(choice.get("error")) or choice.get("finish_reason") == "error"


def failure_in(value: Any, *, status: int = 0) -> ChatError:
    """Return the failure that an upstream's JSON, or its text, stands for.

    400, 413 and 422 refuse the request, and the caller gets the upstream's reason; every
    other status is a failure of the upstream. `status` is the response's; 0 for a success.
    """
    if is_failure(value) and isinstance(value, list):
        value = value[0]
    fields = _error(value)
    code = str(fields.get("code"))
    known = status or (int(code) if STATUS.fullmatch(code) else 0)
    reason = (_reason(fields) or _text(value)).strip()
    if isinstance(value, str):
        reason = reason[:MAX_CHARACTERS]
    passed = {name: fields[name] for name in PASSED_ON if _is_name(fields.get(name))}
    names = [str(fields[name]) for name in ("type", "code") if fields.get(name)]
    if not known and LIMIT in names:
        known = TOO_MANY_REQUESTS
    if known in REFUSAL_STATUSES or (not known and REFUSALS & {*names}):
        return RefusedError(reason or REFUSED, upstream=UpstreamError(fields=passed))
    source = f"HTTP {status}" if status else "an error in the answer"
    text = " ".join((source, *names[:1]))[:200]
    upstream = UpstreamError(known, passed, reason=reason[:MAX_CHARACTERS])
    return UpstreamServiceError(text, upstream=upstream)


def is_too_long(error: BaseException) -> bool:
    """Return True if an upstream refused a request because it exceeds the model's context."""
    if not isinstance(error, RefusedError):
        return False
    fields = error.upstream.fields
    if CONTEXT_CODES & {fields.get("code"), fields.get("type")}:
        return True
    return CONTEXT_TEXT.search(str(error)[:MAX_CHARACTERS]) is not None


def _error(value: Any) -> Mapping[str, Any]:
    """Return the object that describes the error: within the JSON, or all of it."""
    fields = mapping(value)
    inner = [item.get("error") for item in (fields, *objects(fields.get("choices")))]
    return next((item for item in inner if item and isinstance(item, dict)), fields)


def _is_name(value: Any) -> bool:
    """Return True for what names a failure; `error` is the type of an event."""
    is_short = isinstance(value, str) and 0 < len(value) <= 200 and value != "error"
    return is_short and value.isprintable()


def _reason(fields: Mapping[str, Any]) -> str:
    """Return the text of an error; FastAPI has a list of faults, each with its place."""
    for name in REASONS:
        given = fields.get(name)
        faults = objects(given[:MAX_FAULTS] if isinstance(given, list) else ())
        text = text_of(given) or "; ".join(filter(None, map(_fault, faults)))
        if text.strip():
            return text
    return ""


def _fault(fault: Mapping[str, Any]) -> str:
    place, text = fault.get("loc"), fault.get("msg")
    path = ".".join(map(str, place)) if isinstance(place, list) else ""
    return ": ".join(part for part in (path, text) if part and isinstance(part, str))


def _text(value: Any) -> str:
    """Return what the upstream sent, as text; nothing for what is empty or nested too deeply."""
    if isinstance(value, str) or not value:
        return value or ""
    try:
        return json.dumps(value).decode()
    except ValueError:
        return ""
