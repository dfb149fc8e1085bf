"""The Response object: what stays the same while it grows, its items, and its usage. Pure."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from typing import Any

import orjson

from gateway import json
from gateway.chat.operations.responses.tools import Tool, input_of
from gateway.chat.tokens import Usage, estimate
from gateway.json import mapping, objects

Item = dict[str, Any]

# A stream repeats these in three events; longer ones are left out, so that it stays small.
MAX_REPEATED_BYTES = 64 * 1024
REPEATED = ("instructions", "tools")
# Fields of the request that a response repeats, with their values when they are missing.
ECHOED: Mapping[str, Any] = {
    "instructions": None,
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
    "tools": [],
    "top_logprobs": None,
    "top_p": None,
    "user": None,
}
NO_ARGUMENTS = "{}"
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
            **echoed,
        }

    def for_stream(self) -> Skeleton:
        """Leave out what is too long to be repeated; write the rest once."""
        for name in REPEATED:
            if len(json.dumps(self._tail[name])) > MAX_REPEATED_BYTES:
                self._tail[name] = ECHOED[name]
        self._tail = {
            name: orjson.Fragment(json.dumps(value))
            for name, value in self._tail.items()
        }
        return self

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
        self, reason: str | None, output: list[Item], usage: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        """Return the response after a finish reason of a chat completion."""
        if reason not in INCOMPLETE:
            return self.response("completed", output, usage)
        details = {"reason": INCOMPLETE[reason]}
        return self.response("incomplete", output, usage, incomplete_details=details)


def usage_of(usage: Usage, characters: int) -> dict[str, Any]:
    """Return the usage as the Responses API writes it.

    The completion is estimated from its characters if the upstream has not counted it, since
    clients need a number.
    """
    if usage.completion_tokens is None:
        usage = usage.with_completion(estimate(characters))
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


def text_part(text: str) -> Item:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def refusal_part(text: str) -> Item:
    return {"type": "refusal", "refusal": text}


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


def citations(annotations: Any) -> list[Item]:
    given = [item.get("url_citation") for item in objects(annotations)]
    return [
        {
            "type": "url_citation",
            "url": str(one.get("url", "")),
            "title": str(one.get("title", "")),
            "start_index": _integer(one.get("start_index")),
            "end_index": _integer(one.get("end_index")),
        }
        for one in objects(given)
    ]


def _integer(value: Any) -> int:
    return value if isinstance(value, int) else 0


def token_logprobs(logprobs: Any) -> list[Item]:
    """Return the log probabilities of a choice of a chat completion."""
    tokens = objects(mapping(logprobs).get("content"))
    return [_logprob(token, with_top=True) for token in tokens]


def _logprob(token: Mapping[str, Any], *, with_top: bool) -> Item:
    top = [_logprob(one, with_top=False) for one in objects(token.get("top_logprobs"))]
    number = token.get("logprob")
    return {
        "token": str(token.get("token", "")),
        "bytes": token.get("bytes") or [],
        "logprob": number if isinstance(number, int | float) else 0.0,
        **({"top_logprobs": top} if with_top else {}),
    }
