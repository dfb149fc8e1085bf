"""The gateway's REST endpoints: each maps a request to a use case."""

from __future__ import annotations

from typing import Any, cast

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from gateway import errors, ingest, subscriptions
from gateway.authentication import GatewayAuthentication
from gateway.events import Origin
from gateway.identity import Caller
from gateway.ingest_parsers import DocumentFormParser, DocumentJSONParser
from gateway.serializers import (
    DOCUMENT_FORM,
    EVENT_ID,
    SUBSCRIPTION,
    ChangeSerializer,
    CreationSerializer,
    DeliverySerializer,
    DocumentSerializer,
    ErrorSerializer,
    ListQuery,
    SubscriptionCreatedSerializer,
    SubscriptionSerializer,
    request_example,
    response_example,
)
from gateway.throttles import CreateThrottle, IngestThrottle, TestThrottle
from gateway.webhooks import EVENT_TYPES, INGEST_COMPLETED
from webhooks_core.models import Endpoint
from webhooks_core.web.json_schema import BOOLEAN, described, object_of
from webhooks_core.web.pages import PageQuery, read_query
from webhooks_core.web.views import ProductAPIView
from webhooks_core.web.viewsets import ProductViewSet


@extend_schema(tags=["Gateway webhooks"])
class GatewayView(ProductAPIView):
    """Answers known callers only, and errors in the gateway's shape."""

    product = "gateway"
    error_handler = errors.HANDLER
    error_serializer = ErrorSerializer
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

    operation_prefix = "gateway_subscriptions"
    conflicting_actions = ("partial_update", "destroy", "test")
    serializer_class = SubscriptionSerializer
    lookup_url_kwarg = "subscription_id"
    example_id = SUBSCRIPTION["id"]

    def get_throttles(self) -> list[Any]:
        if self.action == "create":
            return [CreateThrottle()]
        return super().get_throttles()

    def get_object(self) -> Endpoint:
        subscription_id = self.kwargs["subscription_id"]
        return subscriptions.find(self.caller.tenant, subscription_id)

    @extend_schema(
        summary="List the tenant's subscriptions, newest first", parameters=[ListQuery]
    )
    def list(self, request: Request) -> Response:
        page = read_query(ListQuery, request)
        rows = subscriptions.of_tenant(self.caller.tenant, **page)
        return self.get_paginated_response(self.get_serializer(rows, many=True).data)

    @extend_schema(
        summary="Create a subscription; its secret is returned only here",
        request=CreationSerializer,
        responses={201: SubscriptionCreatedSerializer},
    )
    def create(self, request: Request) -> Response:
        fields = self.read_body(CreationSerializer, partial=True)
        created = subscriptions.create(tenant=self.caller.tenant, **fields)
        CreateThrottle().count(request, self)
        return Response(SubscriptionCreatedSerializer(created).data, status=201)

    @extend_schema(summary="Describe a subscription")
    def retrieve(self, request: Request, subscription_id: str) -> Response:
        return Response(self.get_serializer(self.get_object()).data)

    @extend_schema(
        summary="Change url, event types, description or the active toggle",
        request=ChangeSerializer,
    )
    def partial_update(self, request: Request, subscription_id: str) -> Response:
        subscription = self.get_object()
        subscriptions.check_changeable(subscription)
        fields = self.read_body(ChangeSerializer, partial=True)
        updated = subscriptions.update(
            tenant=self.caller.tenant, subscription=subscription, fields=fields
        )
        return Response(self.get_serializer(updated).data)

    @extend_schema(summary="Delete a subscription; its pending deliveries fail")
    def destroy(self, request: Request, subscription_id: str) -> Response:
        subscription = self.get_object()
        subscriptions.check_changeable(subscription)
        subscriptions.delete(subscription)
        return Response(status=204)

    @extend_schema(
        summary="Queue a signed webhook.test for this subscription alone",
        request=None,
        responses={
            202: object_of(
                event_id=described("The id of the test event."),
                queued=described("Always true: it is stored.", BOOLEAN),
            )
        },
        examples=[response_example({"event_id": EVENT_ID, "queued": True})],
    )
    @action(detail=True, methods=["post"], throttle_classes=[TestThrottle])
    def test(self, request: Request, subscription_id: str) -> Response:
        event = subscriptions.send_test(
            origin=self.origin, subscription_id=subscription_id
        )
        return Response({"event_id": event.public_id, "queued": True}, status=202)

    @extend_schema(
        summary="List what was sent to a subscription, newest first",
        parameters=[PageQuery],
        responses=DeliverySerializer(many=True),
    )
    @action(detail=True)
    def deliveries(self, request: Request, subscription_id: str) -> Response:
        rows = subscriptions.deliveries(
            self.get_object(), **read_query(PageQuery, request)
        )
        return self.get_paginated_response(DeliverySerializer(rows, many=True).data)


INGESTED = EVENT_TYPES[INGEST_COMPLETED]


class IngestView(GatewayView):
    """/v1/ingest: documents, as JSON or as a form."""

    parser_classes = (DocumentJSONParser, DocumentFormParser)
    throttle_classes = (IngestThrottle,)

    @extend_schema(
        operation_id="gateway_ingest",
        summary="Ingest a document; the same text again answers 200 with the first result",
        request={
            "application/json": DocumentSerializer,
            "multipart/form-data": DOCUMENT_FORM,
        },
        responses={201: dict(INGESTED.schema), 200: dict(INGESTED.schema)},
        examples=[
            request_example(
                {
                    "title": "Harbour regulations",
                    "text": "# Harbour regulations\n\nShips give way to ferries.",
                    "content_type": "text/markdown",
                    "metadata": {"source": "intranet"},
                }
            ),
            response_example(INGESTED.sample),
        ],
    )
    def post(self, request: Request) -> Response:
        ingested = ingest.ingest(
            origin=self.origin, **self.read_body(DocumentSerializer)
        )
        status = 201 if ingested.is_new else 200
        return Response(ingest.result(ingested.document), status=status)
