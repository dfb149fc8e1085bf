"""What the OpenAPI document says about chat, whose addresses have no serializers.

Requests and answers have the vendors' shapes: the vendors describe them.
"""

from __future__ import annotations

from typing import Any

from gateway import errors
from gateway.chat.apis.base import Format
from gateway.chat.apis.messages.format import MESSAGES
from gateway.chat.apis.openai.format import CONTRACT
from gateway.chat.routes import MODEL_PREFIX, MODELS, ROUTES
from webhooks_core.web.json_schema import (
    AND_OTHERS,
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
    # OpenAI's, and Anthropic's, which has a type beside it.
    "GatewayChatError": AND_OTHERS | object_of(error=ANY),
}
CHAT = "Complete a chat", f"{OPENAI}/chat"
# What an address does, where its vendor describes it, and the name of its operation.
DESCRIPTIONS = {
    "/v2/chat/completions": (*CHAT, "chat"),
    "/chat/completions": (*CHAT, "chat_in_router"),
    "/v2/chat/completion": (*CHAT, "chat_in_log"),
    "/v1/chat/completions": (*CHAT, "openai_chat"),
    "/v1/embeddings": ("Embed texts", f"{OPENAI}/embeddings", "embeddings"),
    "/v1/responses": ("Create a response", f"{OPENAI}/responses", "responses"),
    "/v1/messages": ("Create a message", f"{ANTHROPIC}/messages", "messages"),
    "/v1/messages/count_tokens": (
        *("Count the tokens of a message", f"{ANTHROPIC}/messages-count-tokens"),
        "count_tokens",
    ),
    "/v1/models": ("List your models", f"{OPENAI}/models", "models"),
    f"{MODEL_PREFIX}{{model}}": ("Describe a model", f"{OPENAI}/models", "model"),
}
# What "Try it out" sends; the model `echo` needs no network.
ASKED = [{"role": "user", "content": "Ahoy!"}]
EXAMPLE: dict[str, Any] = {"model": "echo", "max_tokens": 100, "messages": ASKED}
EXAMPLES: dict[str, dict[str, Any]] = {
    "embeddings": {"model": "embedder", "input": "Ahoy!"},
    "responses": {"model": "echo", "input": "Ahoy!"},
}
STATUSES = (400, 401, 403, 404, 413, 415, 429, 500, 503)
# An upstream's own, which pass as they are to clients of its API.
PASSED: dict[Format, tuple[int, ...]] = {MESSAGES: (402, 409, 502, 504, 529)}


def _described(path: str) -> dict[str, Any]:
    summary, vendor, name = DESCRIPTIONS[path]
    route = ROUTES.get(path, MODELS)
    answer = body(ANY, description=summary)
    error = "GatewayError" if route.api_format is CONTRACT else "GatewayChatError"
    if route.method == "POST":
        data = described("JSON, or `[DONE]`; the last may say what failed.")
        event = AND_OTHERS | object_of(["data"], data=data)
        answer["content"]["text/event-stream"] = {"schema": event}
        examples = {"echo": EXAMPLES.get(name, EXAMPLE)}
        request = body(ref("GatewayChatRequest"), examples, required=True)
        fields: dict[str, Any] = {"requestBody": request}
    else:
        fields = {"parameters": _parameters(path)}
    statuses = *STATUSES, *PASSED.get(route.api_format, ())
    failures = {code: body(ref(error), description=_text(code)) for code in statuses}
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


def _parameters(path: str) -> list[Any]:
    # A client that sends the version gets Anthropic's shape.
    version = parameter("anthropic-version", "For Anthropic's shape.", required=False)
    model = parameter("model", "The name of the model endpoint.", example="echo")
    in_path = [model | {"in": "path"}] if "{model}" in path else []
    return [*in_path, version | {"in": "header"}]


def add_chat(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Put chat's addresses into the document (a drf-spectacular hook)."""
    operations = {
        (ROUTES.get(path, MODELS).method.lower(), path): _described(path)
        for path in DESCRIPTIONS
    }
    return add_operations(result, operations, SCHEMAS)
