"""Chat completions as messages of Anthropic's Messages API. Pure."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from typing import Any

from gateway.chat.core import answers
from gateway.chat.core.chunks import first_choice
from gateway.chat.operations.carried import CALL, DETAILS
from gateway.chat.operations.messages.call_ids import CallIds
from gateway.chat.operations.messages.turns import OWN_SIGNATURES
from gateway.chat.tokens import Usage
from gateway.chat.upstreams.turns import THINKING, arguments_of
from gateway.json import objects

STOP_REASONS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
}
CALL_OR_NOT = ("end_turn", "tool_use")
SIGNATURES = {name: signature for signature, name in OWN_SIGNATURES.items()}

Block = dict[str, Any]


def message(
    completion: Mapping[str, Any], *, model: str, ids: CallIds, usage: Usage
) -> dict[str, Any]:
    """Return a message with what the first choice of a completion holds.

    Raises as answers.finish_reason() does.
    """
    choice = first_choice(completion)
    blocks = list(_blocks(answers.said_in(choice), ids))
    is_call = any(block["type"] == "tool_use" for block in blocks)
    return {
        **head(model),
        "content": blocks,
        **stop(answers.finish_reason(choice), choice, is_call=is_call),
        "usage": usage_of(usage),
    }


def head(model: str) -> dict[str, Any]:
    """Return the first members of a message.

    The id is not the upstream's: Ollama has a thousand of them, and Claude Code takes messages
    with one id for parts of the same message.
    """
    key = f"msg_{secrets.token_hex(12)}"
    return {"id": key, "type": "message", "role": "assistant", "model": model}


def stop(
    finish_reason: str | None, choice: Mapping[str, Any], *, is_call: bool
) -> dict[str, Any]:
    """Return why a message stopped; some servers call a tool and say `stop`, or the reverse."""
    reason = STOP_REASONS.get(finish_reason or "", "end_turn")
    # vLLM names the sequence at which it stopped.
    sequence = choice.get("stop_reason")
    if reason in CALL_OR_NOT:
        reason = CALL_OR_NOT[is_call]
    if reason == "end_turn" and isinstance(sequence, str):
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
    yield from _thinking(said, ids)
    for text in (*answers.texts_of(said.get("content")), said.get("refusal")):
        if isinstance(text, str) and text:
            yield {"type": "text", "text": text}
    for call in answers.calls_in(said):
        name, arguments = answers.function_of(call)
        if name:
            yield {
                "type": "tool_use",
                "id": ids.new(answers.key_of(call), call.get(CALL)),
                "name": name,
                "input": arguments_of(arguments),
            }


def _thinking(said: Mapping[str, Any], ids: CallIds) -> Iterator[Block]:
    """Yield the blocks of thinking that carry a signature, else the text that an upstream sent."""
    blocks = said.get("thinking_blocks")
    if isinstance(blocks, list) and blocks:
        for block in objects(blocks):
            if block.get("type") in THINKING:
                yield {name: v for name, v in block.items() if name != "index"}
        return
    text, name = answers.thought_in(said)
    details = said.get(DETAILS)
    if text or details:
        yield {
            "type": "thinking",
            "thinking": text,
            "signature": signature_of(name, details, ids),
        }


def signature_of(name: str, details: Any, ids: CallIds) -> str:
    """Return what stands in the signature of thinking, so that its server gets it back.

    `name` is the field that the text came in, `details` the whole `reasoning_details`.
    """
    packed = ids.carrier.encrypted_content({DETAILS: details}) if details else None
    return packed or SIGNATURES.get(name, "")
