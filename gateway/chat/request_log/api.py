"""GET /v1/requests: the requests of the caller's tenant, refused ones too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from django.db.models import Q, QuerySet
from drf_spectacular.drainage import set_override
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from gateway import json
from gateway.chat.models import RequestRecord
from gateway.chat.openapi import TAGS
from gateway.identity import REQUESTS, Caller
from gateway.viewsets import GatewayView
from webhooks_core.models.lookups import among
from webhooks_core.web.errors import NotFoundError
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
from webhooks_core.web.pages import (
    CursorQuery,
    NoQuery,
    newest,
    page_of,
    page_shape,
    read_query,
)

PREFIX = "req_"
# So many requests are searched for a text by one request; the cursor goes on behind them.
SEARCHED = 1000
MAX_TEXT = 200
NULL_UNKNOWN = "Null: it is not known."
NULL_NOT_KEPT = "Null: the operator's configuration does not keep it."


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
        required=False,
        help_text="The status that counts: the error's, if there is one.",
    )
    text = StrictCharField(
        required=False,
        max_length=MAX_TEXT,
        error_messages={"max_length": "text has more than {max_length} characters."},
        help_text=f"Part of the prompt or the answer. A page searches {SEARCHED} requests.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        for name in ("model", "text"):
            if "\x00" in attrs.get(name, ""):
                raise ValidationError(f"{name} must not hold NUL.")
        since, until = attrs.get("since"), attrs.get("until")
        if since and until and since >= until:
            raise ValidationError("since must be before until.")
        return attrs


class StoredJSONField(serializers.Field[Any, Any, Any, Any]):
    """JSON that is stored as text, which no reader needs to understand; or null."""

    def __init__(self, text: str, shape: dict[str, Any]) -> None:
        super().__init__(allow_null=True)
        set_override(self, "field", described(f"{text} {NULL_NOT_KEPT}", shape))

    def to_representation(self, value: str) -> Any:
        return orjson.Fragment(value)


CHOICE = object_of(
    text=described("The text, cut."),
    reasoning=described("The text of the reasoning, cut."),
    refusal=described("Why the model refused."),
    tool_calls=described(
        "The calls of tools.",
        array_of(
            object_of(
                id=described("The upstream's id of the call."),
                name=described("The tool."),
                arguments=described("JSON as text, cut."),
            )
        ),
    ),
    finish_reason=described("Why it ended, in the words of the client's API."),
)


class RequestSerializer(serializers.Serializer[Any]):
    id = serializers.CharField(source="public_id", help_text="Of this entry.")
    request_id = serializers.CharField(help_text="As in `X-Request-Id`.")
    created_at = TimeField(help_text="UTC: when the request ended.")
    operation = serializers.CharField(help_text="What was requested.")
    model = serializers.CharField(
        source="requested", help_text="The model that the request names."
    )
    answered_by = serializers.CharField(
        source="model", help_text="The model that answered; empty: it was refused."
    )
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
    error = serializers.CharField(help_text="What the client got of a failure.")


class RequestDetailsSerializer(RequestSerializer):
    tools = StoredJSONField("The names of the tools that it offers.", array_of(STRING))
    prompt = StoredJSONField(
        "The body as it was sent, without tools, cut.", {"type": "object"} | AND_OTHERS
    )
    answer = StoredJSONField("One for each choice.", array_of(CHOICE))


def of(caller: Caller) -> QuerySet[RequestRecord]:
    """Return the requests of a caller's tenant, for the models that its key may call."""
    rows = RequestRecord.objects.filter(tenant=caller.tenant)
    models = caller.rights.models
    return rows if models is None else rows.filter(requested__in=models)


def narrowed(
    rows: QuerySet[RequestRecord], query: Mapping[str, Any]
) -> QuerySet[RequestRecord]:
    """Return the rows that match a query, but for its text."""
    if "since" in query:
        rows = rows.filter(created_at__gte=query["since"])
    if "until" in query:
        rows = rows.filter(created_at__lt=query["until"])
    if "model" in query:
        rows = rows.filter(requested=query["model"])
    if "key" in query:
        rows = rows.filter(key_id=query["key"])
    if "status" in query:
        failed = Q(error_status=query["status"])
        rows = rows.filter(failed | Q(error_status=0, status=query["status"]))
    return rows


def has_text(text: str) -> Q:
    """Return the condition for a part of the prompt, the answer or the error."""
    # As it stands in JSON.
    escaped = json.dumps(text)[1:-1].decode()
    in_json = Q(prompt__icontains=escaped) | Q(answer__icontains=escaped)
    return in_json | Q(error__icontains=text)


def search(caller: Caller, query: Mapping[str, Any]) -> tuple[list[RequestRecord], str]:
    """Return a page of the requests that a caller may see, newest first, and the cursor behind it.

    With a text, one page searches SEARCHED requests, and may be empty although others follow.
    """
    rows = narrowed(of(caller), query).defer("prompt", "answer", "tools")
    if "text" not in query:
        return newest(rows, query)
    searched, behind = newest(rows.only("pk"), {**query, "page_size": SEARCHED})
    matching = rows.filter(among([row.pk for row in searched]), has_text(query["text"]))
    found, cursor = newest(matching, {"page_size": query["page_size"]})
    return found, cursor or behind


def find(caller: Caller, name: str) -> RequestRecord | None:
    """Return a request that a caller may see by its id, or the newest by its request id."""
    if not name.isprintable():  # as every id is; PostgreSQL refuses a NUL
        return None
    number = name.removeprefix(PREFIX)
    is_id = name.startswith(PREFIX) and number.isdecimal() and len(number) <= 18
    named = Q(request_id=name) | Q(pk=int(number)) if is_id else Q(request_id=name)
    return of(caller).filter(named).order_by("-pk").first()


class RequestsView(GatewayView):
    """The list, newest first."""

    required_scope = REQUESTS

    @extend_schema(
        operation_id="gateway_requests",
        tags=TAGS,
        summary="List the tenant's requests, newest first",
        parameters=[RequestsQuery],
        responses=page_shape("RequestPage", RequestSerializer),
    )
    def get(self, request: Request) -> Response:
        rows, cursor = search(self.caller, read_query(RequestsQuery(), request))
        return page_of(RequestSerializer(rows, many=True), cursor)


class RequestView(GatewayView):
    """One request, with its prompt and its answer."""

    required_scope = REQUESTS
    detail = True  # it may be absent

    @extend_schema(
        operation_id="gateway_request",
        tags=TAGS,
        summary="Show a request, with its prompt and its answer if they are kept",
        responses=RequestDetailsSerializer,
    )
    def get(self, request: Request, request_id: str) -> Response:
        read_query(NoQuery(), request)
        row = find(self.caller, request_id)
        if row is None:
            raise NotFoundError("There is no such request.")
        return Response(RequestDetailsSerializer(row).data)
