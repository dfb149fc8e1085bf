"""The capabilities that a request of Anthropic's shape needs. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gateway.chat.capabilities import Need


def _blocks(body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the blocks of the messages, and those within results of tools."""
    messages = body.get("messages")
    left = [*messages] if isinstance(messages, list) else []
    while left:
        item = left.pop()
        if isinstance(item, dict):
            yield item
            content = item.get("content")
            left += content if isinstance(content, list) else []


def _needs_vision(body: Mapping[str, Any]) -> bool:
    return any(block.get("type") == "image" for block in _blocks(body))


def _needs_schema(body: Mapping[str, Any]) -> bool:
    config = body.get("output_config")
    wanted = config.get("format") if isinstance(config, dict) else None
    return bool(wanted or body.get("output_format"))


def _needs_reasoning(body: Mapping[str, Any]) -> bool:
    """Adaptive thinking and an effort leave to the model whether it thinks."""
    thinking = body.get("thinking")
    return isinstance(thinking, dict) and thinking.get("type") == "enabled"


NEEDS: Mapping[str, Need] = {
    "streaming": lambda body: body.get("stream") is True,
    "tools": lambda body: bool(body.get("tools")),
    "vision": _needs_vision,
    "json_schema": _needs_schema,
    "reasoning": _needs_reasoning,
}
