"""Lists as `{"items": […]}`, and the query parameters of their pages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeVar

from django.db.models import Model, QuerySet
from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from webhooks_core.errors import BadRequestError
from webhooks_core.web.fields import CountField, StrictCharField

Row = TypeVar("Row", bound=Model)


class PageQuery(serializers.Serializer[Any]):
    """The query parameters of a list in pages."""

    page = CountField(default=1, help_text="Starts at 1. A page past the end is empty.")
    page_size = CountField(default=20, maximum=100, help_text="Items in a page.")


class NoQuery(serializers.Serializer[Any]):
    """Query parameters of an address that knows no other ones: here none at all."""

    def to_internal_value(self, data: Any) -> Any:
        for name in data:
            if name not in self.fields:
                message = f"{name} is not a parameter of this address."
                raise ValidationError({name: message})
        return super().to_internal_value(data)


class CursorQuery(NoQuery):
    cursor = StrictCharField(
        required=False,
        allow_blank=True,
        max_length=32,
        error_messages={"max_length": "cursor has more than {max_length} characters."},
        help_text="`next_cursor` of the page before. Empty or missing: the first page.",
    )
    page_size = CountField(default=20, maximum=100, help_text="Items in a page.")


def read_query(
    query: serializers.BaseSerializer[Any], request: Request
) -> dict[str, Any]:
    """Return the query parameters; of a repeated one, the last. Raises ValidationError."""
    params = request.query_params
    # As a dict: in a QueryDict, an empty parameter is an absent one to DRF.
    query.initial_data = {name: params[name] for name in params}
    query.is_valid(raise_exception=True)
    return dict(query.validated_data)


def newest(rows: QuerySet[Row], query: Mapping[str, Any]) -> tuple[list[Row], str]:
    """Return a page of rows, newest first, and the cursor behind it; "" behind the last.

    Raises BadRequestError for the cursor.
    """
    cursor, size = query.get("cursor", ""), query["page_size"]
    if cursor:
        if not re.fullmatch("[0-9a-f]{1,15}", cursor):
            raise BadRequestError("cursor is not one of an answer.")
        rows = rows.filter(pk__lt=int(cursor, 16))
    found = list(rows.order_by("-pk")[: size + 1])
    return found[:size], f"{found[size - 1].pk:x}" if len(found) > size else ""


def page_of(items: serializers.BaseSerializer[Any], cursor: str) -> Response:
    return Response({"items": items.data, "next_cursor": cursor})


def items_shape(
    name: str, item: type[serializers.Serializer[Any]], *, has_cursor: bool = False
) -> Any:
    """Return the shape of a list, or of `page_of`, for the OpenAPI document."""
    fields: dict[str, Any] = {"items": item(many=True, help_text="Newest first.")}
    if has_cursor:
        text = "For the next page; empty after the last."
        fields["next_cursor"] = serializers.CharField(help_text=text)
    shape = type(name, (serializers.Serializer,), fields)
    return extend_schema_serializer(many=False)(shape)  # itself no list of lists
