"""Lists as `{"items": […]}`, and the query parameters of a page."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response

from webhooks_core.web.fields import CountField, StrictListField
from webhooks_core.web.json_schema import object_of


class PageQuery(serializers.Serializer[Any]):
    """The query parameters of a list in pages."""

    page = CountField(default=1, help_text="Starts at 1. A page past the end is empty.")
    page_size = CountField(default=20, maximum=100, help_text="Items in a page.")


class ItemsPagination(BasePagination):
    """The shape of a list, which is complete; a page past the end has no items."""

    def paginate_queryset(
        self, queryset: Any, request: Request, view: Any = None
    ) -> Any:
        return queryset

    def get_paginated_response(self, data: Any) -> Response:
        return Response({"items": data})

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        if isinstance(schema, dict):  # the library also passes a placeholder
            schema = schema | {"description": "Newest first."}
        return object_of(items=schema)

    def get_schema_operation_parameters(self, view: Any) -> list[Any]:
        return []  # a view with pages names PageQuery


class ManyField(StrictListField):
    """A query parameter that may be repeated."""


def read_query(query: serializers.Serializer[Any], request: Request) -> dict[str, Any]:
    """Return the query parameters; of one that may not be repeated, the last.

    Raises ValidationError.
    """
    params = request.query_params
    # As a dict: in a QueryDict, an empty parameter is an absent one to DRF.
    query.initial_data = {
        name: params.getlist(name)
        if isinstance(query.fields.get(name), ManyField)
        else params[name]
        for name in params
    }
    query.is_valid(raise_exception=True)
    return dict(query.validated_data)
