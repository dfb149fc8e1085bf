"""What the OpenAPI document says about chat, whose addresses have no serializers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from drf_spectacular.utils import extend_schema

from gateway import errors
from gateway.chat.core.errors import EndpointNotFoundError
from gateway.chat.metering import reports
from gateway.chat.serializers import UsageQuery
from gateway.serializers import response_example
from webhooks_core.web.json_schema import (
    AND_OTHERS,
    INTEGER,
    STRING,
    array_of,
    described,
    object_of,
    ref,
)

TAG = "Gateway chat"
DAY = {"type": "string", "format": "date"}
GROUPS = {
    "day": described("The day in UTC.", DAY),
    "principal": described("Who sent the requests."),
    "model": described("The name of the model endpoint."),
}
SUMS = {
    **{
        name: described(text, INTEGER)
        for name, text in zip(
            reports.COUNTS,
            (
                "Requests that reached an upstream.",
                "Those of them that failed.",
                "Tokens of the prompts.",
                "Tokens of the responses.",
                "Requests whose tokens were estimated: the upstream named none.",
            ),
            strict=True,
        )
    },
    "cost": described("A decimal, in the currency of the prices."),
}
TOTAL = {
    "requests": 3,
    "failures": 0,
    "prompt_tokens": 27,
    "completion_tokens": 6,
    "estimated_requests": 0,
    "cost": "0.000007650",
}
DESCRIBE_USAGE = extend_schema(
    operation_id="gateway_usage",
    tags=[TAG],
    summary="What the tenant has used, summed by day, principal and model",
    parameters=[UsageQuery],
    responses={
        200: object_of(
            **{
                "from": described("The first day.", DAY),
                "to": described("The last day, included.", DAY),
            },
            items=described(
                "One for each group.", array_of(object_of([], **GROUPS, **SUMS))
            ),
            total=described("Sums of all items.", object_of([], **SUMS)),
        )
    },
    examples=[
        response_example(
            {"from": "2026-11-01", "to": "2026-11-20", "items": [], "total": TOTAL}
        )
    ],
)

OBJECT = {"type": "object"}
TIMESTAMP = r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d P[SD]T$"
TEXT_OR_NULL = {"type": ["string", "null"]}
TOKENS = described(
    "What the request used, as the upstream counts.",
    object_of(
        [],
        prompt_tokens=described("Of the messages.", INTEGER),
        completion_tokens=described("Of the response.", INTEGER),
    )
    | AND_OTHERS,
)
# Of a completion and of a chunk. Everything else is the upstream's.
COMPLETION = {
    "id": described("The upstream's id of the response."),
    "object": described("The kind of this object."),
    "created": described("Unix time in seconds.", INTEGER),
    "model": described("The name of the model endpoint."),
    "usage": TOKENS,
}
SCHEMAS: dict[str, dict[str, Any]] = {
    "GatewayChatRequest": object_of(
        ["model"],
        model=STRING | {"description": "Name of the model endpoint."},
        stream={
            "type": ["boolean", "null"],
            "default": False,
            "description": "True for server-sent events in place of one response.",
        },
        messages=array_of(OBJECT)
        | {"description": "The conversation, each with `role` and `content`."},
    )
    | {"description": "Every other field goes to the upstream as it is."},
    "GatewayChatCompletion": object_of(
        ["choices"],
        choices=described("The responses, each with a `message`.", array_of(OBJECT)),
        **COMPLETION,
    )
    | AND_OTHERS,
    "GatewayChatChunk": object_of(
        ["choices"],
        choices=described("The parts, each with a `delta`.", array_of(OBJECT)),
        **COMPLETION,
    )
    | AND_OTHERS,
    "GatewayChatErrorChunk": object_of(
        request_id=described("The id of the request, as in the logs."),
        error=described(
            "Why the stream ended early.",
            object_of(
                status_code=described("The status it would have had.", INTEGER),
                content=described(
                    "The failure.",
                    object_of(
                        error=described("A text."),
                        timestamp=described(
                            "`YYYY-MM-DD HH:MM:SS` and the abbreviation of the zone, in the US "
                            "Pacific time zone.",
                            {"type": "string", "pattern": TIMESTAMP},
                        ),
                    ),
                ),
            ),
        ),
    ),
    "GatewayOpenAIError": object_of(
        error=described(
            "As OpenAI describes it.",
            object_of(
                ["message", "type"],
                message=described("What is wrong, for people."),
                type=described("The kind of the error, for programs."),
                param=described("The field that is wrong, or null.", TEXT_OR_NULL),
                code=described("A more exact kind, or null.", {}),
            )
            | AND_OTHERS,
        )
    ),
}
MESSAGES = [
    {"role": "system", "content": "Answer in one sentence."},
    {"role": "user", "content": "Which ships give way to ferries?"},
]
CHATS = {
    "Chat": {"model": "echo", "messages": MESSAGES, "temperature": 0.2},
    "Stream": {"model": "echo", "messages": MESSAGES, "stream": True},
}
EMBED = {"Texts": {"model": "embed", "input": ["Ships give way to ferries."]}}
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
EMBEDDING = object_of(
    ["model"],
    model=described("The name of the model endpoint."),
    input=described("A text, or an array of texts, as OpenAI takes it.", {}),
)
EMBEDDINGS = (
    object_of(
        ["data"],
        data=described("One item for each text, with `embedding`.", array_of(OBJECT)),
        usage=TOKENS,
    )
    | AND_OTHERS
)
NAME = {
    "name": "model",
    "in": "path",
    "required": True,
    "schema": STRING,
    "description": "The name of the model endpoint.",
    "example": "echo",
}

SECURITY: list[dict[str, list[str]]] = [
    {"gatewayKey": []},
    {"gatewayTenant": [], "gatewayPrincipal": []},
]
FAILURES = {
    400: "The request is not valid, or the endpoint cannot serve it.",
    401: errors.UnauthorizedError().detail,
    404: str(EndpointNotFoundError()),
    413: errors.PayloadTooLargeError().detail,
    415: errors.UnsupportedMediaTypeError().detail,
    429: errors.TooManyRequestsError().detail,
    500: "The upstream failed, or we did.",
    503: errors.UnavailableError().detail,
}


def add_chat(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Put chat's addresses into the document (a drf-spectacular hook)."""
    shapes = result["components"].get("schemas", {}) | SCHEMAS
    result["components"]["schemas"] = dict(sorted(shapes.items()))
    result["paths"] |= {
        "/v2/chat/completions": _chat(
            "chat",
            "GatewayError",
            _events("A chunk, or at the end the error chunk.", "GatewayChatErrorChunk"),
        ),
        "/v1/chat/completions": _chat(
            "openai_chat",
            "GatewayOpenAIError",
            _events(
                "A chunk, an error or `[DONE]`.", "GatewayOpenAIError", end="[DONE]"
            ),
        ),
        "/v1/embeddings": _post(
            "embeddings", "Embed texts", EMBEDDING, _json(EMBEDDINGS), EMBED
        ),
        "/v1/models": _get(
            "models",
            "List the models that the caller may use",
            MODELS,
            statuses=(401, 429, 500, 503),
        ),
        "/v1/models/{model}": _get(
            "model",
            "Describe a model that the caller may use",
            MODEL,
            statuses=(401, 404, 429, 500, 503),
            parameters=[NAME],
        ),
    }
    return result


