"""Messages for a server that speaks this API: every byte passes, but the model's name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from gateway.chat.apis import carried
from gateway.chat.apis.deltas import Delta
from gateway.chat.apis.messages.format import STATUSES, frame, frame_raw
from gateway.chat.apis.messages.reader import MessagesReader
from gateway.chat.apis.messages.turns import OWN_PREFIX
from gateway.chat.apis.openai import chunks
from gateway.chat.apis.openai.chunks import Template
from gateway.chat.context import ChatContext
from gateway.chat.errors import ChatError
from gateway.chat.failures import is_failure
from gateway.chat.sse import data_of
from gateway.chat.streams import EVENT_END, Stream
from gateway.json import member

# How the signatures begin that the gateway writes for upstreams of another kind.
OTHERS = (OWN_PREFIX, carried.PREFIX)
MARKS = tuple(mark.encode() for mark in OTHERS)


def own_body(raw: bytes, body: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a body without the thinking of other upstreams, which the API refuses; None: as it is.

    A client that changes the model sends it, and so does a fallback.
    """
    turns = body.get("messages")
    if not isinstance(turns, list) or not any(mark in raw for mark in MARKS):
        return None
    return {**body, "messages": [*_kept(turns)]}


def _kept(turns: list[Any]) -> Iterator[Any]:
    for turn in turns:
        match turn:
            case {"role": "assistant", "content": list(blocks)}:
                kept = [block for block in blocks if not _is_of_others(block)]
                if kept or not blocks:
                    yield {**turn, "content": kept}
            case _:
                yield turn


def _is_of_others(block: Any) -> bool:
    match block:
        case {"type": "thinking", "signature": str(proof)} | {
            "type": "redacted_thinking",
            "data": str(proof),
        }:
            return proof.startswith(OTHERS)
    return False


def passed(context: ChatContext, body: bytes) -> bytes:
    """Return a message with the requested name of its model. Raises as MessagesReader.whole()."""
    message = chunks.parse(body)
    try:
        for delta in MessagesReader().whole(message):
            context.note(delta)
    except ChatError as error:
        raise _as_it_is(error, body, message) from error
    return chunks.renamed(body, message, context.request.model)


def _as_it_is(error: ChatError, payload: bytes, event: Mapping[str, Any]) -> ChatError:
    """Let the client get a failure that came with status 200 as it is."""
    if is_failure(event):
        status = STATUSES.get(str(member(event, "error", "type")), 500)
        error.upstream = replace(error.upstream, response=(status, payload, {}))
    return error


class PassedMessages(Stream):
    """A stream that changes the model's name in the first event, and nothing else."""

    DONE_COMPLETES = False

    def __init__(self, model: str, log: Callable[[Delta], None] | None = None) -> None:
        super().__init__(MessagesReader(), log)
        self._model = model

    def _take(self, payload: bytes) -> None:
        """Take a whole event, with its name."""
        self.template = None
        if (data := data_of(payload)) is None:
            self._ready.append(payload)
            return
        event = chunks.parse(data)
        try:
            for delta in self.reader.read(event):
                self.note(delta)
        except ChatError as error:
            raise _as_it_is(error, data.replace(b"\n", b" "), event) from error
        if event.get("type") == "content_block_delta":
            self.learn(Template.learn(payload, payload, MessagesReader.text_mark))
        message = event.get("message")
        if event.get("type") == "message_start" and isinstance(message, dict):
            payload = self._renamed(payload, data, event, message)
        self._ready.append(payload)

    def _renamed(
        self,
        payload: bytes,
        data: bytes,
        event: dict[str, Any],
        message: dict[str, Any],
    ) -> bytes:
        if message.get("model", self._model) == self._model:
            return payload
        old, message["model"] = chunks.dump(message["model"]), self._model
        if data.count(b'"model"') == 1 and payload.count(old) == 1:
            return payload.replace(old, chunks.dump(self._model))
        return frame(event).removesuffix(EVENT_END)

    def end(self) -> bytes:
        """Return the last event if the upstream has left it out."""
        rest = self.flush()
        if self.reader.is_done:
            return rest
        return rest + frame_raw(b"message_stop", b'{"type":"message_stop"}')
