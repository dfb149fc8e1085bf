"""The gateway's REST endpoints: each maps a request to a use case."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, cast

from drf_spectacular.utils import (
    extend_schema,
    extend_schema_view,
)
from rest_framework.decorators import action
from rest_framework.mixins import RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer

from gateway import errors, idempotency, ingest, publishing
from gateway.authentication import GatewayAuthentication, require_scope
from gateway.event_types import DRIFT_DETECTED, EVENT_TYPES, INGEST_COMPLETED
from gateway.events import Origin
from gateway.idempotency import RepeatableRequest
from gateway.identity import EVENTS, INGEST, WEBHOOKS, Caller
from gateway.parsers import DocumentFormParser, DocumentJSONParser, EventParser
from gateway.serializers import (
    DELIVERY,
    DOCUMENT_FORM,
    EVENT_ID,
    STATES,
    SUBSCRIPTION,
    ChangeSerializer,
    CreationSerializer,
    DeliveryDetailsSerializer,
    DeliverySerializer,
    DocumentSerializer,
    ErrorSerializer,
    ListPagination,
    ListQuery,
    NewEventSerializer,
    PublishedSerializer,
    SubscriptionCreatedSerializer,
    SubscriptionSerializer,
)
from gateway.subscriptions import Subscriptions
from gateway.throttles import CallerThrottle, CreateThrottle
from gateway.webhooks import PROFILE
from webhooks_core.endpoints import Created
from webhooks_core.models import Endpoint
from webhooks_core.web import owner_requests as requests
from webhooks_core.web import owner_serializers as shapes
from webhooks_core.web.errors import ConflictError
from webhooks_core.web.json_schema import BOOLEAN, described, object_of
from webhooks_core.web.openapi import IDEMPOTENCY
from webhooks_core.web.owner_examples import request_example, response_example
from webhooks_core.web.owner_views import (
    CONFLICTING,
    OwnerViewSet,
    by_action,
    event_types,
    stored_events,
)
from webhooks_core.web.pages import PageQuery, read_query
from webhooks_core.web.views import ProductAPIView


@extend_schema(tags=["Gateway webhooks"])
class GatewayView(ProductAPIView):
    """Answers known callers with a scope only, and errors in the gateway's shape."""

    product = "gateway"
    required_scope: ClassVar[str]
    error_handler = errors.HANDLER
    error_serializer = ErrorSerializer
    authentication_classes = (GatewayAuthentication,)

    def check_permissions(self, request: Request) -> None:
        if request.method != "OPTIONS":
            require_scope(self.caller, self.required_scope)

    @property
    def caller(self) -> Caller:
        return cast("Caller", self.request.user)

    @property
    def origin(self) -> Origin:
        return Origin.of(self.caller, self.request)


@extend_schema_view(
    list=extend_schema(
        summary="List the tenant's subscriptions, newest first", parameters=[ListQuery]
    ),
    create=extend_schema(
        summary="Create a subscription; its secret is returned only here",
        request=CreationSerializer,
        responses={201: SubscriptionCreatedSerializer},
    ),
    retrieve=extend_schema(summary="Describe a subscription"),
    partial_update=extend_schema(
        summary="Change url, event types, description or the active toggle",
        request=ChangeSerializer,
        responses=SubscriptionSerializer,
    ),
    destroy=extend_schema(summary="Delete a subscription; its pending deliveries fail"),
    test=extend_schema(
        summary="Queue a signed webhook.test for this subscription alone",
        request=None,
        responses={
            202: object_of(
                event_id=described("The id of the test event."),
                queued=described("Always true: it is stored.", BOOLEAN),
            )
        },
        examples=[response_example({"event_id": EVENT_ID, "queued": True})],
    ),
    deliveries=extend_schema(
        summary="List what was sent to a subscription, newest first",
        parameters=[PageQuery, requests.search_query(STATES)],
        responses={200: shapes.delivery_list("GatewayDelivery")},
        examples=[response_example({"items": [DELIVERY]})],
    ),
    delivery=extend_schema(responses=DeliveryDetailsSerializer),
)
class SubscriptionViewSet(GatewayView, RetrieveModelMixin, OwnerViewSet):
    """/v1/webhooks/subscriptions: the subscriptions of the caller's tenant."""

    required_scope = WEBHOOKS
    operation_prefix = "gateway_subscriptions"
    conflicting_actions = ("partial_update", "destroy", "test", *CONFLICTING)
    pagination_class = ListPagination
    lookup_url_kwarg = "subscription_id"
    example_id = SUBSCRIPTION["id"]
    serializer_class = SubscriptionSerializer
    request_serializers = {
        "create": CreationSerializer,
        "partial_update": ChangeSerializer,
    }
    response_serializers = {
        "create": SubscriptionCreatedSerializer,
        "partial_update": SubscriptionSerializer,
        "deliveries": DeliverySerializer,
        "delivery": DeliveryDetailsSerializer,
    }
    list_columns = SubscriptionSerializer.columns
    throttles = by_action(CallerThrottle) | {"create": CreateThrottle}
    states = STATES
    test_status = 202

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

    def perform_create(self, serializer: BaseSerializer[Any]) -> Created:
        created = super().perform_create(serializer)
        CreateThrottle().count(self.request, self)
        return created

    @extend_schema(
        operation_id="gateway_event_types",
        summary="List the event types",
        responses=shapes.EVENT_TYPES,
    )
    @action(detail=False, url_path="event-types")
    def types(self, request: Request) -> Response:
        return event_types(PROFILE, request)

    @extend_schema(
        operation_id="gateway_events",
        summary="List the tenant's events, newest first, with what became of each",
        parameters=[requests.StoredEventQuery],
        responses=shapes.STORED_EVENTS,
    )
    @action(detail=False)
    def events(self, request: Request) -> Response:
        return stored_events(self.subscriptions, request)


INGESTED = EVENT_TYPES[INGEST_COMPLETED]


class IngestView(GatewayView):
    """/v1/ingest: documents, as JSON or as a form."""

    required_scope = INGEST
    parser_classes = (DocumentJSONParser, DocumentFormParser)
    throttles = {"post": partial(CallerThrottle, "ingest")}

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
        fields = self.read_body(DocumentSerializer).validated_data
        ingested = ingest.ingest(origin=self.origin, **fields)
        status = 201 if ingested.is_new else 200
        return Response(ingest.result(ingested.document), status=status)


DRIFT = {"type": DRIFT_DETECTED, "data": EVENT_TYPES[DRIFT_DETECTED].sample}


class PublishView(GatewayView):
    """/v1/events: events of the caller."""

    required_scope = EVENTS
    parser_classes = (EventParser,)
    throttles = {"post": partial(CallerThrottle, "publish")}

    @extend_schema(
        operation_id="gateway_publish",
        summary="Publish an event",
        parameters=[idempotency.PARAMETER],
        request=NewEventSerializer,
        responses={202: PublishedSerializer},
        examples=[request_example(DRIFT)],
    )
    def post(self, request: Request) -> Response:
        read_query(requests.NoQuery(), request)
        fields = self.read_body(NewEventSerializer).validated_data
        new = {"event_type": fields["type"], "data": fields["data"]}
        key = request.headers.get(IDEMPOTENCY)
        if key is None:
            return Response(publishing.publish(origin=self.origin, **new), 202)
        repeatable = RepeatableRequest.of(self.caller.tenant, key, request.data)
        published = publishing.publish_once(repeatable, origin=self.origin, **new)
        return Response(published, 202)
