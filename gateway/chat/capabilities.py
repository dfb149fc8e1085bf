"""What a model endpoint can be asked for. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gateway.chat.errors import UnsupportedInferenceTypeError, UnsupportedRequestError
from gateway.chat.requests import ModelRequest
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


def _asks_for_images(body: Mapping[str, Any]) -> bool:
    messages = body.get("messages")
    return isinstance(messages, list) and any(
        isinstance(part, dict) and part.get("type") == "image_url"
        for message in messages
        if isinstance(message, dict) and isinstance(message.get("content"), list)
        for part in message["content"]
    )


def _asks_for_json(body: Mapping[str, Any]) -> bool:
    wanted = body.get("response_format")
    return isinstance(wanted, dict) and wanted.get("type") not in (None, "text")


# What `supports` may name, and which requests need it.
CAPABILITIES: dict[str, Callable[[ModelRequest], bool]] = {
    "streaming": lambda it: it.stream,
    "tools": lambda it: bool(it.body.get("tools") or it.body.get("functions")),
    "images": lambda it: _asks_for_images(it.body),
    "json": lambda it: _asks_for_json(it.body),
}
