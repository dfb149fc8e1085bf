"""The capabilities that a request needs of a model endpoint. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from gateway.chat.errors import (
    UnsupportedInferenceTypeError,
    UnsupportedRequestError,
)
from gateway.chat.request import ModelRequest
from gateway.configuration.shapes import ModelEntry
from gateway.json import member, parts_in

if TYPE_CHECKING:
    from gateway.chat.apis.base import Operation

# Whether a body needs a capability.
Need = Callable[[Mapping[str, Any]], bool]


def require(endpoint: ModelEntry, operation: Operation, request: ModelRequest) -> None:
    """Raise UnsupportedInferenceTypeError, or UnsupportedRequestError for a lacking capability."""
    if endpoint.inference_type != operation.inference_type:
        raise UnsupportedInferenceTypeError(endpoint.inference_type)
    if endpoint.supports is None:
        return
    for name, is_needed in operation.capabilities.items():
        if name not in endpoint.supports and is_needed(request.body):
            raise UnsupportedRequestError(name)


def _has_part(body: Mapping[str, Any], *types: str) -> bool:
    parts = parts_in(body.get("messages"), body.get("input"))
    return any(part.get("type") in types for part in parts)


def _has_format(body: Mapping[str, Any], format_type: str) -> bool:
    return any(member(body, *path, "type") == format_type for path in FORMATS)


def _needs_audio(body: Mapping[str, Any]) -> bool:
    modalities = body.get("modalities")
    wants_audio = isinstance(modalities, list) and "audio" in modalities
    return wants_audio or bool(body.get("audio")) or _has_part(body, "input_audio")


def _needs_reasoning(body: Mapping[str, Any]) -> bool:
    thinking = body.get("thinking")
    is_thinking = isinstance(thinking, dict) and thinking.get("type") != "disabled"
    wants_effort = body.get("reasoning_effort") not in (None, "none")
    return is_thinking or wants_effort or bool(body.get("reasoning"))


# Where the three shapes have the format of an answer: OpenAI's two, and Anthropic's.
FORMATS = (
    ("response_format",),
    ("text", "format"),
    ("output_config", "format"),
)
# The values of `supports`, and whether a body needs them. `reasoning` is that of a chat request.
CAPABILITIES: dict[str, Need] = {
    "streaming": lambda body: body.get("stream") is True,
    "tools": lambda body: bool(body.get("tools") or body.get("functions")),
    "vision": lambda body: _has_part(body, "image_url", "image", "input_image"),
    "audio": _needs_audio,
    "json_object": lambda body: _has_format(body, "json_object"),
    "json_schema": lambda body: _has_format(body, "json_schema"),
    "reasoning": _needs_reasoning,
}
