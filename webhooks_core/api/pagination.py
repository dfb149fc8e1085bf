"""Lists as `{"items": […]}`, and the query parameters of a page."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response

from webhooks_core.api.fields import CountField


class PageQuery(serializers.Serializer[Any]):
    """The query parameters of a list that comes in pages."""

    page = CountField(default=1)
    page_size = CountField(default=20, maximum=100)


class ItemsPagination(BasePagination):
    """The shape of a list; a page past the end has no items."""

    def get_paginated_response(self, data: Any) -> Response:
        return Response({"items": data})

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {"items": schema},
            "required": ["items"],
        }

    def get_schema_operation_parameters(self, view: Any) -> list[Any]:
        return []  # a list that comes in pages names PageQuery


def read_query(
    query: type[serializers.Serializer[Any]], request: Request
) -> dict[str, Any]:
    """Return the query parameters that a serializer names. Raises ValidationError."""
    # A dict: of a QueryDict, DRF takes an empty parameter for an absent one.
    serializer = query(data=request.query_params.dict())
    serializer.is_valid(raise_exception=True)
    return dict(serializer.validated_data)
