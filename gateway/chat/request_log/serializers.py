"""The shapes of GET /v1/requests and of one of its items."""

from __future__ import annotations

from typing import Any

import orjson
from drf_spectacular.drainage import set_override
from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from gateway.chat.request_log.entry import LOGGED
from gateway.chat.request_log.store import LogFilter
from webhooks_core.web.examples import TIME, response_example
from webhooks_core.web.fields import (
    CountField,
    StrictCharField,
    TimeField,
    TimeParameter,
)
from webhooks_core.web.json_schema import (
    AND_OTHERS,
    STRING,
    array_of,
    described,
    object_of,
)
from webhooks_core.web.pages import CursorQuery, page_shape

MAX_TEXT = 200
NULL_UNKNOWN = "Null: the upstream did not say."


class RequestsQuery(CursorQuery):
    since = TimeParameter(
        required=False, help_text="RFC 3339: requests that ended from this time on."
    )
    until = TimeParameter(
        required=False, help_text="RFC 3339: requests that ended before this time."
    )
    model = StrictCharField(
        required=False,
        max_length=128,
        error_messages={"max_length": "model has more than {max_length} characters."},
        help_text="The model that the request names.",
    )
    key = CountField(required=False, help_text="The number of a gateway key.")
    status = CountField(
        required=False, help_text="The status that counts, such as 200 or 499."
    )
    text = StrictCharField(
        required=False,
        max_length=MAX_TEXT,
        error_messages={"max_length": "text has more than {max_length} characters."},
        help_text="A part of the prompt, the answer or the error. A page searches 1,000 requests"
        " and may be empty; `next_cursor` goes on behind them.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        attrs = super().validate(attrs)
        if any("\0" in attrs.get(name, "") for name in ("model", "text")):
            raise ValidationError("model, text: must not hold a NUL.")
        return attrs

    @staticmethod
    def filter(query: dict[str, Any]) -> LogFilter:
        """Return the filter of a valid query."""
        names = ("since", "until", "model", "key", "status", "text")
        return LogFilter(**{name: query[name] for name in names if name in query})


class StoredJSONField(serializers.Field[Any, Any, Any, Any]):
    """JSON that is stored as text, and its shape."""

    def __init__(self, text: str, shape: dict[str, Any]) -> None:
        super().__init__()
        set_override(self, "field", described(text, shape))

    def to_representation(self, value: str) -> Any:
        return orjson.Fragment(value)


NAMES = array_of(STRING)
CALL = object_of(
    id=described("The upstream's id of the call."),
    name=described("The tool."),
    arguments=described("JSON as text, cut."),
)
CHOICE = object_of(
    text=described("The text, cut."),
    reasoning=described("The text of the reasoning, cut."),
    refusal=described("Why the model refused."),
    tool_calls=described("The calls of tools.", array_of(CALL)),
    finish_reason=described("Why it ended, in the words of the client's API."),
)


ITEM: dict[str, Any] = {
    "id": "req_0d1k3v5m7p9r1t3v5n7q9s0u2g",
    "request_id": "8a0f7e5c2b1d4f6a9c3e7b5d1f2a4c6e",
    "created_at": TIME,
    "operation": "chat.completions",
    "model": "small",
    "answered_by": "small",
    "status": 200,
    "error_status": 0,
    "streamed": True,
    "principal": "ada",
    "key": 7,
    "prompt_tokens": 9,
    "completion_tokens": 2,
    "estimated": False,
    "first_chunk_ms": 180,
    "duration_ms": 950,
    "excerpt": "Which ships give way?",
    "truncated": False,
}
DETAILS: dict[str, Any] = ITEM | {
    "tools": ["search"],
    "prompt": {
        "messages": [{"role": "user", "content": "Which ships give way?"}],
        "model": "small",
        "stream": True,
    },
    "answer": [
        {
            "text": "Ships give way to ferries.",
            "reasoning": "",
            "refusal": "",
            "tool_calls": [],
            "finish_reason": "stop",
        }
    ],
    "error": "",
}


class LoggedRequestSerializer(serializers.Serializer[Any]):
    id = serializers.CharField(source="public_id", help_text="Of this entry.")
    request_id = serializers.CharField(help_text="As in `X-Request-Id`.")
    created_at = TimeField(help_text="UTC: when the request ended.")
    operation = serializers.ChoiceField(
        [(name, name) for name in LOGGED], help_text="What was requested."
    )
    model = serializers.CharField(help_text="The model that the request names.")
    answered_by = serializers.CharField(help_text="The model that answered.")
    status = serializers.IntegerField(
        help_text="Of the response; 499: the client left."
    )
    error_status = serializers.IntegerField(
        help_text="Of the error after a stream began; 0: none."
    )
    streamed = serializers.BooleanField(help_text="True: a stream.")
    principal = serializers.CharField(help_text="Who sent it.")
    key = serializers.IntegerField(
        source="key_id",
        allow_null=True,
        help_text="The number of the gateway key. Null: the identity was in headers.",
    )
    prompt_tokens = serializers.IntegerField(allow_null=True, help_text=NULL_UNKNOWN)
    completion_tokens = serializers.IntegerField(
        allow_null=True, help_text=NULL_UNKNOWN
    )
    estimated = serializers.BooleanField(
        help_text="True: the tokens or the cost are in part an estimate."
    )
    first_chunk_ms = serializers.IntegerField(
        allow_null=True, help_text="Until the first chunk. Null: there was none."
    )
    duration_ms = serializers.IntegerField(help_text="Until the end.")
    excerpt = serializers.CharField(help_text="The beginning of the last message.")
    truncated = serializers.BooleanField(
        help_text="True: the prompt or the answer is cut."
    )


@extend_schema_serializer(examples=[response_example(DETAILS)])
class LoggedRequestDetailsSerializer(LoggedRequestSerializer):
    tools = StoredJSONField("The names of the tools that it offers.", NAMES)
    prompt = StoredJSONField(
        "The body as it was sent, without tools, cut.", {"type": "object"} | AND_OTHERS
    )
    answer = StoredJSONField("One for each choice.", array_of(CHOICE))
    error = serializers.CharField(help_text="What the client got of a failure.")


REQUEST_PAGE = page_shape("RequestPage", LoggedRequestSerializer)
