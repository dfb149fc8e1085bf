"""The endpoints under /v1: each translates a request into a use case and its result back."""

from __future__ import annotations

from typing import Any, ClassVar, cast

from django.contrib.auth.models import AbstractUser
from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.throttling import BaseThrottle

from recording import cors, errors
from recording.authentication import BearerAuthentication
from recording.serializers import (
    EVENTS,
    STATES,
    DeletedSerializer,
    DeliveryDetailsSerializer,
    DeliverySerializer,
    ErrorSerializer,
    PingSerializer,
    SampleQuery,
    SubscriptionCreatedSerializer,
    SubscriptionItemSerializer,
    SubscriptionSerializer,
)
from recording.subscriptions import Subscriptions, recent_events
from recording.throttles import AccountThrottle
from webhooks_core.api import shapes, views
from webhooks_core.web.pages import items_shape, read_query
from webhooks_core.web.views import ProductAPIView, ProductViewSet, Route


class RecordingView(ProductAPIView):
    """Serves scripts of any site, with errors in recording's shape."""

    product = "recording"
    error_handler = errors.HANDLER
    error_serializer = ErrorSerializer

    @property
    def default_response_headers(self) -> dict[str, str]:
        return super().default_response_headers | cors.CORS_HEADERS

    def options(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        allowed = super().options(request, *args, **kwargs)
        return cors.with_cors(allowed, methods=self.allowed_methods)


@extend_schema(tags=["Recording webhooks"])
class RecordingViewSet(RecordingView, ProductViewSet):
    """Serves the account of a token."""

    authentication_classes = (BearerAuthentication,)

    def throttle_for(self, rate: str) -> BaseThrottle:
        return AccountThrottle(rate)

    @property
    def account(self) -> AbstractUser:
        return cast("AbstractUser", self.request.user)


class SubscriptionViewSet(RecordingViewSet, views.SubscriptionViewSet):
    """/v1/webhooks and what is below it."""

    lookup_url_kwarg = "endpoint_id"
    serializer_class = SubscriptionSerializer
    delivery_shape = DeliverySerializer
    details_shape = DeliveryDetailsSerializer
    states = STATES
    patch_is_partial = False  # omitted events are an empty list
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
            summary="Replace the events, and the url unless it is omitted or empty",
            request=SubscriptionSerializer,
            response=SubscriptionItemSerializer,
        ),
        "destroy": Route(
            summary="Delete a subscription and free its quota",
            response=DeletedSerializer,
        ),
        "test": Route(
            summary="Queue a signed webhook.ping for this subscription alone",
            response=PingSerializer,
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
        return Subscriptions(self.account)

    def destroy(self, request: Request, **_: str) -> Response:
        super().destroy(request)
        return Response({"ok": True})


class MCPView(RecordingView):
    """/mcp for other methods than POST, which the ASGI entry serves (recording/mcp/asgi.py)."""

    schema = None
    http_method_names = ["options"]

    @property
    def allowed_methods(self) -> list[str]:
        return ["POST", "OPTIONS"]


class EventViewSet(RecordingViewSet):
    """/v1/webhook-events: samples of events."""

    @extend_schema(
        operation_id="recording_samples",
        summary="Show recent events of a type, or a synthetic one when there are none",
        parameters=[SampleQuery],
        responses=EVENTS,
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
