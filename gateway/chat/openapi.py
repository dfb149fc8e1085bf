"""What the OpenAPI document says about chat, whose addresses are no DRF views."""

from __future__ import annotations

from typing import Any

from gateway import errors
from gateway.chat.metering import reports
from gateway.chat.serializers import UsageQuery
from gateway.openapi import operation
from webhooks_core.api.json_schema import INTEGER, STRING, array_of, object_of, ref

TAG = "Gateway chat"
USAGE = object_of([], prompt_tokens=INTEGER, completion_tokens=INTEGER)
SUMS = {
    **dict.fromkeys(reports.COUNTS, INTEGER),
    "cost": STRING | {"description": "A decimal, in the currency of the prices."},
}
GROUPS = {"day": STRING | {"format": "date"}, "principal": STRING, "model": STRING}
DAY = {"type": "string", "format": "date"}
ERROR = object_of(
    status_code=INTEGER, content=object_of(error=STRING, timestamp=STRING)
)

SCHEMAS: dict[str, dict[str, Any]] = {
    "GatewayChatRequest": object_of(
        ["model"],
        model=STRING | {"description": "Name of the model endpoint."},
        stream={"type": ["boolean", "null"], "default": False},
        messages=array_of({"type": "object"}),
    )
    | {"description": "Every other field goes to the upstream as it is."},
    "GatewayChatCompletion": object_of(
        ["choices"], model=STRING, choices=array_of({"type": "object"}), usage=USAGE
    ),
    "GatewayChatErrorChunk": object_of(request_id=STRING, error=ERROR),
    "GatewayOpenAIError": object_of(
        error=object_of(
            ["message", "type"],
            message=STRING,
            type=STRING,
            param={"type": ["string", "null"]},
            code={"type": ["string", "null"]},
        )
    ),
    "GatewayUsage": {
        "type": "object",
        "properties": {
            "from": DAY,
            "to": DAY,
            "items": array_of({"type": "object", "properties": GROUPS | SUMS}),
            "total": {"type": "object", "properties": SUMS},
        },
        "required": ["from", "to", "items", "total"],
    },
}
MODEL = object_of(
    id=STRING, object={"const": "model"}, created=INTEGER, owned_by=STRING
)
MODELS = object_of(object={"const": "list"}, data=array_of(MODEL))
EMBEDDING = object_of(["model"], model=STRING, input={"description": "As OpenAI's."})
SECURITY: list[dict[str, list[str]]] = [
    {"gatewayKey": []},
    {"gatewayTenant": [], "gatewayPrincipal": []},
]
FAILURES = {
    400: "The request is not valid, or the endpoint cannot serve it.",
    401: errors.UnauthorizedError().detail,
    404: "The specified endpoint could not be found.",
    413: errors.PayloadTooLargeError().detail,
    415: errors.UnsupportedMediaTypeError().detail,
    429: errors.TooManyRequestsError().detail,
    500: "The upstream failed, or we did.",
    503: errors.UnavailableError().detail,
}
ANSWER_TOTAL = {
    "requests": 3,
    "failures": 0,
    "prompt_tokens": 27,
    "completion_tokens": 6,
    "estimated_requests": 0,
    "cost": "0.000007650",
}

DESCRIBE_USAGE = operation(
    "usage",
    "What the tenant has used, summed by day, principal and model",
    parameters=[UsageQuery],
    answers={
        200: (
            ref("GatewayUsage"),
            {
                "from": "2026-11-01",
                "to": "2026-11-20",
                "items": [],
                "total": ANSWER_TOTAL,
            },
        )
    },
    fails=(errors.BadRequestError,),
)


def add_chat(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Put chat's addresses into the document (a drf-spectacular hook)."""
    shapes = result["components"].get("schemas", {}) | SCHEMAS
    result["components"]["schemas"] = dict(sorted(shapes.items()))
    paths = result["paths"] | {
        "/v2/chat/completions": {"post": _chat("chat", "GatewayError")},
        "/v1/chat/completions": {"post": _chat("openai_chat", "GatewayOpenAIError")},
        "/v1/embeddings": {"post": _embeddings()},
        "/v1/models": {"get": _models()},
        "/v1/models/{model}": {"get": _model()},
    }
    if "/v1/usage" in paths:
        paths["/v1/usage"]["get"]["tags"] = [TAG]
    result["paths"] = paths
    return result


def _operation(name: str, summary: str, *, answer: Any, error: str) -> dict[str, Any]:
    failures = {
        str(status): {"description": text, "content": _json(ref(error))}
        for status, text in FAILURES.items()
    }
    return {
        "operationId": f"gateway_{name}",
        "summary": summary,
        "tags": [TAG],
        "security": SECURITY,
        "responses": {"200": {"description": summary, "content": answer}, **failures},
    }


def _json(schema: Any) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _asked(schema: Any) -> dict[str, Any]:
    return {"required": True, "content": _json(schema)}


def _chat(name: str, error: str) -> dict[str, Any]:
    events = {"schema": STRING | {"description": "Server-sent events of JSON chunks."}}
    answer = _json(ref("GatewayChatCompletion")) | {"text/event-stream": events}
    summary = "Complete a chat, at once or as a stream"
    asked = {"requestBody": _asked(ref("GatewayChatRequest"))}
    return _operation(name, summary, answer=answer, error=error) | asked


def _embeddings() -> dict[str, Any]:
    answer = _json(object_of(["data"], data=array_of({"type": "object"}), usage=USAGE))
    found = _operation(
        "embeddings", "Embed texts", answer=answer, error="GatewayOpenAIError"
    )
    return found | {"requestBody": _asked(EMBEDDING)}


def _models() -> dict[str, Any]:
    summary = "List the models that the caller may use"
    found = _operation(
        "models", summary, answer=_json(MODELS), error="GatewayOpenAIError"
    )
    for status in ("400", "404", "413", "415"):
        del found["responses"][status]
    return found


def _model() -> dict[str, Any]:
    summary = "Describe a model that the caller may use"
    found = _operation(
        "model", summary, answer=_json(MODEL), error="GatewayOpenAIError"
    )
    for status in ("400", "413", "415"):
        del found["responses"][status]
    name = {"name": "model", "in": "path", "required": True, "schema": STRING}
    return found | {"parameters": [name]}
