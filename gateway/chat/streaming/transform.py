"""The transformation of an upstream's chunks into the client's. Pure."""

from __future__ import annotations

from typing import Any

from gateway.chat.core import chunks
from gateway.chat.core.chunks import Chunk, Template
from gateway.chat.core.formats import ApiFormat
from gateway.chat.request import ModelRequest
from gateway.chat.sse import DONE, frame
from gateway.chat.streaming.transformer import Transformer
from gateway.chat.tokens import text_length
from gateway.json import objects


class ChunkTransformer(Transformer):
    """The state of one stream: feed() takes the upstream's events, flush() returns the client's.

    The contract's final chunk carries the usage. So a chunk that finishes all choices is
    held back until the next event, and usage that follows is merged into it.
    """

    START = b"data: "

    def __init__(self, api_format: ApiFormat, request: ModelRequest) -> None:
        super().__init__()
        self._api_format = api_format
        self._model = request.model
        self._wants_usage = request.wants_usage
        self._requested_choices = request.choices
        self._held: Chunk | None = None
        self._unfinished_choices: set[int] = set()
        self._finished_choices: set[int] = set()
        self._resumed_choices: set[int] = set()

    def _transform(self, payload: bytes) -> None:
        chunk = chunks.understand(chunks.parse(payload))
        self.chunks += chunk.is_known
        if chunk.usage is not None:
            self.usage = chunk.usage.at_least(self.usage)
        self._note_choices(chunk.value.get("choices"))
        if chunk.is_usage_only and (self._api_format.is_openai or self._held):
            self._add_usage(chunk, payload)
            return
        self._release()
        may_be_last = chunk.is_finish and not self._unfinished_choices
        if may_be_last and not self._api_format.is_openai:
            self._held = chunk
            return
        rewritten = self._rewrite(chunk, payload)
        self._ready.append(rewritten)
        if chunk.is_known and not chunk.is_finish and chunk.usage is None:
            self._template = Template.learn(payload, rewritten)

    def _note_choices(self, choices: Any) -> None:
        for choice in objects(choices):
            index = choice.get("index")
            number = index if isinstance(index, int) else 0
            length = text_length(choice.get("delta"))
            self.characters += length
            if choice.get("finish_reason"):
                self._finished_choices.add(number)
                self._unfinished_choices.discard(number)
                self._resumed_choices.discard(number)
                self._template = None  # what follows is to be noted
            elif number not in self._finished_choices:
                self._unfinished_choices.add(number)
            elif length:
                self._resumed_choices.add(number)

    def _add_usage(self, chunk: Chunk, payload: bytes) -> None:
        if self._held is not None:
            self._held.value["usage"] = chunk.value["usage"]
        elif self._wants_usage:
            self._ready.append(self._rewrite(chunk, payload))

    def _rewrite(self, chunk: Chunk, payload: bytes | None = None) -> bytes:
        """Return a chunk for the client; one that needs no change keeps its bytes.

        A chunk that was held back has no payload.
        """
        value, has_right_model = chunk.value, True
        if "model" in value and value["model"] != self._model:
            value["model"], has_right_model = self._model, False
        omits_nulls = not self._api_format.is_openai
        if payload is None or (omits_nulls and b"null" in payload):
            return chunks.dump_without_nulls(value)
        # An event is one line; JSON has line breaks only between its parts.
        payload = payload.replace(b"\n", b" ")
        return payload if has_right_model else chunks.rename(payload, self._model)

    def _release(self) -> None:
        if self._held is not None:
            held, self._held = self._held, None
            self._ready.append(self._rewrite(held))

    @property
    def has_finished(self) -> bool:
        """True if every choice, requested or seen, has its finish reason."""
        finished = len(self._finished_choices)
        return finished >= self._requested_choices and not self._unfinished_choices

    @property
    def goes_on(self) -> bool:
        """True if text is to be expected: not finished, or text followed a finish reason."""
        return bool(self._resumed_choices) or not self.has_finished

    def flush_all(self) -> bytes:
        self._release()
        return self.flush()

    def end(self) -> bytes:
        return self.flush_all() + (frame(DONE) if self._api_format.is_openai else b"")
