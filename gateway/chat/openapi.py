"""What the OpenAPI document says about chat, whose addresses have no serializers.

Requests and answers have the vendors' shapes: the vendors describe them.
"""

from __future__ import annotations

from typing import Any

from gateway import errors
from gateway.chat.apis.messages.format import MESSAGES
from gateway.chat.apis.openai.format import CONTRACT
from gateway.chat.routes import MODEL_PREFIX, MODELS, ROUTES, Route
from webhooks_core.web.json_schema import (
    AND_OTHERS,
    INTEGER,
    STRING,
    add_operations,
    body,
    described,
    object_of,
    operation,
    parameter,
    ref,
)

TAGS = ["Gateway chat"]
OPENAI = "https://platform.openai.com/docs/api-reference"
ANTHROPIC = "https://docs.anthropic.com/en/api"
ANY = object_of() | AND_OTHERS
SCHEMAS: dict[str, Any] = {
    "GatewayChatRequest": AND_OTHERS
    | object_of(
        ["model"],
        model=described("Name of the model endpoint."),
        stream=described("True for a stream.", {"type": ["boolean", "null"]}),
    ),
    "GatewayOpenAIError": object_of(
        error=AND_OTHERS | object_of(["message", "type"], message=STRING, type=STRING)
    ),
    "GatewayMessagesError": AND_OTHERS
    | object_of(
        type={"const": "error"},
        error=AND_OTHERS | object_of(["type"], type=STRING, message=STRING),
    ),
    "GatewayChatErrorChunk": object_of(
        request_id=STRING,
        error=object_of(
            status_code=INTEGER,
            content=object_of(
                error=STRING,
                timestamp=described("`YYYY-MM-DD HH:MM:SS` and PST or PDT."),
            ),
        ),
    ),
}
# The name of an address, what it does, and where its vendor describes it.
DESCRIPTIONS = {
    "/v2/chat/completions": ("chat", "Complete a chat", f"{OPENAI}/chat"),
    "/chat/completions": ("chat_in_router", "Complete a chat", f"{OPENAI}/chat"),
    "/v2/chat/completion": ("chat_in_log", "Complete a chat", f"{OPENAI}/chat"),
    "/v1/chat/completions": ("openai_chat", "Complete a chat", f"{OPENAI}/chat"),
    "/v1/embeddings": ("embeddings", "Embed texts", f"{OPENAI}/embeddings"),
    "/v1/responses": ("responses", "Create a response", f"{OPENAI}/responses"),
    "/v1/messages": ("messages", "Create a message", f"{ANTHROPIC}/messages"),
    "/v1/messages/count_tokens": (
        *("count_tokens", "Count the tokens of a message"),
        f"{ANTHROPIC}/messages-count-tokens",
    ),
    "/v1/models": ("models", "List your models", f"{OPENAI}/models"),
    MODEL_PREFIX + "{model}": ("model", "Describe a model", f"{OPENAI}/models"),
}
ASKED = [{"role": "user", "content": "Ahoy!"}]
# What "Try it out" sends; the model `echo` needs no network.
EXAMPLES: dict[str, dict[str, Any]] = {
    "/v1/embeddings": {"model": "embedder", "input": "Ahoy!"},
    "/v1/responses": {"model": "echo", "input": "Ahoy!"},
    "/v1/messages": {"model": "echo", "max_tokens": 100, "messages": ASKED},
}
CHAT_EXAMPLE = {"model": "echo", "messages": ASKED}
STATUSES = (400, 401, 403, 404, 413, 415, 429, 500, 503)
# An upstream of Anthropic's own kind answers with these, too, and they pass as they are.
PASSED_STATUSES = (402, 409, 502, 504, 529)


def _described(path: str, route: Route) -> dict[str, Any]:
    name, summary, vendor = DESCRIPTIONS[path]
    answer = body(ANY, description=summary)
    error, more = _failures(route)
    if route.method == "POST":
        chunk = "GatewayChatErrorChunk" if route.api_format is CONTRACT else ""
        answer["content"]["text/event-stream"] = _events(ref(chunk) if chunk else error)
        examples = {"echo": EXAMPLES.get(path, CHAT_EXAMPLE)}
        request = body(ref("GatewayChatRequest"), examples, required=True)
        fields: dict[str, Any] = {"requestBody": request}
    else:
        fields = {"parameters": _parameters(path)}
    failures = {
        status: body(error, description=_text(status)) for status in (*STATUSES, *more)
    }
    return operation(
        f"gateway_{name}",
        summary,
        {200: answer} | failures,
        tags=TAGS,
        security=[{"gatewayKey": []}, {"gatewayTenant": [], "gatewayPrincipal": []}],
        externalDocs={"url": vendor},
        **fields,
    )


def _text(status: int) -> str:
    kind = errors.ERRORS.get(status)
    return str(kind().detail) if kind else "The request or its upstream failed."


def _failures(route: Route) -> tuple[Any, tuple[int, ...]]:
    """Return the shape of errors, and statuses beside the common ones."""
    openai, messages = ref("GatewayOpenAIError"), ref("GatewayMessagesError")
    if route is MODELS:
        return {"anyOf": [openai, messages]}, ()
    if route.api_format is MESSAGES:
        return messages, PASSED_STATUSES
    return (ref("GatewayError") if route.api_format is CONTRACT else openai), ()


def _events(failure: Any) -> dict[str, Any]:
    """Return the media type of a stream, whose last event may be a failure."""
    data = described("JSON, or `[DONE]`.") | {
        "contentSchema": {"anyOf": [ANY, failure]}
    }
    return {"schema": AND_OTHERS | object_of(["data"], data=data)}


def _parameters(path: str) -> list[Any]:
    # A client that sends the version gets Anthropic's shape.
    version = parameter("anthropic-version", "For Anthropic's shape.", required=False)
    model = parameter("model", "The name of the model endpoint.", example="echo")
    in_path = [model | {"in": "path"}] if "{model}" in path else []
    return [*in_path, version | {"in": "header"}]


def add_chat(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Put chat's addresses into the document (a drf-spectacular hook)."""
    operations = {}
    for path in DESCRIPTIONS:
        route = ROUTES.get(path, MODELS)
        operations[route.method.lower(), path] = _described(path, route)
    return add_operations(result, operations, SCHEMAS)
