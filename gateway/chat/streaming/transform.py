"""What happens to the chunks between an upstream and a client. Pure."""

from __future__ import annotations

from typing import Any

from gateway.chat import exact_json
from gateway.chat.formats import ApiFormat
from gateway.chat.metering.tokens import Usage, text_length
from gateway.chat.streaming import chunks
from gateway.chat.streaming.chunks import Chunk, Template
from gateway.chat.streaming.sse import DONE, frame


class ChunkTransformer:
    """The state of one stream: takes the upstream's events, holds what goes to the client.

    A chunk that finishes all choices is held back until the next event, so that usage
    which comes after it can be merged into it: the contract's final chunk carries the usage.
    """

    def __init__(
        self, api_format: ApiFormat, *, model: str, wants_usage: bool, choices: int = 1
    ) -> None:
        self._api_format = api_format
        self._model = model
        self._wants_usage = wants_usage
        # Only what is written anew needs the text of its numbers.
        self._loads = exact_json.loads if api_format.omits_nulls else exact_json.read
        self._ready: list[bytes] = []
        self._held: Chunk | None = None
        self._template: Template | None = None
        self._asked_choices = choices
        self._seen_choices: set[int] = set()
        self._finished_choices: set[int] = set()
        self.usage: Usage | None = None
        self.characters = 0
        self.is_done = False
        self.chunks = 0

    def feed(self, payloads: list[bytes]) -> None:
        """Take events in; what came before a fault can still be drained.

        Raises InvalidRequestError, UpstreamServiceError.
        """
        for payload in payloads:
            if self.is_done:
                return
            if self._held is None and self._template is not None:
                rewritten = self._template.apply(payload)
                if rewritten is not None:
                    self.chunks += 1
                    self.characters += self._template.text_length(payload)
                    self._ready.append(rewritten)
                    continue
            self._take(payload)

    def _take(self, payload: bytes) -> None:
        if payload == DONE:
            self.is_done = True
            return
        chunk = chunks.understand(chunks.parse(payload, self._loads))
        self.chunks += 1
        self.usage = chunk.usage or self.usage
        self._note_choices(chunk.value.get("choices"))
        if chunk.is_usage_only and (self._api_format.says_done or self._held):
            self._take_usage(chunk, payload)
            return
        self._release()
        may_be_last = chunk.is_finish and self._finished_choices >= self._seen_choices
        if may_be_last and not self._api_format.says_done:
            self._held = chunk
            return
        rewritten = self._written(chunk, payload)
        self._ready.append(rewritten)
        if not chunk.is_finish and chunk.usage is None:
            self._template = Template.learn(payload, rewritten)

    def _note_choices(self, choices: Any) -> None:
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict):
                index = choice.get("index")
                number = index if isinstance(index, int) else 0
                self._seen_choices.add(number)
                self.characters += text_length(choice.get("delta"))
                if choice.get("finish_reason"):
                    self._finished_choices.add(number)

    def _take_usage(self, chunk: Chunk, payload: bytes) -> None:
        if self._held is not None:
            self._held.value["usage"] = chunk.value["usage"]
        elif self._wants_usage:
            self._ready.append(self._written(chunk, payload))

    def _written(self, chunk: Chunk, payload: bytes | None = None) -> bytes:
        """Return a chunk as it is sent; one that needs no change keeps its bytes.

        Only the contract holds a chunk back, so that it has no payload any more.
        """
        value, fits = chunk.value, True
        if "model" in value and value["model"] != self._model:
            value["model"], fits = self._model, False
        if payload is None or (self._api_format.omits_nulls and b"null" in payload):
            return chunks.dump_without_nulls(value)
        # An event is one line, and JSON has line breaks between its parts alone.
        payload = payload.replace(b"\n", b" ")
        return payload if fits else chunks.renamed(payload, self._model)

    def _release(self) -> None:
        if self._held is not None:
            held, self._held = self._held, None
            self._ready.append(self._written(held))

    @property
    def has_begun(self) -> bool:
        return self.chunks > 0 or self.is_done

    @property
    def has_finished(self) -> bool:
        """Whether every choice has its finish reason: those asked for and those that came."""
        finished = self._finished_choices
        return len(finished) >= self._asked_choices and finished >= self._seen_choices

    @property
    def is_complete(self) -> bool:
        """Whether the upstream said in either way that this was all."""
        return self.is_done or self.has_finished

    def flush(self) -> bytes:
        """Return the events that are ready to be sent, framed."""
        if not self._ready:
            return b""
        text = b"data: " + b"\n\ndata: ".join(self._ready) + b"\n\n"
        self._ready.clear()
        return text

    def last(self) -> bytes:
        """Return the events that end a stream which is complete."""
        return self.rest() + (frame(DONE) if self._api_format.says_done else b"")

    def rest(self) -> bytes:
        """Return what is ready and what was held back."""
        self._release()
        return self.flush()
