"""The shapes of requests, answers and events in the OpenAPI document: OpenAI's and Anthropic's."""

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
    ref,
)

OBJECTS = array_of({"type": "object"})
NULLABLE = {"type": ["string", "null"]}
NULLABLE_INTEGER = {"type": ["integer", "null"]}
NAME = described("Name of the model endpoint.")
STREAM = described(
    "True for server-sent events in place of one response.",
    {"type": ["boolean", "null"], "default": False},
)
FOR_PEOPLE = described("What is wrong, for people.")
QUESTION = "Which ships give way to ferries?"


def events_of(text: str, data: dict[str, Any], **names: Any) -> dict[str, Any]:
    """Return the shape of the events of a stream, whose data is a text."""
    return described(
        "Server-sent events: the shape of each one.",
        object_of(["data"], **names, data=described(text, STRING | data)),
    )


def as_json(schema: Any) -> dict[str, Any]:
    """Return the shape of a text that is JSON."""
    return {"contentMediaType": "application/json", "contentSchema": schema}


# ── OpenAI's chat completions and embeddings ────────────────────────────────────────

TIMESTAMP = r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d P[SD]T$"
TOKENS = described(
    "What the request used, as the upstream counts.",
    object_of(
        [],
        prompt_tokens=described("Of the messages.", INTEGER),
        completion_tokens=described("Of the response.", INTEGER),
    )
    | AND_OTHERS,
)


def _completion(choices: str) -> dict[str, Any]:
    """Return the schema of a completion or of a chunk. Everything else is the upstream's."""
    return AND_OTHERS | object_of(
        ["choices"],
        choices=described(choices, OBJECTS),
        id=described("The upstream's id of the response."),
        object=described("The kind of this object."),
        created=described("Unix time in seconds.", INTEGER),
        model=described("The name of the model endpoint."),
        usage=TOKENS,
    )


CHAT = AND_OTHERS | object_of(
    ["model"],
    model=NAME,
    stream=STREAM,
    messages=described("The conversation, each with `role` and `content`.", OBJECTS),
)
FAILURE = object_of(
    error=described("A text."),
    timestamp=described(
        "`YYYY-MM-DD HH:MM:SS` and the abbreviation of the zone, in the US Pacific time zone.",
        STRING | {"pattern": TIMESTAMP},
    ),
)
ERROR_CHUNK = object_of(
    request_id=described("The id of the request, as in the logs."),
    error=described(
        "Why the stream ended early.",
        object_of(
            status_code=described("The status it would have had.", INTEGER),
            content=described("The failure.", FAILURE),
        ),
    ),
)
OPENAI_ERROR = object_of(
    ["message", "type"],
    message=FOR_PEOPLE,
    type=described("The kind of the error, for programs."),
    param=described("The field that is wrong, or null.", NULLABLE),
    code=described("A more exact kind, or null.", {}),
)
CONVERSATION = [
    {"role": "system", "content": "Answer in one sentence."},
    {"role": "user", "content": QUESTION},
]
CHATS = {
    "Chat": {"model": "echo", "messages": CONVERSATION, "temperature": 0.2},
    "Stream": {"model": "echo", "messages": CONVERSATION, "stream": True},
}
EMBEDDING = AND_OTHERS | object_of(
    ["model"],
    model=described("The name of the model endpoint."),
    input=described("A text, or an array of texts, as OpenAI takes it.", {}),
)
EMBEDDINGS = AND_OTHERS | object_of(
    ["data"],
    data=described("One item for each text, with `embedding`.", OBJECTS),
    usage=TOKENS,
)
TEXTS_TO_EMBED = {"model": "embed", "input": ["Ships give way to ferries."]}
MODEL = object_of(
    id=described("The name for requests."),
    object=described("Always `model`.", {"const": "model"}),
    created=described("Unix time in seconds.", INTEGER),
    owned_by=described("Who serves it."),
)
MODELS = object_of(
    object=described("Always `list`.", {"const": "list"}),
    data=described("The models.", array_of(MODEL)),
)


def chat_events(text: str, last: str, end: str = "") -> dict[str, Any]:
    """Return the events of a chat; an error after the first chunk is the last of them."""
    data = as_json({"anyOf": [ref("GatewayChatChunk"), ref(last)]})
    return events_of(text, {"anyOf": [data, {"const": end}]} if end else data)


# ── OpenAI's Responses API ──────────────────────────────────────────────────────────

