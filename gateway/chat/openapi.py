"""What the OpenAPI document says about chat, whose addresses have no serializers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from drf_spectacular.utils import extend_schema

from gateway import errors
from gateway.chat import openapi_shapes as shapes
from gateway.chat.caching.openapi import cacheable
from gateway.chat.core.errors import EndpointNotFoundError
from gateway.chat.serializers import UsageQuery
from webhooks_core.web.json_schema import (
    DATE_TIME,
    INTEGER,
    add_operations,
    array_of,
    body,
    described,
    object_of,
    operation,
    parameter,
    ref,
)
from webhooks_core.web.owner_examples import response_example

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
                resets_at=described("When the window starts again.", DATE_TIME),
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
    error: Any = shapes.OPENAI_FAILURE,
    **fields: Any,
) -> dict[str, Any]:
    texts = FAILURES | shapes.PASSED_STATUSES
    failures = {status: body(error, description=texts[status]) for status in statuses}
    return operation(
        f"gateway_{name}",
        summary,
        {200: body(schema, description=summary)} | failures,
        tags=TAGS,
        security=[{"gatewayKey": []}, {"gatewayTenant": [], "gatewayPrincipal": []}],
        **fields,
    )


def _answer(
    name: str,
    summary: str,
    schema: str,
    request: str,
    examples: Mapping[str, Any],
    events: Any,
    **fields: Any,
) -> Any:
    """Describe an address that answers at once or as a stream, or from the cache."""
    described_answer = _operation(
        name,
        f"{summary}, at once or as a stream",
        ref(schema),
        requestBody=body(ref(request), examples, required=True),
        **fields,
    )
    content = described_answer["responses"]["200"]["content"]
    content["text/event-stream"] = {"schema": events}
    return cacheable(described_answer)


def _chat(name: str, events: Any, **fields: Any) -> Any:
    return _answer(
        name,
        "Complete a chat",
        "GatewayChatCompletion",
        "GatewayChatRequest",
        shapes.CHATS,
        events,
        **fields,
    )


def _contract_chat(name: str) -> Any:
    text = "A chunk, or at the end the error chunk."
    events = shapes.chat_events(text, "GatewayChatErrorChunk")
    return _chat(name, events, error=shapes.CONTRACT_FAILURE)


ANTHROPIC: Any = {
    "statuses": (*FAILURES, *shapes.PASSED_STATUSES),
    "error": shapes.MESSAGES_FAILURE,
}
MODEL_IN_PATH = parameter(
    "model", "The name of the model endpoint.", example="echo"
) | {"in": "path"}
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
        {"anyOf": [shapes.MODELS, shapes.MESSAGES_MODELS]},
        (400, 401, 403, 429, 500, 503),
        error=shapes.EITHER_FAILURE,
        parameters=[VERSION, *pages],
    )


def _one_model(name: str) -> Any:
    return _operation(
        name,
        "Describe a model that the caller may use",
        {"anyOf": [shapes.MODEL, shapes.MESSAGES_MODEL]},
        (401, 403, 404, 429, 500, 503),
        error=shapes.EITHER_FAILURE,
        parameters=[MODEL_IN_PATH, VERSION],
    )


OPERATIONS = {
    ("post", "/v2/chat/completions"): _contract_chat("chat"),
    ("post", "/chat/completions"): _contract_chat("chat_in_router"),
    ("post", "/v2/chat/completion"): _contract_chat("chat_in_log"),
    ("post", "/v1/chat/completions"): _chat(
        "openai_chat",
        shapes.chat_events(
            "A chunk, an error or `[DONE]`.", "GatewayOpenAIError", "[DONE]"
        ),
    ),
    ("post", "/v1/embeddings"): cacheable(
        _operation(
            "embeddings",
            "Embed texts",
            shapes.EMBEDDINGS,
            requestBody=body(
                shapes.EMBEDDING, {"Texts": shapes.TEXTS_TO_EMBED}, required=True
            ),
        )
    ),
    ("post", "/v1/responses"): _answer(
        "responses",
        "Create a response",
        "GatewayResponse",
        "GatewayResponsesRequest",
        shapes.RESPONSES,
        shapes.RESPONSE_EVENTS,
    ),
    ("post", "/v1/messages"): _answer(
        "messages",
        "Create a message",
        "GatewayMessage",
        "GatewayMessagesRequest",
        shapes.MESSAGES,
        shapes.MESSAGE_EVENTS,
        **ANTHROPIC,
    ),
    ("post", "/v1/messages/count_tokens"): _operation(
        "count_tokens",
        "Count the tokens of a message",
        shapes.MESSAGE_TOKENS,
        **ANTHROPIC,
        requestBody=body(ref("GatewayMessagesRequest"), shapes.MESSAGES, required=True),
    ),
    ("get", "/v1/models"): _models("models"),
    ("get", "/v1/models/{model}"): _one_model("model"),
    ("get", "/models"): _models("models_without_prefix"),
    ("get", "/models/{model}"): _one_model("model_without_prefix"),
    ("get", "/v2/models"): _operation(
        "models_of_contract",
        "List the models that the caller may use",
        shapes.MODELS,
        (401, 403, 429, 500, 503),
        error=shapes.CONTRACT_FAILURE,
    ),
    ("get", "/v2/models/{model}"): _operation(
        "model_of_contract",
        "Describe a model that the caller may use",
        shapes.MODEL,
        (401, 403, 404, 429, 500, 503),
        error=shapes.CONTRACT_FAILURE,
        parameters=[MODEL_IN_PATH],
    ),
}


def add_chat(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Put chat's addresses into the document (a drf-spectacular hook)."""
    return add_operations(result, OPERATIONS, shapes.SCHEMAS)
