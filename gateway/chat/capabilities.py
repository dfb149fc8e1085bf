"""The capabilities that a request needs of a model endpoint. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gateway.chat.core.errors import (
    UnsupportedInferenceTypeError,
    UnsupportedRequestError,
)
from gateway.chat.core.model_request import ModelRequest
from gateway.configuration.shapes import ModelEntry

# Whether a body needs a capability.
Need = Callable[[Mapping[str, Any]], bool]


def require(
    endpoint: ModelEntry,
    inference_type: str,
    request: ModelRequest,
    needs: Mapping[str, Need],
) -> None:
    """Raise UnsupportedInferenceTypeError, or UnsupportedRequestError for a lacking capability."""
    if endpoint.inference_type != inference_type:
        raise UnsupportedInferenceTypeError(endpoint.inference_type)
    if endpoint.supports is None:
        return
    for name, is_needed in needs.items():
        if name not in endpoint.supports and is_needed(request.body):
            raise UnsupportedRequestError(name)


def _has_part(body: Mapping[str, Any], part_type: str) -> bool:
    messages = body.get("messages")
    return isinstance(messages, list) and any(
        isinstance(part, dict) and part.get("type") == part_type
        for message in messages
        if isinstance(message, dict) and isinstance(message.get("content"), list)
        for part in message["content"]
    )


def _has_format(body: Mapping[str, Any], format_type: str) -> bool:
    response_format = body.get("response_format")
    return (
        isinstance(response_format, dict) and response_format.get("type") == format_type
    )


def _needs_audio(body: Mapping[str, Any]) -> bool:
    modalities = body.get("modalities")
    wants_audio = isinstance(modalities, list) and "audio" in modalities
    return wants_audio or bool(body.get("audio")) or _has_part(body, "input_audio")


def _needs_reasoning(body: Mapping[str, Any]) -> bool:
    thinking = body.get("thinking")
    is_thinking = isinstance(thinking, dict) and thinking.get("type") != "disabled"
    wants_effort = body.get("reasoning_effort") not in (None, "none")
    return is_thinking or wants_effort or bool(body.get("reasoning"))


# The values of `supports`, and whether a body of OpenAI's shape needs them.
CAPABILITIES: Mapping[str, Need] = {
    "streaming": lambda body: body.get("stream") is True,
    "tools": lambda body: bool(body.get("tools") or body.get("functions")),
    "vision": lambda body: _has_part(body, "image_url"),
    "audio": _needs_audio,
    "json_object": lambda body: _has_format(body, "json_object"),
    "json_schema": lambda body: _has_format(body, "json_schema"),
    "reasoning": _needs_reasoning,
}
