"""Deltas as chat completions and their chunks. Pure."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping
from typing import Any

from gateway.chat.apis.deltas import (
    CallArguments,
    CallStart,
    Delta,
    Finish,
    Text,
    Thinking,
    Writer,
)
from gateway.chat.apis.openai import chunks
from gateway.chat.apis.openai.chunks import Template
from gateway.chat.context import ChatContext
from gateway.chat.sse import DONE, frame


class ChatWriter(Writer):
    """A Writer. The last one of the contract's chunks carries the usage."""

    text_mark = Template.MARK

    def __init__(self, context: ChatContext) -> None:
        super().__init__(context)
        self._is_contract = context.is_contract
        self._wants_usage = context.request.wants_usage
        self._head: dict[str, Any] = {
            "id": f"chatcmpl-{random.getrandbits(96):024x}",
            "object": "chat.completion.chunk",
            "created": int(time.time()),
            "model": context.request.model,
        }
        self._has_begun = False
        self._finish = ""
        # Blocks of Anthropic's API have their places, so that they can go back in their order.
        self._blocks = self._calls = 0
        self._kind = ""
        self._message: dict[str, Any] = {"role": "assistant", "content": None}

    def write(self, delta: Delta) -> Iterator[bytes]:
        if not self._has_begun:
            self._has_begun = True
            yield self._chunk({"role": "assistant", "content": ""})
        match delta:
            case Finish(reason):
                self._finish = reason
            case _:
                if part := self._part(delta):
                    yield self._chunk(part)

    def _part(self, delta: Delta) -> dict[str, Any]:
        """Return what a delta adds to the message."""
        match delta:
            case Text(text, is_refusal=True):
                return {"refusal": text}
            case Text(text):
                self._begin_block("text")
                return {"content": text}
            case Thinking(block=None, text=text, field=field):
                self._begin_block("thinking")
                return {field or "reasoning_content": text}
            case Thinking(block=dict(block)):
                self._begin_block("thinking")
                self._kind = ""
                place = {"index": self._blocks - 1, "calls": self._calls}
                return {"thinking_blocks": [{**place, **block}]}
            case CallStart() | CallArguments():
                return {"tool_calls": [self._call(delta)]}
        return {}

    def _call(self, delta: CallStart | CallArguments) -> dict[str, Any]:
        if isinstance(delta, CallArguments):
            return {"index": delta.number, "function": {"arguments": delta.text}}
        self._begin_block("call", is_new=True)
        self._calls += 1
        call = {"index": delta.number, "id": delta.key, "type": "function"}
        extra = {"extra_content": delta.extra} if delta.extra else {}
        return {**call, "function": {"name": delta.name, "arguments": ""}, **extra}

    def _begin_block(self, kind: str, *, is_new: bool = False) -> None:
        if is_new or kind != self._kind:
            self._blocks += 1
            self._kind = kind

    def end(self) -> Iterator[bytes]:
        """Yield the reason and the usage: together in the contract."""
        usage = self._usage()
        yield self._chunk({}, self._finish or None, usage if self._is_contract else {})
        if self._is_contract:
            return
        if usage and self._wants_usage:
            yield frame(chunks.dump({**self._head, "choices": [], **usage}))
        yield frame(DONE)

    def _chunk(
        self,
        delta: Mapping[str, Any],
        reason: str | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        value = {**self._head, "choices": [choice], **(more or {})}
        if self._is_contract:
            value = chunks.without_nulls(value)
        return frame(chunks.dump(value))

    # ── Whole answers ───────────────────────────────────────────────────────────────

    def add(self, delta: Delta) -> None:
        """Take a delta of a whole answer."""
        match delta:
            case Finish(reason):
                self._finish = reason
            case _:
                self._merge(self._part(delta))

    def _merge(self, part: Mapping[str, Any]) -> None:
        for name, value in part.items():
            if name != "tool_calls":
                before = self._message.get(name)
                self._message[name] = value if before is None else before + value
                continue
            calls = self._message.setdefault(name, [])
            (call,) = value
            if "id" in call:
                calls.append({n: v for n, v in call.items() if n != "index"})
            else:
                function = calls[call["index"]]["function"]
                function["arguments"] += call["function"]["arguments"]

    def whole(self) -> dict[str, Any]:
        message = self._message
        if message["content"] is None and "tool_calls" not in message:
            message["content"] = ""
        choice = {
            "index": 0,
            "message": message,
            "finish_reason": self._finish or "stop",
        }
        head = {**self._head, "object": "chat.completion"}
        return {**head, "choices": [choice], **self._usage()}

    def _usage(self) -> dict[str, Any]:
        usage = self.context.usage
        return {"usage": usage.as_openai()} if usage else {}
