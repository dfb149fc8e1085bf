"""GET /v1/requests: the requests of the caller's tenant, refused ones too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from django.db.models import Q, QuerySet
from drf_spectacular.drainage import set_override
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from gateway.chat.models import RequestRecord
from gateway.chat.openapi import TAGS
from gateway.fields import ShownModel, StoredText
from gateway.identity import REQUESTS, Caller
from gateway.viewsets import GatewayView
from webhooks_core.errors import NotFoundError
from webhooks_core.web.fields import (
    CountField,
    TimeParameter,
    check_period,
)
from webhooks_core.web.json_schema import (
    AND_OTHERS,
    STRING,
    array_of,
    described,
    object_of,
)
from webhooks_core.web.pages import CursorQuery, items_shape, newest, page_of
from webhooks_core.web.views import route

PREFIX = "req_"
# The columns that parameters of the list compare.
LOOKUPS = {
    "since": "created_at__gte",
    "until": "created_at__lt",
    "model": "requested",
    "key": "key_id",
}
OTHER = object_of() | AND_OTHERS
NULL_NOT_KEPT = "Null: the operator's configuration does not keep it."


class RequestsQuery(CursorQuery):
    since = TimeParameter(
        required=False, help_text="RFC 3339: requests that ended from this time on."
    )
    until = TimeParameter(
        required=False, help_text="RFC 3339: requests that ended before this time."
    )
    model = StoredText(
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

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        return check_period(attrs)


class StoredJSONField(serializers.Field[Any, Any, Any, Any]):
    """JSON that is stored as text, which no reader needs to understand; or null."""

    def __init__(self, text: str, shape: dict[str, Any]) -> None:
        super().__init__(allow_null=True)
        set_override(self, "field", described(f"{text} {NULL_NOT_KEPT}", shape))

    def to_representation(self, value: str) -> Any:
        return orjson.Fragment(value)


class RequestSerializer(ShownModel[Any]):
    id = serializers.CharField(source="public_id", help_text="Of this entry.")
    model = serializers.CharField(
        source="requested", help_text="The model that the request names."
    )
    answered_by = serializers.CharField(
        source="model", help_text="The model that answered; empty: it was refused."
    )
    key = serializers.IntegerField(
        source="key_id",
        allow_null=True,
        help_text="The number of the gateway key. Null: the identity was in headers.",
    )

    class Meta:
        model = RequestRecord
        fields: Any = (
            *("id", "request_id", "created_at", "operation", "model", "answered_by"),
            *("status", "error_status", "streamed", "principal", "key"),
            *("prompt_tokens", "completion_tokens", "estimated", "first_chunk_ms"),
            *("duration_ms", "excerpt", "truncated", "error"),
        )


class RequestDetailsSerializer(RequestSerializer):
    tools = StoredJSONField("The names of the tools that it offers.", array_of(STRING))
    prompt = StoredJSONField("The body as it was sent, without tools, cut.", OTHER)
    answer = StoredJSONField(
        "For each choice its `text`, `reasoning`, `refusal`, `tool_calls` and `finish_reason`, cut.",
        array_of(OTHER),
    )

    class Meta(RequestSerializer.Meta):
        fields = (*RequestSerializer.Meta.fields, "tools", "prompt", "answer")


def of(caller: Caller) -> QuerySet[RequestRecord]:
    """Return the requests of a caller's tenant, for the models that its key may call."""
    rows = RequestRecord.objects.filter(tenant=caller.tenant)
    models = caller.rights.models
    return rows if models is None else rows.filter(requested__in=models)


def narrowed(
    rows: QuerySet[RequestRecord], query: Mapping[str, Any]
) -> QuerySet[RequestRecord]:
    """Return the rows that match a query."""
    given = {LOOKUPS[name]: query[name] for name in LOOKUPS if name in query}
    rows = rows.filter(**given)
    if "status" not in query:
        return rows
    status = query["status"]
    return rows.filter(Q(error_status=status) | Q(error_status=0, status=status))


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

    @route(
        name="requests",
        summary="List the tenant's requests, newest first",
        query=RequestsQuery,
        response=items_shape("RequestPage", RequestSerializer, has_cursor=True),
    )
    @extend_schema(tags=TAGS)
    def get(self, request: Request) -> Response:
        query = self.read_query()
        rows = narrowed(of(self.caller), query).defer("prompt", "answer", "tools")
        found, cursor = newest(rows, query)
        return page_of(RequestSerializer(found, many=True), cursor)


class RequestView(GatewayView):
    """One request, with its prompt and its answer."""

    required_scope = REQUESTS
    detail = True  # it may be absent

    @route(
        name="request",
        summary="Show a request, with its prompt and its answer if they are kept",
        response=RequestDetailsSerializer,
    )
    @extend_schema(tags=TAGS)
    def get(self, request: Request, request_id: str) -> Response:
        self.read_query()
        row = find(self.caller, request_id)
        if row is None:
            raise NotFoundError("There is no such request.")
        return self.respond(row)
