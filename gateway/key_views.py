"""/v1/keys: the keys of the caller's tenant."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework.request import Request
from rest_framework.response import Response

from gateway.identity import KEYS
from gateway.key_serializers import (
    KEY,
    KeyCreatedSerializer,
    KeySerializer,
    NewKeySerializer,
)
from gateway.tenant_keys import TenantKeys
from gateway.throttles import CreateThrottle
from gateway.viewsets import GatewayView
from webhooks_core.web import owner_serializers as shapes
from webhooks_core.web.owner_requests import CursorQuery, NoQuery
from webhooks_core.web.owner_views import newest, page_of
from webhooks_core.web.pages import read_query
from webhooks_core.web.views import ProductViewSet


@extend_schema_view(
    list=extend_schema(
        summary="List the tenant's keys that are not revoked, newest first",
        parameters=[CursorQuery],
        responses=shapes.page("KeyPage", KeySerializer, KEY),
    ),
    create=extend_schema(
        summary="Create a key with at most the rights of yours; it is shown only here",
        request=NewKeySerializer,
        responses={201: KeyCreatedSerializer},
    ),
    retrieve=extend_schema(summary="Describe a key"),
    destroy=extend_schema(summary="Revoke a key"),
)
@extend_schema(tags=["Gateway keys"])
class KeyViewSet(GatewayView, ProductViewSet):
    """Maps requests of a caller with the scope `keys` to TenantKeys."""

    required_scope = KEYS
    operation_prefix = "gateway_keys"
    strict_actions = ("list", "create", "retrieve", "destroy")
    lookup_url_kwarg = "key_id"
    example_id = str(KEY["id"])
    serializer_class = KeySerializer
    throttles = {"create": CreateThrottle}

    @property
    def keys(self) -> TenantKeys:
        return TenantKeys(self.caller)

    def list(self, request: Request) -> Response:
        query = read_query(CursorQuery(), request)
        found, cursor = newest(self.keys.all(), query)
        return page_of(KeySerializer(found, many=True), cursor)

    def create(self, request: Request) -> Response:
        read_query(NoQuery(), request)
        fields = self.read_body(NewKeySerializer).validated_data
        created = self.keys.create(**fields)
        CreateThrottle().count(request, self)
        return Response(KeyCreatedSerializer(created).data, 201)

    def retrieve(self, request: Request, key_id: str) -> Response:
        key = self.keys.find(key_id)
        read_query(NoQuery(), request)
        return Response(KeySerializer(key).data)

    def destroy(self, request: Request, key_id: str) -> Response:
        key = self.keys.find(key_id)
        read_query(NoQuery(), request)
        self.keys.delete(key)
        return Response(status=204)
