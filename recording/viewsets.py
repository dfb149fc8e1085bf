"""The endpoints under /v1: each translates a request into a use case and its result back."""

from __future__ import annotations

from typing import Any, cast

from django.contrib.auth.models import AbstractUser
from django.http import HttpResponse
from drf_spectacular.utils import (
    extend_schema,
    extend_schema_view,
    inline_serializer,
)
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer, BooleanField, CharField

from recording import cors, errors
from recording.accounts.locks import InactiveAccountError
from recording.authentication import BearerAuthentication, refused
from recording.serializers import (
    DELIVERY,
    ENDPOINT_ID,
    EVENT,
    EVENT_ID,
    EVENTS,
    STATES,
    DeliveryDetailsSerializer,
    DeliverySerializer,
    ErrorSerializer,
    SampleQuery,
    SubscriptionCreatedSerializer,
    SubscriptionItemSerializer,
    SubscriptionSerializer,
)
from recording.subscriptions import Subscriptions, recent_events
from recording.throttles import AccountThrottle
from recording.webhooks import PROFILE
from webhooks_core.endpoints import Created
from webhooks_core.web import owner_requests as requests
from webhooks_core.web import owner_serializers as shapes
from webhooks_core.web.owner_examples import response_example
from webhooks_core.web.owner_views import (
    CONFLICTING,
    OwnerViewSet,
    by_action,
    event_types,
    stored_events,
)
from webhooks_core.web.pages import PageQuery, read_query
from webhooks_core.web.views import ProductAPIView, ProductViewSet


@extend_schema(tags=["Recording webhooks"])
class RecordingViewSet(ProductViewSet):
    """Serves the account of a token, to scripts of any site, with errors in recording's shape."""

    product = "recording"
    error_handler = errors.HANDLER
    error_serializer = ErrorSerializer
    authentication_classes = (BearerAuthentication,)

    @property
    def default_response_headers(self) -> dict[str, str]:
        return super().default_response_headers | cors.CORS_HEADERS

    def options(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        allowed = super().options(request, *args, **kwargs)
        return cors.with_cors(allowed, methods=self.allowed_methods)

    @property
    def account(self) -> AbstractUser:
        return cast("AbstractUser", self.request.user)


@extend_schema_view(
    list=extend_schema(summary="List the account's subscriptions, newest first"),
    create=extend_schema(
        responses={201: SubscriptionCreatedSerializer},
    ),
    partial_update=extend_schema(
        summary="Replace the events, and the url unless it is omitted or empty",
        responses=SubscriptionItemSerializer,
    ),
    destroy=extend_schema(
        summary="Delete a subscription and free its quota",
        responses={
            200: inline_serializer(
                "Deleted", {"ok": BooleanField(help_text="Always true.")}
            )
        },
        examples=[response_example({"ok": True})],
    ),
    test=extend_schema(
        summary="Queue a signed webhook.ping for this subscription alone",
        request=None,
        responses=inline_serializer(
            "Ping",
            {
                "event_id": CharField(help_text="The `id` in the body of the event."),
                "queued": BooleanField(help_text="Always true: it is stored."),
            },
        ),
        examples=[response_example({"event_id": EVENT_ID, "queued": True})],
    ),
    deliveries=extend_schema(
        summary="List what was sent to a subscription, newest first",
        parameters=[PageQuery, requests.search_query(STATES)],
        responses={200: shapes.delivery_list("RecordingDelivery")},
        examples=[response_example({"items": [DELIVERY]})],
    ),
    delivery=extend_schema(responses=DeliveryDetailsSerializer),
)
class SubscriptionViewSet(RecordingViewSet, OwnerViewSet):
    """/v1/webhooks and what is below it."""

    lookup_url_kwarg = "endpoint_id"
    example_id = ENDPOINT_ID
    serializer_class = SubscriptionSerializer
    response_serializers = {
        "create": SubscriptionCreatedSerializer,
        "partial_update": SubscriptionItemSerializer,
        "deliveries": DeliverySerializer,
        "delivery": DeliveryDetailsSerializer,
    }
    list_columns = SubscriptionSerializer.columns
    throttles = by_action(AccountThrottle)
    states = STATES
    conflicting_actions = CONFLICTING
    patch_is_partial = False  # omitted events are an empty list

    @property
    def subscriptions(self) -> Subscriptions:
        return Subscriptions(self.account)

    def perform_create(self, serializer: BaseSerializer[Any]) -> Created:
        try:
            return super().perform_create(serializer)
        except InactiveAccountError as error:  # since the token was checked
            raise refused(self.request.path) from error

    def destroy(self, request: Request, **options: str) -> Response:
        super().destroy(request, **options)
        return Response({"ok": True})


class MCPView(ProductAPIView):
    """/mcp for other methods than POST, which the ASGI entry serves (recording/mcp/asgi.py)."""

    product = "recording"
    error_handler = errors.HANDLER
    error_serializer = ErrorSerializer
    schema = None
    http_method_names = ["options"]

    @property
    def allowed_methods(self) -> list[str]:
        return ["POST", "OPTIONS"]

    def options(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        return cors.with_cors(super().options(request), methods=self.allowed_methods)


class EventViewSet(RecordingViewSet):
    """/v1/webhook-events: the account's events, their types and samples."""

    pagination_class = None
    strict_actions = ("types",)

    @extend_schema(
        operation_id="recording_events",
        summary="List the account's events, newest first, with what became of each",
        parameters=[requests.StoredEventQuery],
        responses=shapes.STORED_EVENTS,
    )
    def list(self, request: Request) -> Response:
        return stored_events(Subscriptions(self.account), request)

    @extend_schema(
        operation_id="recording_event_types",
        summary="List the event types",
        responses=shapes.EVENT_TYPES,
    )
    @action(detail=False)
    def types(self, request: Request) -> Response:
        return event_types(PROFILE, request)

    @extend_schema(
        operation_id="recording_samples",
        summary="Show recent events of a type, or a synthetic one when there are none",
        parameters=[SampleQuery],
        responses=EVENTS,
        examples=[response_example(EVENT)],
    )
    @action(detail=False)
    def samples(self, request: Request) -> HttpResponse:
        query = read_query(SampleQuery(), request)
        bodies = recent_events(
            account=self.account, event_type=query["event"], limit=query["limit"]
        )
        # The stored bytes, as they were signed and sent.
        return HttpResponse(
            b"[" + b",".join(bodies) + b"]", content_type="application/json"
        )
