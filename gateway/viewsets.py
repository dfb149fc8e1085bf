"""The gateway's REST endpoints: each maps a request to a use case."""

from __future__ import annotations

from typing import Any, cast

from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from gateway import errors, ingest, openapi, subscriptions
from gateway.authentication import Caller, GatewayAuthentication
from gateway.events import Origin
from gateway.serializers import (
    ChangeSerializer,
    CreationSerializer,
    DeliverySerializer,
    DocumentSerializer,
    SubscriptionSerializer,
)
from gateway.throttles import CreateThrottle, IngestThrottle, TestThrottle
from gateway.uploads import DocumentFormParser, DocumentJSONParser
from webhooks_core.api.pagination import PageQuery, read_query
from webhooks_core.api.views import ProductAPIView
from webhooks_core.api.viewsets import ProductViewSet
from webhooks_core.models import Endpoint


class GatewayView(ProductAPIView):
    """Answers known callers only, and errors in the gateway's shape."""

    error_handler = errors.HANDLER
    authentication_classes = (GatewayAuthentication,)

    @property
    def caller(self) -> Caller:
        return cast("Caller", self.request.user)

    @property
    def origin(self) -> Origin:
        return Origin.of(self.caller, self.request)

    def read_body(
        self, serializer_class: type[serializers.Serializer[Any]], **options: Any
    ) -> dict[str, Any]:
        """Return the fields of the request's body. Raises ValidationError, or as get_body()."""
        serializer = serializer_class(data=self.get_body(), **options)
        serializer.is_valid(raise_exception=True)
        return dict(serializer.validated_data)


class SubscriptionViewSet(GatewayView, ProductViewSet):
    """/v1/webhooks/subscriptions: the subscriptions of the caller's tenant."""

    serializer_class = SubscriptionSerializer
    lookup_url_kwarg = "subscription_id"

    def get_throttles(self) -> list[Any]:
        if self.action == "create":
            return [CreateThrottle()]
        return super().get_throttles()

    def get_object(self) -> Endpoint:
        subscription_id = self.kwargs["subscription_id"]
        return subscriptions.find(self.caller.tenant, subscription_id)

    @openapi.LIST
    def list(self, request: Request) -> Response:
        query = read_query(PageQuery, request)
        has_pages = not {"page", "page_size"}.isdisjoint(request.query_params)
        rows = subscriptions.of_tenant(
            self.caller.tenant,
            page=query["page"],
            page_size=query["page_size"] if has_pages else None,
        )
        return self.get_paginated_response(self.get_serializer(rows, many=True).data)

    @openapi.CREATE
    def create(self, request: Request) -> Response:
        fields = self.read_body(CreationSerializer, partial=True)
        created = subscriptions.create(tenant=self.caller.tenant, **fields)
        CreateThrottle().count(request, self)
        subscription = self.get_serializer(created.endpoint).data
        return Response(subscription | {"secret": created.secret}, status=201)

    @openapi.DESCRIBE
    def retrieve(self, request: Request, subscription_id: str) -> Response:
        return Response(self.get_serializer(self.get_object()).data)

    @openapi.UPDATE
    def partial_update(self, request: Request, subscription_id: str) -> Response:
        subscription = self.get_object()
        subscriptions.check_changeable(subscription)
        fields = self.read_body(ChangeSerializer, partial=True)
        updated = subscriptions.update(
            tenant=self.caller.tenant, subscription=subscription, fields=fields
        )
        return Response(self.get_serializer(updated).data)

    @openapi.DELETE
    def destroy(self, request: Request, subscription_id: str) -> Response:
        subscription = self.get_object()
        subscriptions.check_changeable(subscription)
        subscriptions.delete(subscription)
        return Response(status=204)

    @openapi.TEST
    @action(detail=True, methods=["post"], throttle_classes=[TestThrottle])
    def test(self, request: Request, subscription_id: str) -> Response:
        event = subscriptions.send_test(
            origin=self.origin, subscription_id=subscription_id
        )
        return Response({"event_id": event.public_id, "queued": True}, status=202)

    @openapi.DELIVERIES
    @action(detail=True)
    def deliveries(self, request: Request, subscription_id: str) -> Response:
        rows = subscriptions.deliveries(
            self.get_object(), **read_query(PageQuery, request)
        )
        return self.get_paginated_response(DeliverySerializer(rows, many=True).data)


class IngestView(GatewayView):
    """/v1/ingest: documents, as JSON or as a form."""

    parser_classes = (DocumentJSONParser, DocumentFormParser)
    throttle_classes = (IngestThrottle,)

    @openapi.INGEST
    def post(self, request: Request) -> Response:
        ingested = ingest.ingest(
            origin=self.origin, **self.read_body(DocumentSerializer)
        )
        status = 201 if ingested.is_new else 200
        return Response(ingest.result(ingested.document), status=status)
