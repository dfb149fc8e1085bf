"""Chat completions as messages of Anthropic's Messages API. Pure."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from typing import Any

from gateway.chat.core.usage_tokens import Usage
from gateway.chat.operations.messages.call_ids import CallIds
from gateway.chat.operations.messages.turns import OWN_SIGNATURES
from gateway.chat.upstreams.turns import THINKING, arguments_of

STOP_REASONS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "content_filter": "refusal",
}
SIGNATURES = {name: signature for signature, name in OWN_SIGNATURES.items()}

Block = dict[str, Any]


def message(
    completion: Mapping[str, Any], *, model: str, ids: CallIds, usage: Usage
) -> dict[str, Any]:
    """Return a message with what the first choice of a completion holds."""
    choices = completion.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    choice = first if isinstance(first, dict) else {}
    said = choice.get("message")
    blocks = list(_blocks(said if isinstance(said, dict) else {}, ids))
    is_call = any(block["type"] == "tool_use" for block in blocks)
    return {
        **head(completion.get("id"), model),
        "content": blocks,
        **stop(choice, is_call=is_call),
        "usage": usage_of(usage),
    }


def head(upstream_id: Any, model: str) -> dict[str, Any]:
    """Return the first members of a message."""
    has_id = isinstance(upstream_id, str) and 0 < len(upstream_id) <= 200
    key = upstream_id if has_id else secrets.token_hex(12)
    return {"id": f"msg_{key}", "type": "message", "role": "assistant", "model": model}


def stop(choice: Mapping[str, Any], *, is_call: bool) -> dict[str, Any]:
    """Return why a message stopped; some servers call a tool and say `stop`."""
    reason = STOP_REASONS.get(str(choice.get("finish_reason")), "end_turn")
    # vLLM names the sequence at which it stopped.
    sequence = choice.get("stop_reason")
    if reason == "end_turn" and is_call:
        reason = "tool_use"
    elif reason == "end_turn" and isinstance(sequence, str):
        return {"stop_reason": "stop_sequence", "stop_sequence": sequence}
    return {"stop_reason": reason, "stop_sequence": None}


def usage_of(usage: Usage) -> dict[str, Any]:
    """Return usage as the API reports it, which counts cached input apart."""
    cached, written = usage.cached_tokens, usage.cache_write_tokens
    details = {"thinking_tokens": usage.reasoning_tokens}
    return {
        "input_tokens": usage.prompt_tokens - cached - written,
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": cached,
        "output_tokens": usage.completion_tokens or 0,
        **({"output_tokens_details": details} if usage.reasoning_tokens else {}),
    }


def _blocks(said: Mapping[str, Any], ids: CallIds) -> Iterator[Block]:
    yield from _thinking(said)
    for text in (*texts_of(said.get("content")), said.get("refusal")):
        if isinstance(text, str) and text:
            yield {"type": "text", "text": text}
    calls = said.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        match call:
            case {"function": {"name": str(name)} as function}:
                key = call.get("id")
                yield {
                    "type": "tool_use",
                    "id": ids.new(key if isinstance(key, str) else ""),
                    "name": name,
                    "input": arguments_of(function.get("arguments")),
                }


def _thinking(said: Mapping[str, Any]) -> Iterator[Block]:
    """Yield the blocks of thinking that carry a signature, else the text that an upstream sent."""
    blocks = said.get("thinking_blocks")
    if isinstance(blocks, list) and blocks:
        for block in blocks:
            if isinstance(block, dict) and block.get("type") in THINKING:
                yield {name: v for name, v in block.items() if name != "index"}
        return
    for name, signature in SIGNATURES.items():
        text = said.get(name)
        if isinstance(text, str) and text:
            yield {"type": "thinking", "thinking": text, "signature": signature}
            return


def texts_of(content: Any) -> Iterator[str]:
    """Yield the texts of a message or delta, which Mistral sends as a list of parts."""
    if isinstance(content, str):
        yield content
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict) and isinstance(part.get("text"), str):
            yield part["text"]
