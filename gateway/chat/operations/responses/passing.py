"""The stream of an upstream that has the Responses API: its events, with another name of the model. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gateway.chat.core import chunks, failures
from gateway.chat.core.formats import TOO_MANY_REQUESTS
from gateway.chat.errors import (
    ChatError,
    InvalidRequestError,
    UpstreamError,
    UpstreamServiceError,
)
from gateway.chat.operations.carried import MARK, PREFIX
from gateway.chat.streaming.transformer import Transformer
from gateway.chat.tokens import Usage
from gateway.json import member

# Events before any part of the answer: until it comes, another target can answer.
OPENING = frozenset({"response.created", "response.queued", "response.in_progress"})
FINAL = frozenset({"response.completed", "response.incomplete"})
FAILED = frozenset({"response.failed", "error"})
# Codes of failures that another target would have, too; others are the upstream's.
REFUSALS = failures.CONTEXT_CODES | {"invalid_prompt", "invalid_image", "cyber_policy"}
LIMIT = "rate_limit_exceeded"


def own_items(items: Iterable[Any]) -> Iterator[Any]:
    """Yield the input without what this gateway put into it for upstreams of another kind.

    The API refuses their reasoning, and ids of calls with more than 64 characters. A client
    that changes the model sends them, and so does a fallback.
    """
    for item in items:
        match item:
            case {"type": "reasoning", "encrypted_content": str(text)} if (
                text.startswith(PREFIX)
            ):
                continue
            case {"call_id": str(key)} if MARK in key:
                yield {**item, "call_id": key.partition(MARK)[0]}
            case _:
                yield item


class PassedEvents(Transformer):
    """A Transformer of the events of a response, as gateway.chat.streaming describes it."""

    DONE_COMPLETES = False

    def __init__(self, model: str) -> None:
        super().__init__()
        self._model = model
        self._number = -1
        self._response: Mapping[str, Any] = {}

    def _transform(self, payload: bytes) -> None:
        event = chunks.parse(payload)
        kind, response = event.get("type"), event.get("response")
        if kind in FAILED or failures.is_failure(event):
            raise failure_of(event)
        if not isinstance(kind, str) or not kind.isprintable():
            return  # no event of this API
        number = event.get("sequence_number")
        self._number = number if isinstance(number, int) else self._number + 1
        self.chunks += kind not in OPENING
        if isinstance(delta := event.get("delta"), str):
            self.characters += len(delta)
        if isinstance(response, dict):
            self._response = response
            payload = self._renamed(payload, response)
            self.usage = Usage.read(response.get("usage")) or self.usage
            self._has_finished = self.is_done = kind in FINAL
        self._add(kind, payload)

    def _renamed(self, payload: bytes, response: Mapping[str, Any]) -> bytes:
        if response.get("model", self._model) == self._model:
            return payload
        if renamed := chunks.rename_only(payload, self._model):
            return renamed
        event = chunks.parse(payload)  # its numbers keep their text
        event["response"]["model"] = self._model
        return chunks.dump(event)

    def _add(self, kind: str, payload: bytes) -> None:
        # An event is one line; JSON has line breaks only between its parts.
        data = payload.replace(b"\n", b" ")
        self._ready.append(b"event: " + kind.encode() + b"\ndata: " + data)

    def failed(self, error: Mapping[str, Any]) -> bytes:
        """Return the event that ends a response that has failed."""
        response = {**self._response, "status": "failed", "error": error}
        if "model" in response:
            response["model"] = self._model
        number = self._number + 1
        kind = "response.failed"
        event = {"type": kind, "response": response, "sequence_number": number}
        self._add(kind, chunks.dump(event))
        return self.flush()


def failure_of(event: Mapping[str, Any]) -> ChatError:
    """Return the failure that an event or a response reports."""
    error = member(event, "response", "error") or event.get("error") or event
    known = failures.failure_in({"error": error}, refusal=InvalidRequestError)
    code = known.upstream.fields.get("code")
    if code in REFUSALS and isinstance(known, UpstreamServiceError):
        message = error.get("message")
        known = InvalidRequestError(str(message or failures.REFUSED))
        known.upstream = UpstreamError(fields={"code": str(code)})
    elif code == LIMIT:
        fields = known.upstream.fields
        known.upstream = UpstreamError(TOO_MANY_REQUESTS, fields)
    return known
