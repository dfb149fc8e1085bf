"""The chunks of a chat completion as events of Anthropic's Messages API. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.chat.core import answers, chunks
from gateway.chat.core.chunks import Chunk, Template
from gateway.chat.core.messages_format import frame
from gateway.chat.operations.carried import CALL, DETAILS
from gateway.chat.operations.messages import response
from gateway.chat.operations.messages.blocks import Block, Blocks
from gateway.chat.operations.messages.call_ids import CallIds
from gateway.chat.streaming.transformer import EVENT_END, Transformer
from gateway.chat.tokens import Usage, estimate
from gateway.json import objects

TEXT_MARK = b'"text":"'


class MessageStream(Transformer):
    """A Transformer. The reason why the message stopped waits for the usage, as the API has it."""

    DONE_COMPLETES = False

    def __init__(self, *, model: str, prompt_tokens: int, ids: CallIds) -> None:
        super().__init__()
        self._model = model
        self._prompt_tokens = prompt_tokens  # an estimate
        self._blocks = Blocks(ids, self._send)
        self._numbers = answers.CallNumbers()
        self._calls: dict[int, Block] = {}
        self._finish_reason: str | None = None
        self._last_choice: Mapping[str, Any] = {}

    def _transform(self, payload: bytes) -> None:
        chunk = chunks.understand(chunks.parse(payload))
        self._template = None
        if not chunk.is_known:
            return
        if self.chunks == 0:
            self._begin(chunk)
        self.chunks += 1
        if chunk.usage is not None:
            self.usage = chunk.usage.at_least(self.usage)
        if first := chunks.first_choice(chunk.value):
            before = len(self._ready)
            self._add_choice(first)
            is_alone = chunk.usage is None and not first.get("finish_reason")
            if is_alone and len(self._ready) == before + 1:
                mark, event = Template.MARK, self._ready[before]
                self._template = Template.learn(payload, event, mark, TEXT_MARK)

    def _begin(self, chunk: Chunk) -> None:
        usage = chunk.usage or Usage(self._prompt_tokens, 0)
        message = {
            **response.head(self._model),
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": response.usage_of(usage),
        }
        self._send({"type": "message_start", "message": message})

    def _send(self, event: Mapping[str, Any]) -> None:
        self._ready.append(frame(event).removesuffix(EVENT_END))

    def _add_choice(self, choice: Mapping[str, Any]) -> None:
        delta = answers.said_in(choice)
        self._add_thinking(delta)
        for text in (*answers.texts_of(delta.get("content")), delta.get("refusal")):
            if isinstance(text, str) and text:
                self._add_text("text", text)
        for call in answers.calls_in(delta):
            self._add_call(call)
        if reason := answers.finish_reason(choice):
            self._finish_reason = reason
            self._last_choice = {"stop_reason": choice.get("stop_reason")}
            self._blocks.close_all()
            self._has_finished = True

    def _add_text(self, kind: str, text: str, signature: str = "") -> Block:
        self.characters += len(text)
        return self._blocks.add_text(kind, text, signature)

    def _add_thinking(self, delta: Mapping[str, Any]) -> None:
        """Add thinking; another gateway also says the signatures of a model of Anthropic's."""
        text, name = answers.thought_in(delta)
        details = delta.get(DETAILS)
        if text or details:
            signature = response.SIGNATURES.get(name, "")
            block = self._add_text("thinking", text, signature)
            block.details += details if isinstance(details, list) else ()
        for part in objects(delta.get("thinking_blocks")):
            match part:
                case {"type": "redacted_thinking", "data": str(data)}:
                    self._blocks.add(Block("redacted_thinking", data=data), "")
                case {"signature": str(signature)} if signature:
                    self._blocks.sign(signature)

    def _add_call(self, part: Mapping[str, Any]) -> None:
        name, text = answers.function_of(part)
        number = self._numbers.number_of(part)
        if (block := self._calls.get(number)) is None:
            self._calls[number] = block = Block("tool_use")
        if not block.has_started:
            block.key = block.key or answers.key_of(part)
            block.extra = block.extra or part.get(CALL)
            block.name = name or block.name
            self.characters += len(name)
        self.characters += len(text)
        self._blocks.add(block, text)

    def end(self) -> bytes:
        """Return the reason why the message stopped, with its usage, and the last event."""
        self._blocks.close_all()
        usage = self.usage or Usage(self._prompt_tokens, None)
        if usage.completion_tokens is None:
            usage = usage.with_completion(estimate(self.characters))
        stop = response.stop(
            self._finish_reason, self._last_choice, is_call=bool(self._calls)
        )
        counts = response.usage_of(usage)
        self._send({"type": "message_delta", "delta": stop, "usage": counts})
        self._send({"type": "message_stop"})
        return self.flush()
