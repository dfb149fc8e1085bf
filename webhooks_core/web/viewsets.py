"""The base of the products' viewsets."""

from __future__ import annotations

from typing import Any

from rest_framework.serializers import BaseSerializer
from rest_framework.viewsets import GenericViewSet

from webhooks_core.web.pages import ItemsPagination
from webhooks_core.web.views import ProductAPIView


class ProductViewSet(ProductAPIView, GenericViewSet[Any]):
    """Routes actions to use cases. A product's `get_object` raises its own 404."""

    pagination_class: type[ItemsPagination] | None = ItemsPagination

    def get_valid_serializer(
        self, instance: Any = None, **options: Any
    ) -> BaseSerializer[Any]:
        """Return the serializer of the request's body. Raises ValidationError, and as `get_body`."""
        serializer = self.get_serializer(instance, data=self.get_body(), **options)
        serializer.is_valid(raise_exception=True)
        return serializer
