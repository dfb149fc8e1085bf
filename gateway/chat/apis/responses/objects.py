"""The Response object: what stays the same while it grows, its items, and its usage. Pure."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from typing import Any

from gateway.chat.apis.responses.tools import Tool, input_of
from gateway.chat.tokens import Usage

Item = dict[str, Any]

# Fields of the request that a response repeats, with their values when they are missing. Those
# that may be long are not among them: a stream repeats the object in three events.
ECHOED: Mapping[str, Any] = {
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "prompt_cache_key": None,
    "reasoning": {"effort": None, "summary": None},
    "safety_identifier": None,
    "service_tier": None,
    "temperature": None,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "top_logprobs": None,
    "top_p": None,
    "user": None,
}
INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}


class Skeleton:
    """The parts of a response that do not depend on its answer."""

    def __init__(self, body: Mapping[str, Any], model: str) -> None:
        self.key = f"{random.getrandbits(128):032x}"
        self._head = {
            "id": f"resp_{self.key}",
            "object": "response",
            "created_at": int(time.time()),
        }
        echoed = {
            name: default if body.get(name) is None else body[name]
            for name, default in ECHOED.items()
        }
        self._tail = {
            "background": False,
            "model": model,
            "previous_response_id": None,
            "store": False,
            "truncation": "disabled",
            "instructions": None,
            "tools": [],
            **echoed,
        }

    def item_id(self, prefix: str, number: int) -> str:
        return f"{prefix}_{self.key}{number:04x}"

    def response(
        self,
        status: str,
        output: list[Item],
        usage: Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> dict[str, Any]:
        done = {"completed_at": int(time.time())} if status == "completed" else {}
        return {
            **self._head,
            "status": status,
            **done,
            "error": None,
            "incomplete_details": None,
            "output": output,
            **self._tail,
            "usage": usage,
            **fields,
        }

    def ended(
        self, reason: str, output: list[Item], usage: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        """Return the response after a finish reason of a chat completion."""
        if reason not in INCOMPLETE:
            return self.response("completed", output, usage)
        details = {"reason": INCOMPLETE[reason]}
        return self.response("incomplete", output, usage, incomplete_details=details)


def usage_of(usage: Usage) -> dict[str, Any]:
    """Return the usage as the Responses API writes it."""
    completion_tokens = usage.completion_tokens or 0
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {
            "cached_tokens": usage.cached_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
        },
        "output_tokens": completion_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.prompt_tokens + completion_tokens,
    }


def reasoning_item(key: str, text: str, encrypted: str | None) -> Item:
    summary = [{"type": "summary_text", "text": text}] if text else []
    item: Item = {"id": key, "type": "reasoning", "summary": summary}
    return {**item, "encrypted_content": encrypted} if encrypted else item


def message_item(key: str, content: list[Item], status: str = "completed") -> Item:
    return {
        "id": key,
        "type": "message",
        "status": status,
        "role": "assistant",
        "content": content,
    }


def part_of(kind: str, text: str) -> Item:
    """Return a part of a message: an `output_text` or a `refusal`."""
    if kind == "refusal":
        return {"type": "refusal", "refusal": text}
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def call_item(
    key: str, call_id: str, tool: Tool, arguments: str, status: str = "completed"
) -> Item:
    """Return a call in the form in which the client declared the tool."""
    if tool.is_custom:
        named: Item = {"type": "custom_tool_call", "input": input_of(arguments)}
    else:
        named = {"type": "function_call", "arguments": arguments}
    space = {"namespace": tool.namespace} if tool.namespace else {}
    return {
        "id": key,
        "status": status,
        "call_id": call_id,
        "name": tool.name,
        **space,
        **named,
    }