def _events(text: str, error: str, *, end: str = "") -> dict[str, Any]:
    """Return the media type of a stream; an error after its first chunk is its last event."""
    data: dict[str, Any] = {
        "contentMediaType": "application/json",
        "contentSchema": {"anyOf": [ref("GatewayChatChunk"), ref(error)]},
    }
    if end:
        data = {"anyOf": [data, {"const": end}]}
    schema = object_of(data=described(text, STRING | data))
    description = "Server-sent events: the shape of each one."
    return {"text/event-stream": {"schema": described(description, schema)}}


def _chat(name: str, error: str, events: dict[str, Any]) -> dict[str, Any]:
    return _post(
        name,
        "Complete a chat, at once or as a stream",
        ref("GatewayChatRequest"),
        _json(ref("GatewayChatCompletion")) | events,
        CHATS,
        error=error,
    )


def _post(
    name: str, summary: str, body: Any, content: Any, examples: Any, **more: Any
) -> dict[str, Any]:
    media = {
        "schema": body,
        "examples": {key: {"value": value} for key, value in examples.items()},
    }
    request = {"required": True, "content": {"application/json": media}}
    return {"post": _operation(name, summary, content, requestBody=request, **more)}


def _get(name: str, summary: str, schema: Any, **more: Any) -> dict[str, Any]:
    return {"get": _operation(name, summary, _json(schema), **more)}


def _operation(
    name: str,
    summary: str,
    content: Any,
    *,
    error: str = "GatewayOpenAIError",
    statuses: Iterable[int] = FAILURES,
    **more: Any,
) -> dict[str, Any]:
    failures = {
        str(status): {"description": FAILURES[status], "content": _json(ref(error))}
        for status in statuses
    }
    return {
        "operationId": f"gateway_{name}",
        "summary": summary,
        "tags": [TAG],
        "security": SECURITY,
        "responses": {"200": {"description": summary, "content": content}, **failures},
        **more,
    }


def _json(schema: Any) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
