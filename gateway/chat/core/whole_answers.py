"""A whole answer that a server sends in place of a stream, as the events of that stream. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gateway.chat.core import json_numbers
from gateway.chat.core.failures import replaces_answer
from gateway.chat.core.json_parts import mapping, objects

Event = dict[str, Any]
# The members of a message's block that come in deltas: the type of a delta, its member, and
# what stands in the block before.
DELTAS: Mapping[str, tuple[str, str, Any]] = {
    "text": ("text_delta", "text", ""),
    "thinking": ("thinking_delta", "thinking", ""),
    "signature": ("signature_delta", "signature", ""),
    "input": ("input_json_delta", "partial_json", {}),
}
# The texts of the items and parts of a response: where they stand, and what their events are.
TEXTS: Mapping[str, tuple[str, str]] = {
    "output_text": ("text", "response.output_text"),
    "reasoning_text": ("text", "response.reasoning_text"),
    "refusal": ("refusal", "response.refusal"),
    "function_call": ("arguments", "response.function_call_arguments"),
    "custom_tool_call": ("input", "response.custom_tool_call_input"),
}


def blocks_of(raw: bytes) -> list[bytes]:
    """Return the events of a whole answer as blocks of a stream; anything else as it is."""
    if not raw.lstrip().startswith(b"{"):
        return [raw]
    try:
        value = json_numbers.loads_any(raw)
        if replaces_answer(value):
            return [raw]
        return [*map(_block, _events(value))] or [raw]
    except (ValueError, TypeError):  # no JSON, or nested too deeply
        return [raw]


def _block(event: Event) -> bytes:
    name = "" if "choices" in event else f"event: {event['type']}\n"
    return name.encode() + b"data: " + json_numbers.dumps(event)


def _events(value: Mapping[str, Any]) -> Iterator[Event]:
    match value:
        case {"choices": [{"message": dict()}, *_]}:
            yield from _chunks(value)
        case {"type": "message", "content": list(blocks)}:
            yield from _message(value, objects(blocks))
        case {
            "object": "response",
            "status": "completed" | "incomplete",
            "output": list(items),
        }:
            for number, event in enumerate(_response(value, objects(items))):
                yield {**event, "sequence_number": number}


# ── A chat completion ───────────────────────────────────────────────────────────────


def _chunks(completion: Mapping[str, Any]) -> Iterator[Event]:
    head = {**completion, "object": "chat.completion.chunk"}
    usage = head.pop("usage", None)
    choices = objects(head.pop("choices"))
    yield {**head, "choices": [*map(_said, choices)]}
    for choice in choices:
        if reason := choice.get("finish_reason"):
            index = choice.get("index", 0)
            end = {"index": index, "delta": {}, "finish_reason": reason}
            yield {**head, "choices": [end]}
    if usage:
        yield {**head, "choices": [], "usage": usage}


def _said(choice: Mapping[str, Any]) -> Event:
    rest = {**choice, "finish_reason": None}
    message = mapping(rest.pop("message", None))
    return {**rest, "delta": with_numbers(message)}


def with_numbers(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a whole message whose calls say which they are, as those of a stream do."""
    calls = message.get("tool_calls")
    if not calls or not isinstance(calls, list):
        return message
    numbered = [
        {**call, "index": number} if isinstance(call, dict) else call
        for number, call in enumerate(calls)
    ]
    return {**message, "tool_calls": numbered}


# ── A message of Anthropic's API ────────────────────────────────────────────────────


def _message(message: Mapping[str, Any], blocks: Sequence[Event]) -> Iterator[Event]:
    reason = {name: message.get(name) for name in ("stop_reason", "stop_sequence")}
    start = {**message, **dict.fromkeys(reason), "content": []}
    yield {"type": "message_start", "message": start}
    for index, block in enumerate(blocks):
        parts = {name: DELTAS[name] for name in DELTAS if block.get(name)}
        empty = {name: empty for name, (_, _, empty) in parts.items()}
        start = {"type": "content_block_start", "index": index}
        yield {**start, "content_block": {**block, **empty}}
        for name, (kind, member, _) in parts.items():
            part = block[name]
            text = part if isinstance(part, str) else json_numbers.dumps(part).decode()
            delta = {"type": kind, member: text}
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield {"type": "message_delta", "delta": reason, "usage": message.get("usage")}
    yield {"type": "message_stop"}


# ── A response of OpenAI's Responses API ────────────────────────────────────────────


def _response(response: Mapping[str, Any], items: Sequence[Event]) -> Iterator[Event]:
    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    for kind in ("response.created", "response.in_progress"):
        yield {"type": kind, "response": begun}
    for place, item in enumerate(items):
        yield from _item(item, {"output_index": place})
    yield {"type": f"response.{response['status']}", "response": response}


def _item(item: Mapping[str, Any], place: Mapping[str, Any]) -> Iterator[Event]:
    parts = objects(item.get("content"))
    begun = {**item, **_without_text(item)} | ({"content": []} if parts else {})
    if "status" in item:
        begun["status"] = "in_progress"
    yield {"type": "response.output_item.added", **place, "item": begun}
    inner = {**place, "item_id": item.get("id")}
    yield from _text(item, inner)
    for index, part in enumerate(parts):
        at = {**inner, "content_index": index}
        begun = {**part, **_without_text(part)}
        yield {"type": "response.content_part.added", **at, "part": begun}
        yield from _text(part, at)
        yield {"type": "response.content_part.done", **at, "part": part}
    yield {"type": "response.output_item.done", **place, "item": item}


def _without_text(value: Mapping[str, Any]) -> Event:
    name, _ = TEXTS.get(str(value.get("type")), ("", ""))
    return {name: ""} if name else {}


def _text(value: Mapping[str, Any], at: Mapping[str, Any]) -> Iterator[Event]:
    """Yield the text of an item or a part, and its end."""
    name, kind = TEXTS.get(str(value.get("type")), ("", ""))
    if name:
        given = {"logprobs": value["logprobs"]} if "logprobs" in value else {}
        text = value.get(name)
        yield {"type": f"{kind}.delta", **at, "delta": text, **given}
        yield {"type": f"{kind}.done", **at, name: text, **given}
