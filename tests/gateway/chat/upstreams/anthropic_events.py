"""Messages and events as Anthropic's API sends them."""

import json
from typing import Any

from tests.gateway.chat.mock_upstream import event, sends

MESSAGE: dict[str, Any] = {
    "id": "msg_01XFDUDYJgAACzvnptvVoYEL",
    "type": "message",
    "role": "assistant",
    "model": "claude-there",
    "content": [{"type": "text", "text": "Hello!"}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {
        "input_tokens": 12,
        "cache_read_input_tokens": 5,
        "cache_creation_input_tokens": None,
        "output_tokens": 6,
    },
}


def started(**usage: Any) -> dict[str, Any]:
    usage = {"input_tokens": 25, "output_tokens": 1} | usage
    message = {**MESSAGE, "content": [], "stop_reason": None, "usage": usage}
    return {"type": "message_start", "message": message}


def delta(index: int, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": fields}


def block(index: int, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": fields}


def stopped(reason: str, tokens: int = 15) -> list[dict[str, Any]]:
    end = {"stop_reason": reason, "stop_sequence": None}
    return [
        {"type": "message_delta", "delta": end, "usage": {"output_tokens": tokens}},
        {"type": "message_stop"},
    ]


def named(value: dict[str, Any]) -> bytes:
    return f"event: {value['type']}\n".encode() + event(value)


def sends_events(*events: dict[str, Any]) -> Any:
    """A stream as the API sends it: each event has its type as a name, too."""
    return sends(*map(named, events))


TEXT_STREAM = (
    started(),
    block(0, type="text", text=""),
    {"type": "ping"},
    delta(0, type="text_delta", text="Hello"),
    delta(0, type="text_delta", text=" harbour"),
    {"type": "content_block_stop", "index": 0},
)


TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "tide",
        "description": "The tide at a place",
        "parameters": {"type": "object", "properties": {"at": {"type": "string"}}},
    },
}
CALL = {
    "id": "toolu_1",
    "type": "function",
    "function": {"name": "tide", "arguments": '{"at":"Brest"}'},
}
USE = {"type": "tool_use", "id": "toolu_1", "name": "tide", "input": {"at": "Brest"}}
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
HIDDEN = {"type": "redacted_thinking", "data": "ZGF0YQ=="}
LATER = {"type": "thinking", "thinking": "And so.", "signature": "bGF0ZXI="}
SAID = {"type": "text", "text": "Well"}
STOP = {"type": "content_block_stop"}
# A message of each kind of block, in parts.
BLOCK_STREAM = (
    started(),
    block(0, type="thinking", thinking="", signature=""),
    *(delta(0, type="thinking_delta", thinking=part) for part in ("H", "m.")),
    *(delta(0, type="signature_delta", signature=part) for part in ("c2", "ln")),
    {**STOP, "index": 0},
    block(1, **HIDDEN),
    {**STOP, "index": 1},
    block(2, type="text", text=""),
    delta(2, type="text_delta", text="Well"),
    {**STOP, "index": 2},
    block(3, type="tool_use", id="toolu_1", name="tide", input={}),
    *(
        delta(3, type="input_json_delta", partial_json=part)
        for part in ('{"at":', '"Brest"}')
    ),
    {**STOP, "index": 3},
    *stopped("tool_use"),
)


def sent_body(upstream) -> Any:
    return upstream.requests[-1].json


OVERLOADED = {
    "type": "error",
    "error": {"type": "overloaded_error", "message": "Overloaded"},
    "request_id": "req_011",
}


def with_model(name: str, *events: dict[str, Any]) -> bytes:
    """Return a stream as a client gets it."""
    stream = b"".join(map(named, events))
    return stream.replace(b'"claude-there"', json.dumps(name).encode())