RESPONSES_REQUEST = AND_OTHERS | object_of(
    ["model"],
    model=NAME,
    stream=STREAM,
    input=described("A text, or the items of the conversation.", {}),
    instructions=described("What the model is to do.", NULLABLE),
    tools=described("Functions, and custom tools that take a text.", {}),
)
RESPONSE_ERROR = object_of(
    ["code", "message"],
    code=described(
        "`context_length_exceeded`, `rate_limit_exceeded`, `server_error` …"
    ),
    message=FOR_PEOPLE,
)
RESPONSE = AND_OTHERS | object_of(
    ["id", "output"],
    id=described("The id of the response. Nothing is stored under it."),
    object=described("Always `response`.", {"const": "response"}),
    status=described("`completed`, `incomplete`; in streams also others."),
    model=described("The name of the model endpoint."),
    output=described("Messages, reasoning and calls of tools.", OBJECTS),
    error=described(
        "Why it failed, or null.", {"anyOf": [RESPONSE_ERROR, {"type": "null"}]}
    ),
    usage=described(
        "The tokens, or null if the upstream does not say them.",
        {"type": ["object", "null"]},
    ),
)
RESPONSE_EVENT = AND_OTHERS | object_of(
    ["type"],
    type=described("`response.created`, `response.output_text.delta` …"),
    sequence_number=described("The number of the event in its stream.", INTEGER),
)
RESPONSE_EVENTS = events_of(
    "The last one is `response.completed`, `.incomplete` or `.failed`.",
    as_json(RESPONSE_EVENT),
    event=described("The type of the event."),
)
RESPONSES = {
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

# ── Anthropic's Messages API ────────────────────────────────────────────────────────

# An upstream of Anthropic's own kind answers with these, too, and they pass as they are.
PASSED_STATUSES = {
    402: "The upstream's account has no credit.",
    403: "The upstream's key may not do this.",
    409: "The upstream has a conflict.",
    502: "A proxy before the upstream failed.",
    504: "The upstream took too long.",
    529: "The upstream is overloaded.",
}
MESSAGES_ERROR = AND_OTHERS | object_of(
    type=described("Always `error`.", {"const": "error"}),
    error=described(
        "The error.",
        AND_OTHERS
        | object_of(
            ["type"],
            type=described("The kind of the error, for programs."),
            message=FOR_PEOPLE,
        ),
    ),
)
MESSAGE_USAGE = AND_OTHERS | object_of(
    [],
    input_tokens=described("Of the prompt, without those of the cache.", INTEGER),
    cache_creation_input_tokens=described("Written to the cache.", NULLABLE_INTEGER),
    cache_read_input_tokens=described("Read from the cache.", NULLABLE_INTEGER),
    output_tokens=described("Of the response.", INTEGER),
)
MESSAGES_REQUEST = AND_OTHERS | object_of(
    ["model"],
    model=NAME,
    max_tokens=described("How long the message may be.", {}),
    stream=STREAM,
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
    usage=described("What the message used.", MESSAGE_USAGE),
)
MESSAGE_TOKENS = object_of(
    ["input_tokens"],
    input_tokens=described("How many tokens the request has.", INTEGER),
    estimated=described("True if they are an estimate from the text.", BOOLEAN),
)
MESSAGES_MODEL = object_of(
    type=described("Always `model`.", {"const": "model"}),
    id=described("The name for requests."),
    display_name=described("The same name."),
    created_at=described("Always the beginning of 1970: it is not known."),
    lifecycle=described("Always `active`.", {"const": "active"}),
)
MESSAGES_MODELS = object_of(
    data=described("The models of the page.", array_of(MESSAGES_MODEL)),
    has_more=described("True if more follow in this direction.", BOOLEAN),
    first_id=described("Of the first model, for `before_id`.", NULLABLE),
    last_id=described("Of the last model, for `after_id`.", NULLABLE),
)
MESSAGE_EVENT = AND_OTHERS | object_of(
    ["type"],
    type=described(
        "The event's name.",
        one_of(
            *("message_start", "content_block_start", "content_block_delta"),
            *("content_block_stop", "message_delta", "message_stop", "ping", "error"),
        ),
    ),
)
MESSAGE_EVENTS = events_of(
    "An event of Anthropic's Messages API.",
    as_json(MESSAGE_EVENT),
    event=described("The same as the `type` of the data."),
)
TURNS = [{"role": "user", "content": QUESTION}]
MESSAGES = {
    "Message": {"model": "echo", "max_tokens": 1024, "messages": TURNS},
    "Stream": {"model": "echo", "max_tokens": 1024, "messages": TURNS, "stream": True},
}

CONTRACT_FAILURE, OPENAI_FAILURE = ref("GatewayError"), ref("GatewayOpenAIError")
MESSAGES_FAILURE = ref("GatewayMessagesError")
EITHER_FAILURE = {"anyOf": [OPENAI_FAILURE, MESSAGES_FAILURE]}
# What the operations refer to by name.
SCHEMAS: dict[str, Any] = {
    "GatewayChatRequest": described(
        "Every other field goes to the upstream as it is.", CHAT
    ),
    "GatewayChatCompletion": _completion("The responses, each with a `message`."),
    "GatewayChatChunk": _completion("The parts, each with a `delta`."),
    "GatewayChatErrorChunk": ERROR_CHUNK,
    "GatewayOpenAIError": object_of(
        error=described("As OpenAI describes it.", OPENAI_ERROR | AND_OTHERS)
    ),
    "GatewayMessagesRequest": described(
        "As Anthropic's Messages API has it.", MESSAGES_REQUEST
    ),
    "GatewayMessage": MESSAGE,
    "GatewayMessagesError": MESSAGES_ERROR,
    "GatewayResponsesRequest": described(
        "In the shape of OpenAI's Responses API.", RESPONSES_REQUEST
    ),
    "GatewayResponse": RESPONSE,
}
