"""What a model endpoint can be asked for. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gateway.chat.errors import UnsupportedInferenceTypeError, UnsupportedRequestError
from gateway.chat.model_request import ModelRequest
from gateway.configuration.shapes import ModelEntry


def require(endpoint: ModelEntry, inference_type: str, request: ModelRequest) -> None:
    """Raise UnsupportedInferenceTypeError or UnsupportedRequestError if it cannot serve this."""
    if endpoint.inference_type != inference_type:
        raise UnsupportedInferenceTypeError(endpoint.inference_type)
    if endpoint.supports is None:
        return
    for name, is_asked in CAPABILITIES.items():
        if name not in endpoint.supports and is_asked(request):
            raise UnsupportedRequestError(name)


def _has_part(body: Mapping[str, Any], kind: str) -> bool:
    messages = body.get("messages")
    return isinstance(messages, list) and any(
        isinstance(part, dict) and part.get("type") == kind
        for message in messages
        if isinstance(message, dict) and isinstance(message.get("content"), list)
        for part in message["content"]
    )


def _has_format(body: Mapping[str, Any], kind: str) -> bool:
    wanted = body.get("response_format")
    return isinstance(wanted, dict) and wanted.get("type") == kind


def _asks_for_audio(body: Mapping[str, Any]) -> bool:
    modalities = body.get("modalities")
    wants_audio = isinstance(modalities, list) and "audio" in modalities
    return wants_audio or bool(body.get("audio")) or _has_part(body, "input_audio")


def _asks_for_reasoning(body: Mapping[str, Any]) -> bool:
    thinking = body.get("thinking")
    thinks = isinstance(thinking, dict) and thinking.get("type") != "disabled"
    wants_effort = body.get("reasoning_effort") not in (None, "none")
    return thinks or wants_effort or bool(body.get("reasoning"))


# Which requests need what `supports` may name.
CAPABILITIES: dict[str, Callable[[ModelRequest], bool]] = {
    "streaming": lambda it: it.stream,
    "tools": lambda it: bool(it.body.get("tools") or it.body.get("functions")),
    "vision": lambda it: _has_part(it.body, "image_url"),
    "audio": lambda it: _asks_for_audio(it.body),
    "json_object": lambda it: _has_format(it.body, "json_object"),
    "json_schema": lambda it: _has_format(it.body, "json_schema"),
    "reasoning": lambda it: _asks_for_reasoning(it.body),
}
