"""Answers of upstreams of OpenAI's shape for clients of this shape: as they come, but for a name. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.chat.apis.deltas import Delta, Finish
from gateway.chat.apis.openai import chunks
from gateway.chat.apis.openai.chunks import Template
from gateway.chat.apis.openai.reader import ChatReader
from gateway.chat.context import ChatContext
from gateway.chat.sse import DONE, frame
from gateway.chat.streams import Stream
from gateway.json import objects


class PassedChunks(Stream):
    """A stream of chunks.

    The contract's final chunk carries the usage. So a chunk that finishes all choices is
    held back until the next event, and usage that follows is merged into it.
    """

    START = b"data: "

    def __init__(self, context: ChatContext) -> None:
        super().__init__(context, ChatReader())
        request = context.request
        self._model, self._wants_usage = request.model, request.wants_usage
        self._requested_choices = request.choices
        self._is_contract = context.is_contract
        self._held: dict[str, Any] | None = None
        self._finished: set[int] = set()

    def _take(self, payload: bytes) -> None:
        self._template = None
        value = chunks.parse(payload)
        for delta in self.reader.read(value):
            self.note(delta)
        choices = value.get("choices")
        is_finish = any(choice.get("finish_reason") for choice in objects(choices))
        is_usage_only = isinstance(value.get("usage"), dict) and all(
            map(_is_empty, objects(choices))
        )
        if is_usage_only and (self._held is not None or not self._is_contract):
            self._add_usage(value, payload)
            return
        self._release()
        if is_finish and self.has_finished and self._is_contract:
            self._held = value
            return
        rewritten = self._rewritten(value, payload)
        self._ready.append(rewritten)
        if not is_finish and value.get("usage") is None and isinstance(choices, list):
            self.learn(Template.learn(payload, rewritten))

    def note(self, delta: Delta) -> None:
        super().note(delta)
        if isinstance(delta, Finish):
            self._finished.add(delta.choice)
        self.has_finished = len(self._finished) >= self._requested_choices

    def _add_usage(self, value: Mapping[str, Any], payload: bytes) -> None:
        if self._held is not None:
            self._held["usage"] = value["usage"]
        elif self._wants_usage:
            self._ready.append(self._rewritten(dict(value), payload))

    def _rewritten(self, value: dict[str, Any], payload: bytes) -> bytes:
        """Return a chunk for the client; one that needs no change keeps its bytes."""
        if self._is_contract and b"null" in payload:
            return self._written(value)
        # An event is one line; JSON has line breaks only between its parts.
        return chunks.renamed(payload, value, self._model).replace(b"\n", b" ")

    def _written(self, value: dict[str, Any]) -> bytes:
        if "model" in value:
            value["model"] = self._model
        return chunks.dump(chunks.without_nulls(value))

    def _release(self) -> None:
        if self._held is not None:
            held, self._held = self._held, None
            self._ready.append(self._written(held))

    def failed(self, error: BaseException) -> bytes:
        self._release()
        return super().failed(error)

    def end(self) -> bytes:
        self._release()
        return self.flush() + (b"" if self._is_contract else frame(DONE))


def _is_empty(choice: Mapping[str, Any]) -> bool:
    """Return True if a choice has only an index: some servers send one with the usage."""
    return not any(value for name, value in choice.items() if name != "index")
