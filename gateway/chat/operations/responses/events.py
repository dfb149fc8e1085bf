"""The stream of a translated response: chunks of a chat completion become its events. Pure.

Each event has its `type` and a `sequence_number`. An item is added before its parts, and done
when it is complete: clients run a tool when its call is done.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gateway import json
from gateway.chat.core import answers, chunks
from gateway.chat.errors import UpstreamServiceError
from gateway.chat.operations import carried
from gateway.chat.operations.carried import Carrier
from gateway.chat.operations.responses import result
from gateway.chat.operations.responses.open_items import (
    OpenCall,
    OpenItem,
    OpenMessage,
    OpenReasoning,
)
from gateway.chat.operations.responses.result import Item, Skeleton
from gateway.chat.operations.responses.tools import Tools
from gateway.chat.sse import MAX_EVENT_BYTES
from gateway.chat.streaming.transformer import Transformer
from gateway.chat.tokens import Usage, text_length
from gateway.json import objects

TEXT, REFUSAL = "output_text", "refusal"


class ResponseEvents(Transformer):
    """A Transformer of the events of a chat completion, as gateway.chat.streaming describes it.

    Without `is_stream` it puts a response together, and has no events.
    """

    def __init__(
        self,
        skeleton: Skeleton,
        known: Tools,
        carrier: Carrier,
        prompt_tokens: Callable[[], int],
        *,
        is_stream: bool = True,
    ) -> None:
        super().__init__()
        self._is_stream = is_stream
        self._skeleton = skeleton.for_stream() if is_stream else skeleton
        self._prompt_tokens = prompt_tokens  # estimates them
        self._tools = known
        self._carrier = carrier
        self._number = 0
        self._output: list[Item] = []  # in their places, also those that are not done
        self._reasoning: OpenReasoning | None = None
        self._message: OpenMessage | None = None
        self._numbers = answers.CallNumbers()
        self._calls: dict[int, OpenCall] = {}  # by their numbers
        self._last_call: OpenCall | None = None
        self._waiting: dict[int, dict[str, Any]] = {}  # calls without a name
        self._size = 0
        self._finish_reason: str | None = None

    # ── What the transformer's users call ───────────────────────────────────────────

    def _transform(self, payload: bytes) -> None:
        self.read(chunks.parse(payload))

    @property
    def has_finished(self) -> bool:
        return self._finish_reason is not None

    def end(self) -> bytes:
        """Return the events that complete the items and the response."""
        response = self.ended()
        self._emit(f"response.{response['status']}", response=response)
        return self.flush()

    def ended(self) -> dict[str, Any]:
        """Complete the items, and return the response."""
        self._begin()
        self._end_reasoning()
        self._end_message()
        for index in [*self._waiting]:
            self._start_call(index, self._waiting.pop(index))
        for call in self._calls.values():
            self._end_call(call)
        return self._skeleton.ended(self._finish_reason, self._output, self._usage())

    def failed(self, error: Mapping[str, Any]) -> bytes:
        """Return the event that ends a response that has failed."""
        self._begin()
        response = self._skeleton.response(
            "failed", self._output, self._usage(), error=error
        )
        self._emit("response.failed", response=response)
        return self.flush()

    def _usage(self) -> dict[str, Any]:
        usage = self.usage or Usage(self._prompt_tokens(), None)
        return result.usage_of(usage, self.characters)

    # ── Chunks ──────────────────────────────────────────────────────────────────────

    def read(self, value: dict[str, Any]) -> None:
        """Read a chunk, or a whole completion. Raises as chunks.understand() does."""
        chunk = chunks.understand(value)
        self.chunks += chunk.is_known
        if chunk.usage is not None:
            self.usage = chunk.usage.at_least(self.usage)
        if chunk.is_known:
            self._begin()
        for choice in objects(chunk.value.get("choices")):
            if choice.get("index", 0) in (0, None):
                self._read_choice(choice)

    def _read_choice(self, choice: Mapping[str, Any]) -> None:
        delta = answers.said_in(choice)
        length = text_length(delta)
        self.characters += length
        self._limit(length)
        self._read_delta(delta, choice.get("logprobs"))
        self._finish_reason = answers.finish_reason(choice) or self._finish_reason

    def _read_delta(self, delta: Mapping[str, Any], logprobs: Any) -> None:
        fields = {name: delta[name] for name in carried.REASONING if delta.get(name)}
        thought, _ = answers.thought_in(delta)
        if fields or thought:
            self._reason(fields, thought)
        refusal = delta.get("refusal")
        for text in filter(None, answers.texts_of(delta.get("content"))):
            self._say(TEXT, text, logprobs)
        if isinstance(refusal, str) and refusal:
            self._say(REFUSAL, refusal)
        if annotations := result.citations(delta.get("annotations")):
            self._cite(annotations)
        for call in answers.calls_in(delta):
            self._call(call)

    def _limit(self, length: int) -> None:
        """The last event repeats the whole answer, which must not grow without end."""
        self._size += length
        if self._size > MAX_EVENT_BYTES:
            raise UpstreamServiceError("the answer is too large")

    # ── Events ──────────────────────────────────────────────────────────────────────

    def _emit(self, kind: str, **fields: Any) -> None:
        if not self._is_stream:
            return
        value = {"type": kind, **fields, "sequence_number": self._number}
        self._number += 1
        data = json.dumps(value)
        self._ready.append(b"event: " + kind.encode() + b"\ndata: " + data)

    def _emit_in(self, item: OpenItem, kind: str, **fields: Any) -> None:
        """Emit an event of an item that is not done."""
        self._emit(kind, item_id=item.key, output_index=item.place, **fields)

    def _begin(self) -> None:
        if self._number == 0 and self._is_stream:
            response = self._skeleton.response("in_progress", [])
            self._emit("response.created", response=response)
            self._emit("response.in_progress", response=response)

    def _added(self, item: Item) -> None:
        self._emit(
            "response.output_item.added", output_index=len(self._output), item=item
        )
        self._output.append(item)

    def _done(self, place: int, item: Item) -> None:
        self._output[place] = item
        self._emit("response.output_item.done", output_index=place, item=item)

    # ── Reasoning ───────────────────────────────────────────────────────────────────

    def _reason(self, fields: Mapping[str, Any], text: str) -> None:
        if self._reasoning is None:
            self._end_message()
            place = len(self._output)
            key = self._skeleton.item_id("rs", place)
            self._added(result.reasoning_item(key, "", None))
            self._reasoning = OpenReasoning(key, place)
        item = self._reasoning
        for name, value in fields.items():
            _add(item.fields, name, value)
        if text:
            if not item.texts:
                part = {"type": "summary_text", "text": ""}
                self._summary("response.reasoning_summary_part.added", part=part)
            item.texts.append(text)
            self._summary("response.reasoning_summary_text.delta", delta=text)

    def _summary(self, kind: str, **fields: Any) -> None:
        if (item := self._reasoning) is not None:
            self._emit_in(item, kind, summary_index=0, **fields)

    def _end_reasoning(self) -> None:
        item = self._reasoning
        if item is None:
            return
        if text := item.text:
            self._summary("response.reasoning_summary_text.done", text=text)
            part = {"type": "summary_text", "text": text}
            self._summary("response.reasoning_summary_part.done", part=part)
        self._reasoning = None
        fields = {name: _joined(value) for name, value in item.fields.items()}
        if self._is_stream and (details := fields.get(carried.DETAILS)):
            fields[carried.DETAILS] = carried.joined(details)
        encrypted = self._carrier.encrypted_content(fields)
        self._done(item.place, result.reasoning_item(item.key, text, encrypted))

    # ── Text ────────────────────────────────────────────────────────────────────────

    def _say(self, kind: str, text: str, logprobs: Any = None) -> None:
        self._end_reasoning()
        if self._message is None:
            place = len(self._output)
            key = self._skeleton.item_id("msg", place)
            self._added(result.message_item(key, [], "in_progress"))
            self._message = OpenMessage(key, place)
        item = self._message
        if item.kind != kind:
            self._end_part()
            item.kind = kind
            empty = result.text_part("") if kind == TEXT else result.refusal_part("")
            self._part("response.content_part.added", part=empty)
        item.texts.append(text)
        if kind == REFUSAL:
            self._part("response.refusal.delta", delta=text)
            return
        tokens = result.token_logprobs(logprobs)
        item.logprobs += tokens
        self._part("response.output_text.delta", delta=text, logprobs=tokens)

    def _part(self, kind: str, **fields: Any) -> None:
        if (item := self._message) is not None:
            self._emit_in(item, kind, content_index=len(item.parts), **fields)

    def _cite(self, annotations: list[Item]) -> None:
        item = self._message
        if item is None or item.kind != TEXT:
            return  # a citation without a text cites nothing
        for annotation in annotations:
            self._part(
                "response.output_text.annotation.added",
                annotation_index=len(item.annotations),
                annotation=annotation,
            )
            item.annotations.append(annotation)

    def _end_part(self) -> None:
        item = self._message
        if item is None or not item.kind:
            return
        if item.kind == TEXT:
            part = result.text_part(item.text)
            part |= {"logprobs": item.logprobs, "annotations": item.annotations}
            self._part(
                "response.output_text.done", text=item.text, logprobs=item.logprobs
            )
        else:
            part = result.refusal_part(item.text)
            self._part("response.refusal.done", refusal=item.text)
        self._part("response.content_part.done", part=part)
        item.parts.append(part)
        item.texts, item.kind, item.logprobs, item.annotations = [], "", [], []

    def _end_message(self) -> None:
        item = self._message
        if item is None:
            return
        self._end_part()
        self._message = None
        status = (
            "incomplete" if self._finish_reason in result.INCOMPLETE else "completed"
        )
        self._done(item.place, result.message_item(item.key, item.parts, status))

    # ── Calls ───────────────────────────────────────────────────────────────────────

    def _call(self, delta: Mapping[str, Any]) -> None:
        index = self._numbers.number_of(delta)
        name, arguments = answers.function_of(delta)
        if (call := self._calls.get(index)) is not None:
            self._continue_call(call, arguments)
            return
        waiting = self._waiting.pop(index, {"arguments": ""})
        for key, value in (
            ("id", answers.key_of(delta)),
            ("name", name),
            ("extra", delta.get(carried.CALL)),
        ):
            if value and key not in waiting:
                waiting[key] = value
        waiting["arguments"] += arguments
        if waiting.get("name"):
            self._start_call(index, waiting)
        else:
            self._waiting[index] = waiting

    def _start_call(self, index: int, given: Mapping[str, Any]) -> None:
        self._end_reasoning()
        self._end_message()
        if self._last_call is not None and json.is_json(self._last_call.text):
            self._end_call(self._last_call)  # so that its tool can run
        tool, place = self._tools.tool(given.get("name", "")), len(self._output)
        key = self._skeleton.item_id("ctc" if tool.is_custom else "fc", place)
        own = given.get("id")
        if own is None or any(own == call.own for call in self._calls.values()):
            own = f"call_{key}"
        call_id = self._carrier.call_id(own, given.get("extra"))
        call = OpenCall(key, place, own=own, call_id=call_id, tool=tool)
        self._calls[index] = self._last_call = call
        self._added(result.call_item(key, call_id, tool, "", "in_progress"))
        self._continue_call(call, given["arguments"])

    def _continue_call(self, call: OpenCall, arguments: str) -> None:
        if arguments:
            if call.is_done:
                if arguments.strip():
                    raise UpstreamServiceError("a call goes on after its end")
                return
            call.texts.append(arguments)
            if not call.tool.is_custom:  # the text of another is known at its end
                self._emit_in(
                    call, "response.function_call_arguments.delta", delta=arguments
                )

    def _end_call(self, call: OpenCall) -> None:
        if call.is_done:
            return
        if not call.texts:
            self._continue_call(call, result.NO_ARGUMENTS)
        call.is_done = True
        is_cut = self._finish_reason in result.INCOMPLETE and not json.is_json(
            call.text
        )
        status = "incomplete" if is_cut else "completed"
        item = result.call_item(call.key, call.call_id, call.tool, call.text, status)
        if call.tool.is_custom:
            text = item["input"]
            self._emit_in(call, "response.custom_tool_call_input.delta", delta=text)
            self._emit_in(call, "response.custom_tool_call_input.done", input=text)
        else:
            self._emit_in(
                call,
                "response.function_call_arguments.done",
                name=call.tool.name,
                arguments=call.text,
            )
        self._done(call.place, item)


def _add(fields: dict[str, Any], name: str, value: Any) -> None:
    """Collect what a field of reasoning holds: texts and lists come in parts."""
    parts = fields.setdefault(name, [])
    if isinstance(value, list):
        parts += value
    else:
        parts.append(value)


def _joined(parts: list[Any]) -> Any:
    return "".join(parts) if all(isinstance(part, str) for part in parts) else parts
