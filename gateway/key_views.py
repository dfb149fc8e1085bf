"""/v1/keys: the keys of the caller's tenant."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from gateway.identity import KEYS
from gateway.key_serializers import (
    KeyCreatedSerializer,
    KeySerializer,
    NewKeySerializer,
)
from gateway.tenant_keys import TenantKeys
from gateway.throttles import CreateThrottle
from gateway.viewsets import GatewayView
from webhooks_core.web.pages import CursorQuery, newest, page_of, page_shape
from webhooks_core.web.views import ProductViewSet, route


@extend_schema(tags=["Gateway keys"])
class KeyViewSet(GatewayView, ProductViewSet):
    """Maps requests of a caller with the scope `keys` to TenantKeys."""

    required_scope = KEYS
    operation_prefix = "gateway_keys"
    lookup_url_kwarg = "key_id"
    serializer_class = KeySerializer

    @property
    def keys(self) -> TenantKeys:
        return TenantKeys(self.caller)

    @route(
        summary="List the tenant's keys that are not revoked, newest first",
        query=CursorQuery,
        response=page_shape("KeyPage", KeySerializer),
    )
    def list(self, request: Request) -> Response:
        found, cursor = newest(self.keys.all(), self.read_query())
        return page_of(KeySerializer(found, many=True), cursor)

    @route(
        summary="Create a key with at most the rights of yours; it is shown only here",
        request=NewKeySerializer,
        response=KeyCreatedSerializer,
        status=201,
        throttle="create",
    )
    def create(self, request: Request) -> Response:
        self.read_query()
        fields = self.read_body().validated_data
        created = self.keys.create(**fields)
        CreateThrottle().count(request, self)
        return self.respond(created)

    @route(summary="Describe a key", response=KeySerializer, errors=(400,))
    def retrieve(self, request: Request, key_id: str) -> Response:
        key = self.keys.find(key_id)
        self.read_query()
        return self.respond(key)

    @route(summary="Revoke a key", status=204, errors=(400,))
    def destroy(self, request: Request, key_id: str) -> Response:
        key = self.keys.find(key_id)
        self.read_query()
        self.keys.delete(key)
        return Response(status=204)
