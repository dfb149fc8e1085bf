"""What the OpenAPI document says about chat, whose addresses have no serializers.

Requests and answers have the vendors' shapes: the vendors describe them.
"""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema

from gateway import errors
from gateway.chat.errors import EndpointNotFoundError
from gateway.chat.serializers import UsageQuery
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
DESCRIBE_USAGE = extend_schema(
    operation_id="gateway_usage",
    tags=TAGS,
    summary="What the tenant has used, summed by day, principal and model",
    parameters=[UsageQuery],
    responses={200: object_of() | AND_OTHERS},
)
OPENAI = "https://platform.openai.com/docs/api-reference"
ANTHROPIC = "https://docs.anthropic.com/en/api"
REQUEST = AND_OTHERS | object_of(
    ["model"],
    model=described("Name of the model endpoint."),
    stream=described(
        "True for server-sent events in place of one response.",
        {"type": ["boolean", "null"], "default": False},
    ),
)
OTHER = object_of() | AND_OTHERS
OPENAI_ERROR = object_of(
    ["message", "type"],
    message=described("What is wrong, for people."),
    type=described("The kind of the error, for programs."),
    param=described("The field that is wrong, or null.", {}),
    code=described("A more exact kind, or null.", {}),
)
SCHEMAS: dict[str, Any] = {
    "GatewayChatRequest": described("The other fields are the API's.", REQUEST),
    "GatewayOpenAIError": object_of(error=OPENAI_ERROR | AND_OTHERS),
    "GatewayMessagesError": AND_OTHERS
    | object_of(
        type=described("Always `error`.", {"const": "error"}),
        error=AND_OTHERS | object_of(["type"], type=STRING, message=STRING),
    ),
    "GatewayChatErrorChunk": object_of(
        request_id=described("The id of the request, as in the logs."),
        error=object_of(
            status_code=described("The status it would have had.", INTEGER),
            content=object_of(
                error=described("A text."),
                timestamp=described(
                    "`YYYY-MM-DD HH:MM:SS` and the zone, in the US Pacific time zone.",
                    STRING | {"pattern": r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d P[SD]T$"},
                ),
            ),
        ),
    ),
}
CONTRACT_FAILURE, OPENAI_FAILURE = ref("GatewayError"), ref("GatewayOpenAIError")
MESSAGES_FAILURE = ref("GatewayMessagesError")
EITHER_FAILURE = {"anyOf": [OPENAI_FAILURE, MESSAGES_FAILURE]}

FAILURES = {
    400: "The request is not valid, or the endpoint cannot serve it.",
    404: str(EndpointNotFoundError()),
    500: "The upstream failed, or we did.",
    **{
        status: errors.ERRORS[status]().detail
        for status in (401, 403, 413, 415, 429, 503)
    },
}
# An upstream of Anthropic's own kind answers with these, too, and they pass as they are.
PASSED_STATUSES = {
    402: "The upstream's account has no credit.",
    403: "The upstream's key may not do this.",
    409: "The upstream has a conflict.",
    502: "A proxy before the upstream failed.",
    504: "The upstream took too long.",
    529: "The upstream is overloaded.",
}


def _operation(
    name: str,
    summary: str,
    vendor: str = "",
    error: Any = OPENAI_FAILURE,
    **fields: Any,
) -> dict[str, Any]:
    """Describe an address: its failures, and where its vendor describes the rest."""
    texts = FAILURES | (PASSED_STATUSES if error is MESSAGES_FAILURE else {})
    failures = {status: body(error, description=texts[status]) for status in texts}
    if vendor:
        fields["externalDocs"] = {"url": vendor}
    return operation(
        f"gateway_{name}",
        summary,
        {200: body(OTHER, description=summary)} | failures,
        tags=TAGS,
        security=[{"gatewayKey": []}, {"gatewayTenant": [], "gatewayPrincipal": []}],
        **fields,
    )


def _post(name: str, summary: str, *rest: Any, last: Any = None) -> dict[str, Any]:
    """Describe an address that answers at once or, with `last`, also as a stream."""
    request = body(
        ref("GatewayChatRequest"),
        {"Chat": {"model": "echo", "messages": [{"role": "user", "content": "Ahoy"}]}},
        required=True,
    )
    whole = _operation(name, summary, *rest, requestBody=request)
    if last is not None:
        data = {"anyOf": [OTHER, last]}
        json = STRING | {"contentMediaType": "application/json", "contentSchema": data}
        events = object_of(["data"], data={"anyOf": [json, {"const": "[DONE]"}]})
        whole["responses"]["200"]["content"]["text/event-stream"] = {
            "schema": AND_OTHERS | events
        }
    return whole


def _contract(name: str) -> dict[str, Any]:
    text, last = "Complete a chat, at once or as a stream", ref("GatewayChatErrorChunk")
    return _post(name, text, f"{OPENAI}/chat", CONTRACT_FAILURE, last=last)


# A client that sends it gets Anthropic's shape.
VERSION = parameter(
    "anthropic-version", "For Anthropic's shape in place of OpenAI's.", required=False
) | {"in": "header"}
NAME = parameter("model", "The name of the model endpoint.", example="echo")
OPERATIONS = {
    ("post", "/v2/chat/completions"): _contract("chat"),
    ("post", "/chat/completions"): _contract("chat_in_router"),
    ("post", "/v2/chat/completion"): _contract("chat_in_log"),
    ("post", "/v1/chat/completions"): _post(
        "openai_chat", "Complete a chat", f"{OPENAI}/chat", last=OPENAI_FAILURE
    ),
    ("post", "/v1/embeddings"): _post(
        "embeddings", "Embed texts", f"{OPENAI}/embeddings"
    ),
    ("post", "/v1/responses"): _post(
        "responses", "Create a response", f"{OPENAI}/responses", last=OTHER
    ),
    ("post", "/v1/messages"): _post(
        *("messages", "Create a message", f"{ANTHROPIC}/messages", MESSAGES_FAILURE),
        last=MESSAGES_FAILURE,
    ),
    ("post", "/v1/messages/count_tokens"): _post(
        *("count_tokens", "Count the tokens of a message"),
        *(f"{ANTHROPIC}/messages-count-tokens", MESSAGES_FAILURE),
    ),
    ("get", "/v1/models"): _operation(
        *("models", "List the models that the caller may use", "", EITHER_FAILURE),
        parameters=[VERSION],
    ),
    ("get", "/v1/models/{model}"): _operation(
        *("model", "Describe a model that the caller may use", "", EITHER_FAILURE),
        parameters=[NAME | {"in": "path"}, VERSION],
    ),
}


def add_chat(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Put chat's addresses into the document (a drf-spectacular hook)."""
    return add_operations(result, OPERATIONS, SCHEMAS)
