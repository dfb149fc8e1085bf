"""What the OpenAPI document says about chat, whose addresses have no serializers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from drf_spectacular.utils import extend_schema

from gateway import errors
from gateway.chat import openapi_messages, openapi_responses
from gateway.chat.caching.openapi import cacheable
from gateway.chat.core.errors import EndpointNotFoundError
from gateway.chat.serializers import UsageQuery
from gateway.serializers import response_example
from webhooks_core.web.json_schema import (
    AND_OTHERS,
    INTEGER,
    STRING,
    add_operations,
    array_of,
    body,
    described,
    object_of,
    operation,
    parameter,
    ref,
)

TAGS = ["Gateway chat"]
DAY = {"type": "string", "format": "date"}
GROUPS = {
    "day": described("The day in UTC.", DAY),
    "principal": described("Who sent the requests."),
    "model": described("The name of the model endpoint."),
    "key": described("The number of the gateway key; empty: identity headers."),
    "session": described("The session of Claude Code, or empty."),
    "agent": described("The agent of the session, or empty for the main one."),
}
SUMS = {
    "requests": described("Requests that reached an upstream or the cache.", INTEGER),
    "failures": described("Those of them that failed.", INTEGER),
    "prompt_tokens": described("Tokens of the prompts.", INTEGER),
    "completion_tokens": described("Tokens of the responses.", INTEGER),
    "estimated_requests": described(
        "Requests whose tokens or cost are in part an estimate.", INTEGER
    ),
    "cost": described("A decimal, in the currency of the prices."),
    "cached_requests": described("Requests that the cache answered.", INTEGER),
}
AMOUNT = {
    "oneOf": [INTEGER, {"type": "string"}],
    "description": "A decimal text for costs.",
}
USAGE = object_of(
    **{
        "from": described("The first day.", DAY),
        "to": described("The last day, included.", DAY),
    },
    items=described("One for each group.", array_of(object_of([], **GROUPS, **SUMS))),
    total=described("Sums of all items.", object_of([], **SUMS)),
    budgets=described(
        "What is left of the tenant's budgets now.",
        array_of(
            object_of(
                name=described("The name in the configuration."),
                subject=described("Whose counter it is."),
                counts=described("`requests`, `tokens` or `cost`."),
                window=described("`minute`, `hour`, `day`, `week` or `month`, in UTC."),
                **dict.fromkeys(("limit", "used", "left"), AMOUNT),
                resets_at=described(
                    "When the window starts again.",
                    {"type": "string", "format": "date-time"},
                ),
            )
        ),
    ),
)
TOTAL = dict(zip(SUMS, (3, 0, 27, 6, 0, "0.000007650", 0), strict=True))
DESCRIBE_USAGE = extend_schema(
    operation_id="gateway_usage",
    tags=TAGS,
    summary="What the tenant has used, summed by day, principal and model",
    parameters=[UsageQuery],
    responses={200: USAGE},
    examples=[
        response_example(
            {
                "from": "2026-11-01",
                "to": "2026-11-20",
                "items": [],
                "total": TOTAL,
                "budgets": [],
            }
        )
    ],
)

OBJECTS = array_of({"type": "object"})
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
    model=described("Name of the model endpoint."),
    stream=described(
        "True for server-sent events in place of one response.",
        {"type": ["boolean", "null"], "default": False},
    ),
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
    message=described("What is wrong, for people."),
    type=described("The kind of the error, for programs."),
    param=described("The field that is wrong, or null.", {"type": ["string", "null"]}),
    code=described("A more exact kind, or null.", {}),
)
SCHEMAS = {
    "GatewayChatRequest": described(
        "Every other field goes to the upstream as it is.", CHAT
    ),
    "GatewayChatCompletion": _completion("The responses, each with a `message`."),
    "GatewayChatChunk": _completion("The parts, each with a `delta`."),
    "GatewayChatErrorChunk": ERROR_CHUNK,
    "GatewayOpenAIError": object_of(
        error=described("As OpenAI describes it.", OPENAI_ERROR | AND_OTHERS)
    ),
    **openapi_messages.SCHEMAS,
    **openapi_responses.SCHEMAS,
}
MESSAGES = [
    {"role": "system", "content": "Answer in one sentence."},
    {"role": "user", "content": "Which ships give way to ferries?"},
]
CHATS = {
    "Chat": {"model": "echo", "messages": MESSAGES, "temperature": 0.2},
    "Stream": {"model": "echo", "messages": MESSAGES, "stream": True},
}
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
FAILURES = {
    400: "The request is not valid, or the endpoint cannot serve it.",
    401: errors.ERRORS[401]().detail,
    403: errors.ERRORS[403]().detail,
    404: str(EndpointNotFoundError()),
    413: errors.ERRORS[413]().detail,
    415: errors.ERRORS[415]().detail,
    429: errors.ERRORS[429]().detail,
    500: "The upstream failed, or we did.",
    503: errors.ERRORS[503]().detail,
}


def _operation(
    name: str,
    summary: str,
    schema: Any,
    statuses: Sequence[int] = tuple(FAILURES),
    *,
    error: str = "GatewayOpenAIError",
    other_error: str = "",
    **fields: Any,
) -> dict[str, Any]:
    texts = FAILURES | openapi_messages.PASSED_STATUSES
    shapes = [ref(name) for name in (error, other_error) if name]
    shape = {"anyOf": shapes} if other_error else shapes[0]
    failures = {status: body(shape, description=texts[status]) for status in statuses}
    return operation(
        f"gateway_{name}",
        summary,
        {200: body(schema, description=summary)} | failures,
        tags=TAGS,
        security=[{"gatewayKey": []}, {"gatewayTenant": [], "gatewayPrincipal": []}],
        **fields,
    )


def _chat(name: str, text: str, error: str, *, last: str, end: str = "") -> Any:
    """Describe an address of chat; an error after a stream's first chunk is its last event."""
    described_chat = _operation(
        name,
        "Complete a chat, at once or as a stream",
        ref("GatewayChatCompletion"),
        error=error,
        requestBody=body(ref("GatewayChatRequest"), CHATS, required=True),
    )
    data: dict[str, Any] = {
        "contentMediaType": "application/json",
        "contentSchema": {"anyOf": [ref("GatewayChatChunk"), ref(last)]},
    }
    if end:
        data = {"anyOf": [data, {"const": end}]}
    events = described(
        "Server-sent events: the shape of each one.",
        object_of(data=described(text, STRING | data)),
    )
    content = described_chat["responses"]["200"]["content"]
    content["text/event-stream"] = {"schema": events}
    return cacheable(described_chat)


