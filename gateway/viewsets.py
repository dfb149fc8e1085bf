"""The gateway's REST endpoints: each maps a request to a use case."""

from __future__ import annotations

import re
from functools import partial
from typing import Any, ClassVar, cast

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.throttling import BaseThrottle

from gateway import errors, ingest, publishing
from gateway.authentication import GatewayAuthentication, require_scope
from gateway.event_types import EVENT_TYPES, INGEST_COMPLETED
from gateway.events import Origin
from gateway.identity import EVENTS, INGEST, WEBHOOKS, Caller
from gateway.parsers import DocumentFormParser, DocumentJSONParser, EventParser
from gateway.serializers import (
    DOCUMENT_FORM,
    STATES,
    DeliveryDetailsSerializer,
    DeliverySerializer,
    DocumentSerializer,
    ErrorSerializer,
    NewEventSerializer,
    PublishedSerializer,
    QueuedSerializer,
    SubscriptionCreatedSerializer,
    SubscriptionSerializer,
)
from gateway.subscriptions import Subscriptions
from gateway.throttles import CallerThrottle, CreateThrottle
from webhooks_core.api import shapes, views
from webhooks_core.errors import BadRequestError, ConflictError
from webhooks_core.models import Endpoint
from webhooks_core.web.openapi import IDEMPOTENCY
from webhooks_core.web.pages import items_shape
from webhooks_core.web.views import ProductAPIView, Route, route


@extend_schema(tags=["Gateway webhooks"])
class GatewayView(ProductAPIView):
    """Answers known callers with a scope only, and errors in the gateway's shape."""

    product = "gateway"
    required_scope: ClassVar[str]
    error_handler = errors.HANDLER
    error_serializer = ErrorSerializer
    authentication_classes = (GatewayAuthentication,)

    def check_permissions(self, request: Request) -> None:
        require_scope(self.caller, self.required_scope)

    def throttle_for(self, rate: str) -> BaseThrottle:
        is_create = rate == CreateThrottle.scope
        return CreateThrottle() if is_create else CallerThrottle(rate)

    def respond(self, result: Any) -> Response:
        if self.route.throttle == CreateThrottle.scope:
            CreateThrottle().count(self.request, self)
        return super().respond(result)

    @property
    def caller(self) -> Caller:
        return cast("Caller", self.request.user)

    @property
    def origin(self) -> Origin:
        return Origin.of(self.caller, self.request)


class SubscriptionViewSet(GatewayView, views.SubscriptionViewSet):
    """/v1/webhooks/subscriptions: the subscriptions of the caller's tenant."""

    required_scope = WEBHOOKS
    operation_prefix = "gateway_subscriptions"
    lookup_url_kwarg = "subscription_id"
    serializer_class = SubscriptionSerializer
    delivery_shape = DeliverySerializer
    details_shape = DeliveryDetailsSerializer
    states = STATES
    routes: ClassVar = {
        "list": Route(
            summary="List the subscriptions, newest first",
            response=items_shape("SubscriptionList", SubscriptionSerializer),
        ),
        "create": Route(
            summary="Create a subscription; its secret is returned only here",
            request=SubscriptionSerializer,
            response=SubscriptionCreatedSerializer,
            status=201,
            throttle="create",
        ),
        "partial_update": Route(
            summary="Change url, event types, description or the active toggle",
            request=SubscriptionSerializer,
            response=SubscriptionSerializer,
            errors=(409,),
        ),
        "destroy": Route(
            summary="Delete a subscription; its pending deliveries fail",
            status=204,
            errors=(409,),
        ),
        "test": Route(
            summary="Queue a signed webhook.test for this subscription alone",
            response=QueuedSerializer,
            status=202,
            errors=(409,),
            throttle="test",
        ),
        "deliveries": Route(
            summary="List what was sent to a subscription, newest first",
            query=shapes.search_query(STATES),
            response=items_shape("DeliveryList", DeliverySerializer),
        ),
    }

    @property
    def subscriptions(self) -> Subscriptions:
        return Subscriptions(self.origin)

    def get_object(self) -> Endpoint:
        subscription = super().get_object()
        is_changed = self.action in {"partial_update", "destroy"}
        if is_changed and subscription.static_key is not None:
            raise ConflictError(
                "This subscription is part of the gateway's configuration and read-only."
            )
        return subscription

    @route(summary="Describe a subscription", response=SubscriptionSerializer)
    def retrieve(self, request: Request, **_: str) -> Response:
        return self.respond(self.get_object())


IDEMPOTENCY_KEY = re.compile(r"[!-~]{1,255}")
BAD_KEY = f"{IDEMPOTENCY} must have 1 to 255 printable ASCII characters without spaces."
INGESTED = EVENT_TYPES[INGEST_COMPLETED]


class IngestView(GatewayView):
    """/v1/ingest: documents, as JSON or as a form."""

    required_scope = INGEST
    parser_classes = (DocumentJSONParser, DocumentFormParser)

    @route(throttle="ingest")
    @extend_schema(
        operation_id="gateway_ingest",
        summary="Ingest a document; the same text again answers 200 with the first result",
        request={
            "application/json": DocumentSerializer,
            "multipart/form-data": DOCUMENT_FORM,
        },
        responses={201: dict(INGESTED.schema), 200: dict(INGESTED.schema)},
    )
    def post(self, request: Request) -> Response:
        fields = self.read_body(DocumentSerializer).validated_data
        ingested = ingest.ingest(origin=self.origin, **fields)
        status = 201 if ingested.is_new else 200
        return Response(ingest.result(ingested.document), status=status)


class PublishView(GatewayView):
    """/v1/events: events of the caller."""

    required_scope = EVENTS
    parser_classes = (EventParser,)

    @route(
        name="publish",
        summary="Publish an event",
        request=NewEventSerializer,
        response=PublishedSerializer,
        status=202,
        throttle="publish",
    )
    @extend_schema(
        parameters=[
            OpenApiParameter(
                IDEMPOTENCY,
                location=OpenApiParameter.HEADER,
                description="Kept for a day: repeated, it gets the first response.",
            )
        ]
    )
    def post(self, request: Request) -> Response:
        self.read_query()
        fields = self.read_body().validated_data
        key, publish = request.headers.get(IDEMPOTENCY), publishing.publish
        if key is not None:
            if not IDEMPOTENCY_KEY.fullmatch(key):
                raise BadRequestError(BAD_KEY)
            publish = partial(publishing.publish_once, key)
        event = {"event_type": fields["type"], "data": fields["data"]}
        return self.respond(publish(origin=self.origin, **event))
