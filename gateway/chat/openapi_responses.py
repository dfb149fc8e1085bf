"""What the OpenAPI document says about the Responses API."""

from __future__ import annotations

from typing import Any

from webhooks_core.web.json_schema import (
    AND_OTHERS,
    INTEGER,
    STRING,
    array_of,
    described,
    object_of,
)

OBJECTS = array_of({"type": "object"})
REQUEST = AND_OTHERS | object_of(
    ["model"],
    model=described("Name of the model endpoint."),
    stream=described(
        "True for server-sent events in place of one response.",
        {"type": ["boolean", "null"], "default": False},
    ),
    input=described("A text, or the items of the conversation.", {}),
    instructions=described("What the model is to do.", {"type": ["string", "null"]}),
    tools=described("Functions, and custom tools that take a text.", {}),
)
ERROR = object_of(
    ["code", "message"],
    code=described(
        "`context_length_exceeded`, `rate_limit_exceeded`, `server_error` …"
    ),
    message=described("What is wrong, for people."),
)
RESPONSE = AND_OTHERS | object_of(
    ["id", "output"],
    id=described("The id of the response. Nothing is stored under it."),
    object=described("Always `response`.", {"const": "response"}),
    status=described("`completed`, `incomplete`; in streams also others."),
    model=described("The name of the model endpoint."),
    output=described("Messages, reasoning and calls of tools.", OBJECTS),
    error=described("Why it failed, or null.", {"anyOf": [ERROR, {"type": "null"}]}),
    usage=described(
        "The tokens, or null if the upstream does not say them.",
        {"type": ["object", "null"]},
    ),
)
EVENT = AND_OTHERS | object_of(
    ["type"],
    type=described("`response.created`, `response.output_text.delta` …"),
    sequence_number=described("The number of the event in its stream.", INTEGER),
)
EVENTS = described(
    "Server-sent events: the shape of each one.",
    object_of(
        ["data"],
        event=described("The type of the event."),
        data=described(
            "The last one is `response.completed`, `.incomplete` or `.failed`.",
            STRING | {"contentMediaType": "application/json", "contentSchema": EVENT},
        ),
    ),
)
SCHEMAS: dict[str, Any] = {
    "GatewayResponsesRequest": described(
        "In the shape of OpenAI's Responses API.", REQUEST
    ),
    "GatewayResponse": RESPONSE,
}
QUESTION = "Which ships give way to ferries?"
EXAMPLES = {
    "Response": {
        "model": "echo",
        "instructions": "Answer in one sentence.",
        "input": QUESTION,
    },
    "Stream": {
        "model": "echo",
        "input": [{"role": "user", "content": QUESTION}],
        "stream": True,
    },
}
