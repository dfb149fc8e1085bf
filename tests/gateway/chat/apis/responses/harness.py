"""What tests of the Responses API share: its events as its official models read them."""

import json
from typing import Any

from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from tests.gateway.chat.harness import (
    Gateway,
    named_events_of,
)
from tests.gateway.chat.mock_upstream import event

PATH = "/v1/responses"
EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
ENDS = ("response.completed", "response.incomplete", "response.failed")
TIDE = {
    "type": "function",
    "name": "tide",
    "description": "When the tide is high.",
    "parameters": {"type": "object", "properties": {"at": {"type": "string"}}},
    "strict": True,
}
PATCH = {
    "type": "custom",
    "name": "apply_patch",
    "description": "Edit files.",
    "format": {"type": "grammar", "syntax": "lark", "definition": 'start: "x"'},
}


def create(
    gateway: Gateway, *, headers: dict[str, str] | None = None, **fields: Any
) -> Any:
    """Send a request; return the response."""
    body = {"model": "small", "input": "Hello", **fields}
    return gateway.post(json.dumps(body), path=PATH, headers=headers)


def answer(gateway: Gateway, **fields: Any) -> dict[str, Any]:
    response = create(gateway, **fields)
    assert response.status_code == 200, response.text
    value: dict[str, Any] = response.json()
    Response.model_validate(value)
    return value


def events_of(content: bytes) -> list[dict[str, Any]]:
    """Return the events of a stream, each checked against its model, and all in their order."""
    events = named_events_of(content)
    check_order(events)
    return events


def check_order(events: list[dict[str, Any]]) -> None:
    """Check numbers, and that each item and part is added, goes on and ends in this order."""
    first = events[0]["sequence_number"]
    numbers = [item["sequence_number"] for item in events]
    assert numbers == list(range(first, first + len(events)))
    assert [e["type"] for e in events if e["type"] in ENDS] == [events[-1]["type"]]
    is_failure = events[-1]["type"] == "response.failed"
    for value in events[: -1 if is_failure else None]:
        EVENT.validate_python(value)
    open_items: dict[int, dict[str, Any]] = {}
    done: dict[int, dict[str, Any]] = {}
    open_parts: set[tuple[Any, ...]] = set()
    for value in events:
        kind: str = value["type"]
        place: Any = value.get("output_index")
        if kind == "response.output_item.added":
            assert place == len(open_items) + len(done)
            open_items[place] = value["item"]
        elif kind == "response.output_item.done":
            assert open_items.pop(place)["id"] == value["item"]["id"]
            done[place] = value["item"]
        elif place is not None:
            assert open_items[place]["id"] == value["item_id"]
        part = (place, value.get("content_index"), value.get("summary_index"))
        if kind.endswith("part.added"):
            assert part not in open_parts
            open_parts.add(part)
        elif kind.endswith("part.done"):
            open_parts.remove(part)
        elif part[1:] != (None, None):
            assert part in open_parts
    output = events[-1]["response"]["output"]
    if not is_failure:
        assert not open_items
        assert not open_parts
        assert output == [done[place] for place in sorted(done)]


def kinds(events: list[dict[str, Any]]) -> list[str]:
    return [item["type"].removeprefix("response.") for item in events]


RESPONSE: dict[str, Any] = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1_700_000_000,
    "status": "completed",
    "error": None,
    "incomplete_details": None,
    "model": "upstream-model",
    "metadata": {"model": "mine", "n": 1.0},
    "output": [
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "Hello", "annotations": []}],
        }
    ],
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "usage": {
        "input_tokens": 9,
        "input_tokens_details": {"cached_tokens": 4},
        "output_tokens": 2,
        "output_tokens_details": {"reasoning_tokens": 1},
        "total_tokens": 11,
    },
}


def part(kind: str, number: int, **fields: Any) -> bytes:
    name = f"response.{kind}"
    return b"event: %s\n" % name.encode() + event(
        {"type": name, "sequence_number": number, **fields}
    )


def in_progress(**fields: Any) -> dict[str, Any]:
    return {**RESPONSE, "status": "in_progress", "output": [], "usage": None, **fields}


CREATED = part("created", 0, response=in_progress())


DELTA = part("output_text.delta", 1, delta="Hello", item_id="msg_1", output_index=0)


COMPLETED = part("completed", 2, response=RESPONSE)
