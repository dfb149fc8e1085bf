"""What the OpenAPI document says about the addresses in Anthropic's shape."""

from __future__ import annotations

from typing import Any

from webhooks_core.web.json_schema import (
    AND_OTHERS,
    BOOLEAN,
    INTEGER,
    STRING,
    array_of,
    described,
    object_of,
    one_of,
)

OBJECTS = array_of({"type": "object"})
NULLABLE = {"type": ["string", "null"]}
# An upstream of Anthropic's own kind answers with these, too, and they pass as they are.
PASSED_STATUSES = {
    402: "The upstream's account has no credit.",
    403: "The upstream's key may not do this.",
    409: "The upstream has a conflict.",
    502: "A proxy before the upstream failed.",
    504: "The upstream took too long.",
    529: "The upstream is overloaded.",
}
FAULT = AND_OTHERS | object_of(
    ["type"],
    type=described("The kind of the error, for programs."),
    message=described("What is wrong, for people."),
)
ERROR = AND_OTHERS | object_of(
    type=described("Always `error`.", {"const": "error"}),
    error=described("The error.", FAULT),
)
USAGE = AND_OTHERS | object_of(
    [],
    input_tokens=described("Of the prompt, without those of the cache.", INTEGER),
    cache_creation_input_tokens=described(
        "Written to the cache.", {"type": ["integer", "null"]}
    ),
    cache_read_input_tokens=described(
        "Read from the cache.", {"type": ["integer", "null"]}
    ),
    output_tokens=described("Of the response.", INTEGER),
)
CREATE = AND_OTHERS | object_of(
    ["model"],
    model=described("Name of the model endpoint."),
    max_tokens=described("How long the message may be.", {}),
    stream=described(
        "True for server-sent events in place of one response.",
        {"type": ["boolean", "null"], "default": False},
    ),
    messages=described("The turns, each with `role` and `content`.", OBJECTS),
)
MESSAGE = AND_OTHERS | object_of(
    ["content"],
    id=described("The id of the message."),
    type=described("Always `message`.", {"const": "message"}),
    role=described("Always `assistant`.", {"const": "assistant"}),
    model=described("The name of the model endpoint."),
    content=described("Blocks of text, thinking and calls of tools.", OBJECTS),
    stop_reason=described("Why the message stopped.", NULLABLE),
    stop_sequence=described("The sequence at which it stopped.", NULLABLE),
    usage=described("What the message used.", USAGE),
)
TOKENS = object_of(
    ["input_tokens"],
    input_tokens=described("How many tokens the request has.", INTEGER),
    estimated=described("True if they are an estimate from the text.", BOOLEAN),
)
MODEL = object_of(
    type=described("Always `model`.", {"const": "model"}),
    id=described("The name for requests."),
    display_name=described("The same name."),
    created_at=described("Always the beginning of 1970: it is not known."),
    lifecycle=described("Always `active`.", {"const": "active"}),
)
MODELS = object_of(
    data=described("The models of the page.", array_of(MODEL)),
    has_more=described("True if more follow in this direction.", BOOLEAN),
    first_id=described("Of the first model, for `before_id`.", NULLABLE),
    last_id=described("Of the last model, for `after_id`.", NULLABLE),
)
EVENT = AND_OTHERS | object_of(
    ["type"],
    type=described(
        "The event's name.",
        one_of(
            *("message_start", "content_block_start", "content_block_delta"),
            *("content_block_stop", "message_delta", "message_stop", "ping", "error"),
        ),
    ),
)
EVENTS = described(
    "Server-sent events: the shape of each one.",
    object_of(
        ["data"],
        event=described("The same as the `type` of the data."),
        data=described(
            "An event of Anthropic's Messages API.",
            STRING | {"contentMediaType": "application/json", "contentSchema": EVENT},
        ),
    ),
)
SCHEMAS: dict[str, Any] = {
    "GatewayMessagesRequest": described("As Anthropic's Messages API has it.", CREATE),
    "GatewayMessage": MESSAGE,
    "GatewayMessagesError": ERROR,
}
TURNS = [{"role": "user", "content": "Which ships give way to ferries?"}]
EXAMPLES = {
    "Message": {"model": "echo", "max_tokens": 1024, "messages": TURNS},
    "Stream": {"model": "echo", "max_tokens": 1024, "messages": TURNS, "stream": True},
}
