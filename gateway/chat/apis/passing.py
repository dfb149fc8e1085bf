"""Events of servers that speak the client's own API: as they came, but for the model's name. Pure."""

from __future__ import annotations

from typing import Any

from gateway.chat.apis.deltas import Reader
from gateway.chat.apis.openai import chunks
from gateway.chat.apis.openai.chunks import Template
from gateway.chat.context import ChatContext
from gateway.chat.sse import DONE, data_of
from gateway.chat.streams import Stream


class PassedEvents(Stream):
    """A stream of whole events, with their names and comments.

    `holder` names the object of an event that has the model's name; `last` is the last of them,
    and `number` that of the last event, if they are numbered.
    """

    def __init__(
        self, context: ChatContext, reader: Reader, holder: str, end: bytes = b""
    ) -> None:
        super().__init__(context, reader)
        self._holder, self._model, self._end = holder, context.request.model, end
        self.last: dict[str, Any] = {}
        self.number = -1

    def _take(self, payload: bytes) -> None:
        self._template = None
        data = data_of(payload)
        if data is None or data == DONE:
            self._ready.append(payload)
            return
        event = chunks.parse(data)
        is_text = False
        for delta in self.reader.read(event):
            self.note(delta)
            is_text = True
        number, held = event.get("sequence_number"), event.get(self._holder)
        self.number = number if isinstance(number, int) else self.number
        if isinstance(held, dict):
            self.last = held
            payload = self._renamed(payload, event, held)
        elif is_text and self.reader.text_mark:
            self.learn(Template.learn(payload, payload, self.reader.text_mark))
        self._ready.append(payload)

    def _renamed(
        self, payload: bytes, event: dict[str, Any], held: dict[str, Any]
    ) -> bytes:
        if held.get("model", self._model) == self._model:
            return payload
        old, held["model"] = chunks.dump(held["model"]), self._model
        if payload.count(b'"model"') == 1 and payload.count(old) == 1:
            return payload.replace(old, chunks.dump(self._model))
        name, mark, _ = payload.partition(b"data:")
        return name + mark + b" " + chunks.dump(event)

    def end(self) -> bytes:
        """Return the last event if the upstream has left it out."""
        return self.flush() + (b"" if self.reader.is_done else self._end)
