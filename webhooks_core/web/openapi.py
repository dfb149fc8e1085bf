"""The OpenAPI document of the products: each operation from its route (web/views.py)."""

from __future__ import annotations

from typing import Any

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiResponse

from webhooks_core.web.views import ProductAPIView

# Actions whose operations have another name.
OPERATIONS = {
    "partial_update": "update",
    "destroy": "delete",
    "retrieve": "describe",
}
IDEMPOTENCY = "Idempotency-Key"  # the header of requests that are done once


class ProductAutoSchema(AutoSchema):
    """Reads the route of a handler; ids of operations and names of components begin with the product.

    A view has `product`, or an `operation_prefix` for ids, `error_handler` and `error_serializer`.
    """

    view: ProductAPIView  # type: ignore[override] # the only views that it describes

    def get_operation_id(self) -> str:
        prefix = getattr(self.view, "operation_prefix", self.view.product)
        action = getattr(self.view, "action", self.method.lower())
        return f"{prefix}_{self.view.route.name or OPERATIONS.get(action, action)}"

    def get_summary(self) -> str:
        return self.view.route.summary

    def get_description(self, *_: Any) -> str:
        return ""  # docstrings are for developers

    def get_request_serializer(self) -> Any:
        route = self.view.route
        return route.request if route.summary else super().get_request_serializer()

    def get_response_serializers(self) -> Any:
        route = self.view.route
        if not route.summary:
            return super().get_response_serializers()
        return dict.fromkeys(route.statuses, self.view.response_shape)

    def get_override_parameters(self) -> list[Any]:
        query = self.view.route.query
        return [query] if query else []

    def get_serializer_name(self, serializer: Any, direction: Any) -> str:
        name = super().get_serializer_name(serializer, direction)
        return f"{self.view.product.title()}{name}"

    def get_paginated_name(self, serializer_name: str) -> str:
        return f"{serializer_name}List"

    def _map_basic_serializer(self, serializer: Any, direction: Any) -> Any:
        schema = super()._map_basic_serializer(serializer, direction)  # type: ignore[no-untyped-call] # of the library
        if direction == "response":  # also what a request may omit
            schema["required"] = [*schema["properties"]]
        return schema

    def get_error_statuses(self) -> set[int]:
        """Return the statuses of a request's possible errors."""
        route, parameters = self.view.route, self.get_override_parameters()
        statuses = {401, 500, 503, *route.errors}
        if self.method in {"POST", "PATCH"} and self.get_request_serializer():
            statuses |= {400, 413, 415}
        if parameters:
            statuses |= {400}
        if any(getattr(each, "name", "") == IDEMPOTENCY for each in parameters):
            statuses |= {422}
        if hasattr(self.view, "required_scope"):
            statuses |= {403}
        if getattr(self.view, "detail", False):
            statuses |= {404}
        if route.throttle:
            statuses |= {429}
        return statuses

    def _get_response_bodies(self, direction: Any = "response") -> Any:
        # Not by get_response_serializers, which @extend_schema(responses=…) replaces.
        bodies = super()._get_response_bodies(direction)
        if not hasattr(self.view, "error_serializer"):
            return bodies
        for body in bodies.values():
            body["description"] = body["description"] or self.get_summary()
        described = {int(status) for status in bodies}  # by the view itself
        for status in sorted(self.get_error_statuses() - described):
            error = self.view.error_handler.kinds[status]()
            response = OpenApiResponse(self.view.error_serializer, error.detail)
            bodies[str(status)] = self._get_response_for_code(response, str(status))  # type: ignore[no-untyped-call] # of the library
        return bodies
