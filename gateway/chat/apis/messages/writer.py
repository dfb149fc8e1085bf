"""Deltas as messages of Anthropic's API and their events: one block after another. Pure."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from typing import Any

from gateway import json
from gateway.chat.apis import carried
from gateway.chat.apis.deltas import (
    CallArguments,
    CallStart,
    Delta,
    Finish,
    Text,
    Thinking,
    Writer,
)
from gateway.chat.apis.messages.format import STOP_REASONS
from gateway.chat.apis.openai.reader import THOUGHTS
from gateway.chat.context import ChatContext
from gateway.chat.errors import UpstreamServiceError
from gateway.chat.sse import frame
from gateway.chat.tokens import Usage
from gateway.json import text_of

CALL_OR_NOT = ("end_turn", "tool_use")
# What stands in a signature of thinking that a server of OpenAI's shape sent: the name of the
# field in which it gets the text back.
OWN_SIGNATURES = {f"{carried.OWN_SIGNATURE}{name}": name for name in THOUGHTS}
SIGNATURES = {name: signature for signature, name in OWN_SIGNATURES.items()}
# A delta of each kind of block: its type, and the member with its text.
DELTAS = {
    "text": ("text_delta", "text"),
    "thinking": ("thinking_delta", "thinking"),
    "tool_use": ("input_json_delta", "partial_json"),
}

Block = dict[str, Any]


class MessagesWriter(Writer):
    """A Writer. The reason why a message stopped waits for the usage, as the API has it."""

    text_mark = b'"text":"'

    def __init__(self, context: ChatContext) -> None:
        super().__init__(context)
        # The id is not the upstream's: Ollama has a thousand of them, and Claude Code takes
        # messages with one id for parts of the same message.
        key = f"msg_{secrets.token_hex(12)}"
        self._head = {
            "id": key,
            "type": "message",
            "role": "assistant",
            "model": context.request.model,
        }
        self._has_begun = False
        self._finish = Finish("stop")
        self._open: Block = {}
        self._call = -1  # the number of the open call
        self._texts: list[str] = []  # of the open block
        self._content: list[Block] = []  # the blocks that have ended

    def write(self, delta: Delta) -> Iterator[bytes]:
        if not self._has_begun:
            self._has_begun = True
            yield self._start_message()
        match delta:
            case Text(text):
                yield from self._add("text", text)
            case Thinking(block=None, text=text, field=field):
                yield from self._add("thinking", text, SIGNATURES.get(field, ""))
            case Thinking(block=dict(block)):
                yield from self._sign(block)
            case CallStart(number, key, name, extra):
                # Some servers leave out the ids.
                key = carried.call_id(key or f"call_{secrets.token_hex(8)}", extra)
                block = {"type": "tool_use", "id": key, "name": name, "input": {}}
                yield from self._start_block(block)
                self._call = number
            case CallArguments(number, text) if number == self._call:
                yield from self._send(text)
            case CallArguments(text=text) if text.strip():
                raise UpstreamServiceError("arguments of a call that is over")
            case Finish():
                self._finish = delta
                yield from self._end_block()

    def _start_message(self) -> bytes:
        usage = self.context.usage or Usage(self.context.estimated_prompt(), 0)
        nothing: Block = {"content": [], "stop_reason": None, "stop_sequence": None}
        message = {**self._head, **nothing, "usage": usage_of(usage)}
        return _event({"type": "message_start", "message": message})

    # ── Blocks ──────────────────────────────────────────────────────────────────────

    def _add(self, kind: str, text: str, signature: str = "") -> Iterator[bytes]:
        if self._open.get("type") != kind:
            more = {} if kind == "text" else {"signature": ""}
            yield from self._start_block({"type": kind, kind: "", **more})
        if signature:
            self._open["signature"] = signature
        yield from self._send(text)

    def _sign(self, block: Block) -> Iterator[bytes]:
        """End a block of thinking with its signature: its text, if any, came before.

        The signature is packed, so that this upstream gets it back, and no other one.
        """
        if block.get("type") == "redacted_thinking":
            data = carried.pack({"data": block.get("data")})
            yield from self._start_block({"type": "redacted_thinking", "data": data})
        else:
            text = "" if self._open.get("type") == "thinking" else block.get("thinking")
            proof = carried.pack({"signature": block.get("signature")})
            yield from self._add("thinking", text_of(text), proof)
        yield from self._end_block()

    def _start_block(self, block: Block) -> Iterator[bytes]:
        """Begin a block: the one before is over."""
        yield from self._end_block()
        self._open, self._texts = block, []
        yield self._event("content_block_start", content_block=block)

    def _send(self, text: str) -> Iterator[bytes]:
        if text:
            self._texts.append(text)
            kind, member = DELTAS[self._open["type"]]
            yield self._event("content_block_delta", delta={"type": kind, member: text})

    def _end_block(self) -> Iterator[bytes]:
        if not (block := self._open):
            return
        text, kind = "".join(self._texts), block["type"]
        if kind == "tool_use":
            if not text.strip():
                yield from self._send("{}")
            block["input"] = arguments_of(text)
        elif kind in DELTAS:
            block[kind] = text
        if signature := block.get("signature"):
            delta = {"type": "signature_delta", "signature": signature}
            yield self._event("content_block_delta", delta=delta)
        yield self._event("content_block_stop")
        self._content.append(block)
        self._open, self._call = {}, -1

    def _event(self, kind: str, **fields: Any) -> bytes:
        """Return an event of the open block."""
        return _event({"type": kind, "index": len(self._content), **fields})

    # ── The end ─────────────────────────────────────────────────────────────────────

    def end(self) -> Iterator[bytes]:
        yield from self._end_block()
        delta, usage = self._stop(), usage_of(self.context.reported())
        yield _event({"type": "message_delta", "delta": delta, "usage": usage})
        yield _event({"type": "message_stop"})

    def _stop(self) -> dict[str, Any]:
        """Return why a message stopped; some servers call a tool and say `stop`, or the reverse."""
        reason = STOP_REASONS.get(self._finish.reason, "end_turn")
        is_call = any(block["type"] == "tool_use" for block in self._content)
        if reason in CALL_OR_NOT:
            reason = CALL_OR_NOT[is_call]
        if reason == "end_turn" and self._finish.sequence:
            sequence = self._finish.sequence
            return {"stop_reason": "stop_sequence", "stop_sequence": sequence}
        return {"stop_reason": reason, "stop_sequence": None}

    def whole(self) -> dict[str, Any]:
        for _ in self._end_block():
            pass
        usage = usage_of(self.context.reported())
        return {**self._head, "content": self._content, **self._stop(), "usage": usage}


def _event(event: Mapping[str, Any]) -> bytes:
    """Return an event: its type is its name, too."""
    return frame(json.dumps(event), event["type"].encode())


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


def arguments_of(value: Any) -> Mapping[str, Any]:
    """Return arguments as an object, which the API requires.

    A model may write anything, and stop anywhere: what is no object becomes an empty one.
    """
    if isinstance(value, str):
        try:
            value = json.loads(value.encode("utf-8", "surrogatepass"))
        except ValueError:
            return {}
    return value if isinstance(value, dict) else {}
