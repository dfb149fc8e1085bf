"""Deltas as a response of the Responses API and its events. Pure.

Each event has its `type` and a `sequence_number`. An item is added before its parts, and done
when it is complete: clients run a tool when its call is done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
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
    Tokens,
    length_of,
)
from gateway.chat.apis.messages.format import frame_raw
from gateway.chat.apis.responses import objects
from gateway.chat.apis.responses.format import error_of
from gateway.chat.apis.responses.objects import INCOMPLETE, Item, Skeleton
from gateway.chat.apis.responses.tools import Tool, Tools
from gateway.chat.errors import UpstreamServiceError
from gateway.chat.sse import MAX_EVENT_BYTES
from gateway.chat.tokens import Usage, estimate

REASONING, MESSAGE, CALL = "reasoning", "message", "call"
NO_TOOL = Tool("")


@dataclass(slots=True)
class _Open:
    """The item that is not done, its place in the output, and its text so far."""

    kind: str
    key: str
    place: int
    texts: list[str] = field(default_factory=list)
    part: str = ""  # the kind of a message's open part
    parts: list[Item] = field(default_factory=list)
    thought: str = ""  # where the upstream wants thinking back
    number: int = 0  # of a call
    call_id: str = ""
    tool: Tool = NO_TOOL

    @property
    def text(self) -> str:
        return "".join(self.texts)


class ResponsesWriter:
    """A Writer. `is_wanted`: the client asked for `encrypted_content`.

    `prompt_tokens` estimates those of the prompt, for an upstream that does not count them.
    """

    text_mark = b""  # each event has another number

    def __init__(
        self,
        skeleton: Skeleton,
        tools: Tools,
        prompt_tokens: Callable[[], int],
        *,
        is_wanted: bool = False,
    ) -> None:
        self._skeleton, self._tools = skeleton, tools
        self._prompt_tokens, self._is_wanted = prompt_tokens, is_wanted
        self._number = 0
        self._output: list[Item] = []  # in their places, also those that are not done
        self._open: _Open | None = None
        self._keys: set[str] = set()
        self._usage: Usage | None = None
        self._finish = ""
        self._characters = 0

    # ── What its users call ─────────────────────────────────────────────────────────

    def write(self, delta: Delta) -> Iterator[bytes]:
        if self._number == 0:
            yield from self._begin()
        self._characters += length_of(delta)
        if (
            self._characters > MAX_EVENT_BYTES
        ):  # the last event repeats the whole answer
            raise UpstreamServiceError("the answer is too large")
        match delta:
            case Text(text, is_refusal):
                yield from self._say("refusal" if is_refusal else "output_text", text)
            case Thinking():
                yield from self._think(delta)
            case CallStart():
                yield from self._call(delta)
            case CallArguments(number, text):
                yield from self._continue_call(number, text)
            case Finish(reason):
                self._finish = reason
            case Tokens(usage):
                self._usage = usage.at_least(self._usage)

    def end(self) -> Iterator[bytes]:
        yield from self._end_item()
        response = self._ended()
        yield self._event(f"response.{response['status']}", response=response)

    def failed(self, error: BaseException, request_id: str) -> bytes:
        begun = b"".join(self._begin()) if self._number == 0 else b""
        response = self._skeleton.response(
            "failed",
            self._output,
            self._counted(),
            error=error_of(error, request_id),
        )
        return begun + self._event("response.failed", response=response)

    def add(self, delta: Delta) -> None:
        for _ in self.write(delta):
            pass

    def whole(self) -> dict[str, Any]:
        for _ in self._end_item():
            pass
        return self._ended()

    def _ended(self) -> dict[str, Any]:
        return self._skeleton.ended(self._finish, self._output, self._counted())

    def _counted(self) -> dict[str, Any]:
        usage = self._usage or Usage(self._prompt_tokens(), None)
        if usage.completion_tokens is None:
            usage = usage.with_completion(estimate(self._characters))
        return objects.usage_of(usage)

    # ── Events and items ────────────────────────────────────────────────────────────

    def _event(self, kind: str, **fields: Any) -> bytes:
        value = {"type": kind, **fields, "sequence_number": self._number}
        self._number += 1
        return frame_raw(kind.encode(), json.dumps(value))

    def _in_item(self, kind: str, **fields: Any) -> bytes:
        """Return an event of the item that is open."""
        item = self._opened
        return self._event(kind, item_id=item.key, output_index=item.place, **fields)

    @property
    def _opened(self) -> _Open:
        if self._open is None:
            raise UpstreamServiceError("a part of no item")
        return self._open

    def _begin(self) -> Iterator[bytes]:
        response = self._skeleton.response("in_progress", [])
        yield self._event("response.created", response=response)
        yield self._event("response.in_progress", response=response)

    def _start(
        self, kind: str, prefix: str, make: Callable[[str], Item]
    ) -> Iterator[bytes]:
        """Open an item, which takes the place of the one before."""
        yield from self._end_item()
        place = len(self._output)
        key = self._skeleton.item_id(prefix, place)
        self._open = _Open(kind, key, place)
        item = make(key)
        self._output.append(item)
        yield self._event("response.output_item.added", output_index=place, item=item)

    def _end_item(self) -> Iterator[bytes]:
        item = self._open
        if item is None:
            return
        match item.kind:
            case "message":
                yield from self._end_part()
                status = "incomplete" if self._finish in INCOMPLETE else "completed"
                yield from self._done(
                    objects.message_item(item.key, item.parts, status)
                )
            case "reasoning":
                given = (
                    {item.thought: item.text}
                    if item.thought and self._is_wanted
                    else {}
                )
                yield from self._end_reasoning(given)
            case _:
                yield from self._end_call()

    def _done(self, value: Item) -> Iterator[bytes]:
        item, self._open = self._opened, None
        self._output[item.place] = value
        yield self._event(
            "response.output_item.done", output_index=item.place, item=value
        )

    # ── Reasoning ───────────────────────────────────────────────────────────────────

    def _think(self, delta: Thinking) -> Iterator[bytes]:
        if self._open is None or self._open.kind != REASONING:
            make = lambda key: objects.reasoning_item(key, "", None)  # noqa: E731
            yield from self._start(REASONING, "rs", make)
        item = self._opened
        if delta.text:
            if not item.texts:
                part = {"type": "summary_text", "text": ""}
                yield self._summary("response.reasoning_summary_part.added", part=part)
            item.texts.append(delta.text)
            item.thought = delta.field or item.thought
            yield self._summary(
                "response.reasoning_summary_text.delta", delta=delta.text
            )
        if delta.block is not None:
            # Sent unasked: without its signature, the next turn would be refused.
            yield from self._end_reasoning({"block": delta.block})

    def _summary(self, kind: str, **fields: Any) -> bytes:
        return self._in_item(kind, summary_index=0, **fields)

    def _end_reasoning(self, fields: Mapping[str, Any]) -> Iterator[bytes]:
        item = self._opened
        if text := item.text:
            yield self._summary("response.reasoning_summary_text.done", text=text)
            part = {"type": "summary_text", "text": text}
            yield self._summary("response.reasoning_summary_part.done", part=part)
        encrypted = carried.pack(fields) if fields else None
        yield from self._done(objects.reasoning_item(item.key, text, encrypted))

    # ── Text ────────────────────────────────────────────────────────────────────────

    def _say(self, kind: str, text: str) -> Iterator[bytes]:
        if self._open is None or self._open.kind != MESSAGE:
            make = lambda key: objects.message_item(key, [], "in_progress")  # noqa: E731
            yield from self._start(MESSAGE, "msg", make)
        item = self._opened
        if item.part != kind:
            yield from self._end_part()
            item.part = kind
            empty = objects.part_of(kind, "")
            yield self._in_part("response.content_part.added", part=empty)
        item.texts.append(text)
        more: Item = {} if kind == "refusal" else {"logprobs": []}
        yield self._in_part(f"response.{kind}.delta", delta=text, **more)

    def _in_part(self, kind: str, **fields: Any) -> bytes:
        return self._in_item(kind, content_index=len(self._opened.parts), **fields)

    def _end_part(self) -> Iterator[bytes]:
        item = self._opened
        if not item.part:
            return
        part = objects.part_of(item.part, item.text)
        said = {n: part[n] for n in ("text", "refusal", "logprobs") if n in part}
        yield self._in_part(f"response.{item.part}.done", **said)
        yield self._in_part("response.content_part.done", part=part)
        item.parts.append(part)
        item.texts, item.part = [], ""

    # ── Calls ───────────────────────────────────────────────────────────────────────

    def _call(self, start: CallStart) -> Iterator[bytes]:
        tool = self._tools.tool(start.name)
        call_id = ""

        def make(key: str) -> Item:
            nonlocal call_id
            own = (
                start.key
                if start.key and start.key not in self._keys
                else f"call_{key}"
            )
            self._keys.add(own)
            call_id = carried.call_id(own, start.extra)
            return objects.call_item(key, call_id, tool, "", "in_progress")

        yield from self._start(CALL, "ctc" if tool.is_custom else "fc", make)
        item = self._opened
        item.number, item.tool, item.call_id = start.number, tool, call_id

    def _continue_call(self, number: int, text: str) -> Iterator[bytes]:
        item = self._open
        if item is None or item.kind != CALL or item.number != number:
            if text.strip():
                raise UpstreamServiceError("arguments of a call that is over")
            return
        item.texts.append(text)
        if not item.tool.is_custom:  # the text of another is known at its end
            kind = "response.function_call_arguments.delta"
            yield self._in_item(kind, delta=text)

    def _end_call(self) -> Iterator[bytes]:
        item = self._opened
        if not item.texts:
            yield from self._continue_call(item.number, "{}")
        is_cut = self._finish in INCOMPLETE and not json.is_json(item.text)
        status = "incomplete" if is_cut else "completed"
        value = objects.call_item(item.key, item.call_id, item.tool, item.text, status)
        if item.tool.is_custom:
            text = value["input"]
            yield self._in_item("response.custom_tool_call_input.delta", delta=text)
            yield self._in_item("response.custom_tool_call_input.done", input=text)
        else:
            kind = "response.function_call_arguments.done"
            yield self._in_item(kind, name=item.tool.name, arguments=item.text)
        yield from self._done(value)
