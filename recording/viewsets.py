"""The endpoints under /v1: each translates a request into a use case and its result back."""

from __future__ import annotations

from typing import Any, cast

from django.contrib.auth.models import AbstractUser
from django.http import HttpResponse
from drf_spectacular.utils import extend_schema, inline_serializer
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BooleanField, CharField
from rest_framework.throttling import BaseThrottle

from recording import cors, errors, subscriptions
from recording.accounts.locks import InactiveAccountError
from recording.authentication import BearerAuthentication, refused
from recording.serializers import (
    ENDPOINT_ID,
    EVENT,
    EVENT_ID,
    EVENTS,
    DeliverySerializer,
    ErrorSerializer,
    SampleQuery,
    SubscriptionCreatedSerializer,
    SubscriptionItemSerializer,
    SubscriptionSerializer,
    response,
)
from recording.throttles import CreateThrottle, PingThrottle
from webhooks_core.web.pages import PageQuery, read_query
from webhooks_core.web.viewsets import ProductViewSet


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


class SubscriptionViewSet(RecordingViewSet):
    """/v1/webhooks and what is below it."""

    lookup_url_kwarg = "endpoint_id"
    example_id = ENDPOINT_ID
    serializer_class = SubscriptionSerializer

    def get_throttles(self) -> list[BaseThrottle]:
        return (
            [CreateThrottle()] if self.action == "create" else super().get_throttles()
        )

    def get_object(self) -> Any:
        return subscriptions.find(self.account, self.kwargs["endpoint_id"])

    @extend_schema(summary="List the account's subscriptions, newest first")
    def list(self, request: Request) -> Response:
        rows = subscriptions.newest_first(self.account)
        return self.get_paginated_response(self.get_serializer(rows, many=True).data)

    @extend_schema(
        summary="Create a subscription; its secret is returned only here",
        responses={201: SubscriptionCreatedSerializer},
    )
    def create(self, request: Request) -> Response:
        serializer = self.get_valid_serializer()
        try:
            created = serializer.save(account=self.account)
        except InactiveAccountError as error:  # since the token was checked
            raise refused(request.path) from error
        return Response(SubscriptionCreatedSerializer(created).data, status=201)

    @extend_schema(
        summary="Replace the events, and the url unless it is omitted or empty",
        responses=SubscriptionItemSerializer,
    )
    def partial_update(self, request: Request, endpoint_id: str) -> Response:
        serializer = self.get_valid_serializer(self.get_object())
        serializer.save(account=self.account)
        return Response({"item": serializer.data})

    @extend_schema(
        summary="Delete a subscription and free its quota",
        responses={
            200: inline_serializer(
                "Deleted", {"ok": BooleanField(help_text="Always true.")}
            )
        },
        examples=[response({"ok": True})],
    )
    def destroy(self, request: Request, endpoint_id: str) -> Response:
        subscriptions.delete(self.get_object())
        return Response({"ok": True})

    @extend_schema(
        summary="Queue a signed webhook.ping for this subscription alone",
        request=None,
        responses=inline_serializer(
            "Ping",
            {
                "event_id": CharField(help_text="The `id` in the body of the event."),
                "queued": BooleanField(help_text="Always true: it is stored."),
            },
        ),
        examples=[response({"event_id": EVENT_ID, "queued": True})],
    )
    @action(detail=True, methods=["post"], throttle_classes=[PingThrottle])
    def test(self, request: Request, endpoint_id: str) -> Response:
        event = subscriptions.send_test(account=self.account, endpoint_id=endpoint_id)
        return Response({"event_id": event.public_id, "queued": True})

    @extend_schema(
        summary="List what was sent to a subscription, newest first",
        parameters=[PageQuery],
        responses=DeliverySerializer(many=True),
    )
    @action(detail=True)
    def deliveries(self, request: Request, endpoint_id: str) -> Response:
        subscription = self.get_object()
        page = read_query(PageQuery, request)
        rows = subscriptions.deliveries(subscription, **page)
        return self.get_paginated_response(DeliverySerializer(rows, many=True).data)


class EventViewSet(RecordingViewSet):
    """/v1/webhook-events/samples."""

    pagination_class = None

    @extend_schema(
        summary="Show recent events of a type, or a synthetic one when there are none",
        parameters=[SampleQuery],
        responses=EVENTS,
        examples=[response(EVENT)],
    )
    @action(detail=False)
    def samples(self, request: Request) -> HttpResponse:
        query = read_query(SampleQuery, request)
        bodies = subscriptions.recent_events(
            account=self.account, event_type=query["event"], limit=query["limit"]
        )
        # The stored bytes, as they were signed and sent.
        return HttpResponse(
            b"[" + b",".join(bodies) + b"]", content_type="application/json"
        )
