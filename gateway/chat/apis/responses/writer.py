"""Deltas as a response of the Responses API and its events. Pure.

Each event has its `type` and a `sequence_number`. An item is added before its parts, and done
when it is complete: clients run a tool when its call is done. Only the last item is open.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

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
from gateway.chat.apis.responses.format import error_of
from gateway.chat.apis.responses.tools import Tools, input_of
from gateway.chat.context import ChatContext
from gateway.chat.errors import UpstreamServiceError
from gateway.chat.sse import MAX_EVENT_BYTES, frame
from gateway.chat.tokens import Usage

Item = dict[str, Any]

ENCRYPTED = "reasoning.encrypted_content"
# Fields of the request that a response repeats, with their values when they are missing. Those
# that may be long are not among them: a stream repeats the object in three events.
ECHOED: Mapping[str, Any] = {
    "max_output_tokens": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "reasoning": {"effort": None, "summary": None},
    "service_tier": None,
    "temperature": None,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "top_p": None,
}
INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}


class Part(NamedTuple):
    """A kind of parts: where they stand in an item, and what their events are called."""

    list_name: str
    event: str  # of the part
    text_event: str
    text: str = "text"  # the name of its text


PARTS = {
    "output_text": Part("content", "content_part", "output_text"),
    "refusal": Part("content", "content_part", "refusal", "refusal"),
    "summary_text": Part("summary", "reasoning_summary_part", "reasoning_summary_text"),
}
MESSAGE: Item = {"type": "message", "status": "in_progress", "role": "assistant"}


class ResponsesWriter(Writer):
    """A Writer of the answer to a request."""

    text_mark = b""  # each event has another number

    def __init__(self, context: ChatContext, tools: Tools) -> None:
        super().__init__(context)
        body = context.request.body
        include = body.get("include")
        self._is_encrypted_wanted = isinstance(include, list) and ENCRYPTED in include
        self._key = f"{random.getrandbits(128):032x}"
        self._head = _head(body, context.request.model, f"resp_{self._key}")
        self._tools = tools
        self._number = 0
        self._output: list[Item] = []
        self._open: Item = {}  # the last one, while it is not done
        self._part = ""  # the kind of its open part
        self._texts: list[str] = []  # of the open part or call
        self._thought = ""  # where the upstream wants thinking back
        self._call = -1  # the number of the open call
        self._finish = ""

    def write(self, delta: Delta) -> Iterator[bytes]:
        if self._number == 0:
            yield from self._begin()
        # The last event repeats the whole answer.
        if self.context.completion_characters > MAX_EVENT_BYTES:
            raise UpstreamServiceError("the answer is too large")
        match delta:
            case Text(text, is_refusal):
                if self._open.get("type") != "message":
                    yield from self._start("msg", {**MESSAGE, "content": []})
                yield from self._say("refusal" if is_refusal else "output_text", text)
            case Thinking():
                yield from self._think(delta)
            case CallStart():
                yield from self._start_call(delta)
            case CallArguments(number, text) if number == self._call:
                yield from self._continue_call(text)
            case CallArguments(text=text) if text.strip():
                raise UpstreamServiceError("arguments of a call that is over")
            case Finish(reason):
                self._finish = reason

    def end(self) -> Iterator[bytes]:
        yield from self._end_item()
        response = self._ended()
        yield self._event(f"response.{response['status']}", response=response)

    def failed(self, error: BaseException) -> bytes:
        begun = b"".join(self._begin()) if self._number == 0 else b""
        fault = error_of(error, self.context.request_id)
        response = self._response(
            "failed", usage=usage_of(self.context.reported()), error=fault
        )
        return begun + self._event("response.failed", response=response)

    def whole(self) -> dict[str, Any]:
        for _ in self._end_item():
            pass
        return self._ended()

    # ── The response ────────────────────────────────────────────────────────────────

    def _begin(self) -> Iterator[bytes]:
        response = self._response("in_progress")
        yield self._event("response.created", response=response)
        yield self._event("response.in_progress", response=response)

    def _response(self, status: str, **fields: Any) -> dict[str, Any]:
        return {**self._head, "status": status, "output": self._output, **fields}

    def _ended(self) -> dict[str, Any]:
        usage = usage_of(self.context.reported())
        if reason := INCOMPLETE.get(self._finish):
            details = {"reason": reason}
            return self._response("incomplete", usage=usage, incomplete_details=details)
        now = int(time.time())
        return self._response("completed", usage=usage, completed_at=now)

    def _event(self, kind: str, **fields: Any) -> bytes:
        value = {"type": kind, **fields, "sequence_number": self._number}
        self._number += 1
        return frame(json.dumps(value), kind.encode())

    # ── Items ───────────────────────────────────────────────────────────────────────

    def _in_item(self, kind: str, **fields: Any) -> bytes:
        """Return an event of the item that is open."""
        key, place = self._open["id"], len(self._output) - 1
        return self._event(kind, item_id=key, output_index=place, **fields)

    def _start(self, prefix: str, fields: Mapping[str, Any]) -> Iterator[bytes]:
        """Begin an item: the one before is over."""
        yield from self._end_item()
        self._open = {"id": f"{prefix}_{self._next_key()}", **fields}
        self._output.append(self._open)
        self._thought = ""
        yield self._of_output("added")

    def _next_key(self) -> str:
        return f"{self._key}{len(self._output):04x}"

    def _of_output(self, what: str) -> bytes:
        kind, place = f"response.output_item.{what}", len(self._output) - 1
        return self._event(kind, output_index=place, item=self._output[place])

    def _end_item(self) -> Iterator[bytes]:
        if not self._open:
            return
        is_cut = self._finish in INCOMPLETE
        match self._open["type"]:
            case "message":
                yield from self._end_part()
                self._open["status"] = "incomplete" if is_cut else "completed"
            case "reasoning":
                yield from self._end_part()
                if self._thought and self._is_encrypted_wanted:
                    text = "".join(part["text"] for part in self._open["summary"])
                    self._open["encrypted_content"] = carried.pack(
                        {self._thought: text}
                    )
            case _:
                yield from self._end_call(is_cut=is_cut)
        self._open, self._call = {}, -1
        yield self._of_output("done")

    # ── Text and thinking ───────────────────────────────────────────────────────────

    def _think(self, delta: Thinking) -> Iterator[bytes]:
        if self._open.get("type") != "reasoning":
            yield from self._start("rs", {"type": "reasoning", "summary": []})
        if delta.text:
            self._thought = delta.field or self._thought
            yield from self._say("summary_text", delta.text)
        if delta.block is not None:
            # Sent unasked: without its signature, the next turn would be refused.
            self._open["encrypted_content"] = carried.pack({"block": delta.block})
            self._thought = ""
            yield from self._end_item()

    def _say(self, kind: str, text: str) -> Iterator[bytes]:
        part = PARTS[kind]
        if self._part != kind:
            yield from self._end_part()
            self._part = kind
            yield self._in_part(f"{part.event}.added", part=part_of(kind, ""))
        self._texts.append(text)
        yield self._in_part(f"{part.text_event}.delta", delta=text, **more_of(kind))

    def _in_part(self, kind: str, **fields: Any) -> bytes:
        name = PARTS[self._part].list_name
        place = {f"{name}_index": len(self._open[name])}
        return self._in_item(f"response.{kind}", **place, **fields)

    def _end_part(self) -> Iterator[bytes]:
        if not self._part:
            return
        kind, text, part = self._part, self._take_text(), PARTS[self._part]
        fields = {part.text: text, **more_of(kind)}
        yield self._in_part(f"{part.text_event}.done", **fields)
        done = part_of(kind, text)
        yield self._in_part(f"{part.event}.done", part=done)
        self._open[part.list_name].append(done)
        self._part = ""

    def _take_text(self) -> str:
        text = "".join(self._texts)
        self._texts = []
        return text

    # ── Calls ───────────────────────────────────────────────────────────────────────

    def _start_call(self, start: CallStart) -> Iterator[bytes]:
        """Begin a call in the form in which the client declared the tool."""
        tool = self._tools.tool(start.name)
        key = start.key or f"call_{self._next_key()}"
        kind = "custom_tool_call" if tool.is_custom else "function_call"
        fields = {
            "type": kind,
            "status": "in_progress",
            "call_id": carried.call_id(key, start.extra),
            "name": tool.name,
            **({"namespace": tool.namespace} if tool.namespace else {}),
            "input" if tool.is_custom else "arguments": "",
        }
        yield from self._start("ctc" if tool.is_custom else "fc", fields)
        self._call = start.number

    def _continue_call(self, text: str) -> Iterator[bytes]:
        self._texts.append(text)
        if "arguments" in self._open:  # the text of another is known at its end
            yield self._in_item("response.function_call_arguments.delta", delta=text)

    def _end_call(self, *, is_cut: bool) -> Iterator[bytes]:
        if not self._texts:
            yield from self._continue_call("{}")
        text, call = self._take_text(), self._open
        call["status"] = "incomplete" if is_cut else "completed"
        if "input" in call:
            kind, given = "response.custom_tool_call_input", input_of(text)
            call["input"] = given
            yield self._in_item(f"{kind}.delta", delta=given)
            yield self._in_item(f"{kind}.done", input=given)
        else:
            kind, call["arguments"] = "response.function_call_arguments.done", text
            yield self._in_item(kind, name=call["name"], arguments=text)


def _head(body: Mapping[str, Any], model: str, key: str) -> dict[str, Any]:
    """Return what a response has whatever its answer is."""
    given = {name: body[name] for name in ECHOED if body.get(name) is not None}
    return {
        "id": key,
        "object": "response",
        "created_at": int(time.time()),
        "background": False,
        **dict.fromkeys(("error", "incomplete_details", "instructions")),
        "model": model,
        "previous_response_id": None,
        "store": False,
        "tools": [],
        "usage": None,
        **ECHOED,
        **given,
    }


def more_of(kind: str) -> Item:
    return {"logprobs": []} if kind == "output_text" else {}


def part_of(kind: str, text: str) -> Item:
    """Return a part of an item."""
    more: Item = {"annotations": [], "logprobs": []} if kind == "output_text" else {}
    return {"type": kind, PARTS[kind].text: text, **more}


def usage_of(usage: Usage) -> dict[str, Any]:
    """Return the usage as the Responses API writes it."""
    completion_tokens = usage.completion_tokens or 0
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {
            "cached_tokens": usage.cached_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
        },
        "output_tokens": completion_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.prompt_tokens + completion_tokens,
    }
