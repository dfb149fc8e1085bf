"""The base of the products' viewsets."""

from __future__ import annotations

from typing import Any

from rest_framework.viewsets import GenericViewSet

from webhooks_core.api.pagination import ItemsPagination
from webhooks_core.api.views import ProductAPIView


class ProductViewSet(ProductAPIView, GenericViewSet[Any]):
    """Routes actions to use cases. A product's `get_object` raises its own 404."""

    pagination_class = ItemsPagination