def _contract_chat(name: str) -> Any:
    text = "A chunk, or at the end the error chunk."
    return _chat(name, text, "GatewayError", last="GatewayChatErrorChunk")


# A client that sends it gets Anthropic's shape.
VERSION = parameter(
    "anthropic-version",
    "For Anthropic's shape in place of OpenAI's.",
    required=False,
) | {"in": "header"}


def _models(name: str) -> Any:
    texts = {
        "limit": "Anthropic's shape: the size of the page, 1 to 1,000; 20 by default.",
        "after_id": "Anthropic's shape: the model before the page.",
        "before_id": "Anthropic's shape: the model after the page.",
    }
    pages = [parameter(key, text, required=False) for key, text in texts.items()]
    return _operation(
        name,
        "List the models that the caller may use",
        {"anyOf": [MODELS, openapi_messages.MODELS]},
        (400, 401, 403, 429, 500, 503),
        other_error="GatewayMessagesError",
        parameters=[VERSION, *pages],
    )


def _one_model(name: str) -> Any:
    return _operation(
        name,
        "Describe a model that the caller may use",
        {"anyOf": [MODEL, openapi_messages.MODEL]},
        (401, 403, 404, 429, 500, 503),
        other_error="GatewayMessagesError",
        parameters=[
            parameter("model", "The name of the model endpoint.", example="echo")
            | {"in": "path"},
            VERSION,
        ],
    )


def _messages(name: str, summary: str, schema: Any) -> Any:
    return _operation(
        name,
        summary,
        schema,
        (*FAILURES, *openapi_messages.PASSED_STATUSES),
        error="GatewayMessagesError",
        requestBody=body(
            ref("GatewayMessagesRequest"), openapi_messages.EXAMPLES, required=True
        ),
    )


def _create_message() -> Any:
    summary = "Create a message, at once or as a stream"
    described_message = _messages("messages", summary, ref("GatewayMessage"))
    content = described_message["responses"]["200"]["content"]
    content["text/event-stream"] = {"schema": openapi_messages.EVENTS}
    return cacheable(described_message)


def _create_response() -> Any:
    described_response = _operation(
        "responses",
        "Create a response, at once or as a stream",
        ref("GatewayResponse"),
        requestBody=body(
            ref("GatewayResponsesRequest"), openapi_responses.EXAMPLES, required=True
        ),
    )
    content = described_response["responses"]["200"]["content"]
    content["text/event-stream"] = {"schema": openapi_responses.EVENTS}
    return cacheable(described_response)


OPERATIONS = {
    ("post", "/v2/chat/completions"): _contract_chat("chat"),
    ("post", "/chat/completions"): _contract_chat("chat_in_router"),
    ("post", "/v2/chat/completion"): _contract_chat("chat_in_log"),
    ("post", "/v1/chat/completions"): _chat(
        "openai_chat",
        "A chunk, an error or `[DONE]`.",
        "GatewayOpenAIError",
        last="GatewayOpenAIError",
        end="[DONE]",
    ),
    ("post", "/v1/embeddings"): cacheable(
        _operation(
            "embeddings",
            "Embed texts",
            EMBEDDINGS,
            requestBody=body(EMBEDDING, {"Texts": TEXTS_TO_EMBED}, required=True),
        )
    ),
    ("post", "/v1/responses"): _create_response(),
    ("post", "/v1/messages"): _create_message(),
    ("post", "/v1/messages/count_tokens"): _messages(
        "count_tokens", "Count the tokens of a message", openapi_messages.TOKENS
    ),
    ("get", "/v1/models"): _models("models"),
    ("get", "/v1/models/{model}"): _one_model("model"),
    ("get", "/models"): _models("models_without_prefix"),
    ("get", "/models/{model}"): _one_model("model_without_prefix"),
    ("get", "/v2/models"): _operation(
        "models_of_contract",
        "List the models that the caller may use",
        MODELS,
        (401, 403, 429, 500, 503),
        error="GatewayError",
    ),
    ("get", "/v2/models/{model}"): _operation(
        "model_of_contract",
        "Describe a model that the caller may use",
        MODEL,
        (401, 403, 404, 429, 500, 503),
        error="GatewayError",
        parameters=[
            parameter("model", "The name of the model endpoint.", example="echo")
            | {"in": "path"}
        ],
    ),
}


def add_chat(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Put chat's addresses into the document (a drf-spectacular hook)."""
    return add_operations(result, OPERATIONS, SCHEMAS)
