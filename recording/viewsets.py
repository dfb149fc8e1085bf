"""The endpoints under /v1: each translates a request into a use case and its answer back."""

from __future__ import annotations

from typing import Any, cast

from django.contrib.auth.models import AbstractUser
from django.http import HttpResponse
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from recording import cors, errors, openapi, subscriptions
from recording.activity import InactiveAccountError
from recording.authentication import BearerAuthentication, refused
from recording.errors import BadRequestError
from recording.throttles import CreateThrottle, PingThrottle
from webhooks_core.api.fields import CountField
from webhooks_core.api.pagination import PageQuery, read_query
from webhooks_core.api.views import ProductAPIView


class RecordingView(ProductAPIView):
    """Answers in recording's error shape, for the account of a token only; scripts of any site."""

    error_handler = errors.HANDLER
    authentication_classes = (BearerAuthentication,)

    @property
    def default_response_headers(self) -> dict[str, str]:
        return super().default_response_headers | cors.CORS_HEADERS

    def options(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        told = super().options(request, *args, **kwargs)
        return cors.with_cors(told, methods=self.allowed_methods)

    @property
    def account(self) -> AbstractUser:
        return cast("AbstractUser", self.request.user)


class SubscriptionsView(RecordingView):
    """GET and POST /v1/webhooks."""

    def get_throttles(self) -> list[Any]:
        return [CreateThrottle()] if self.request.method == "POST" else []

    @openapi.LIST
    def get(self, request: Request) -> Response:
        return Response({"items": subscriptions.subscriptions(self.account)})

    @openapi.CREATE
    def post(self, request: Request) -> Response:
        body = self.get_body()
        url, events = subscriptions.read_url(body), subscriptions.read_events(body)
        try:
            created = subscriptions.create(account=self.account, url=url, events=events)
        except InactiveAccountError as error:  # since the token was checked
            raise refused(request.path) from error
        return Response(subscriptions.shown_once(created), status=201)


class SubscriptionView(RecordingView):
    """PATCH and DELETE /v1/webhooks/{endpoint_id}."""

    @openapi.UPDATE
    def patch(self, request: Request, endpoint_id: str) -> Response:
        subscription = subscriptions.find(self.account, endpoint_id)
        body = self.get_body()
        updated = subscriptions.update(
            account=self.account,
            subscription=subscription,
            url=subscriptions.read_url(body),
            events=subscriptions.read_events(body),
        )
        return Response({"item": subscriptions.shown(updated)})

    @openapi.DELETE
    def delete(self, request: Request, endpoint_id: str) -> Response:
        subscriptions.delete(subscriptions.find(self.account, endpoint_id))
        return Response({"ok": True})


class PingView(RecordingView):
    """POST /v1/webhooks/{endpoint_id}/test."""

    throttle_classes = (PingThrottle,)

    @openapi.TEST
    def post(self, request: Request, endpoint_id: str) -> Response:
        event = subscriptions.send_test(account=self.account, endpoint_id=endpoint_id)
        return Response({"event_id": event.public_id, "queued": True})


class DeliveriesView(RecordingView):
    """GET /v1/webhooks/{endpoint_id}/deliveries."""

    @openapi.DELIVERIES
    def get(self, request: Request, endpoint_id: str) -> Response:
        subscription = subscriptions.find(self.account, endpoint_id)
        query = read_query(PageQuery, request)
        items = subscriptions.deliveries(subscription, **query)
        return Response({"items": items})


class SampleLimit(serializers.Serializer[Any]):
    limit = CountField(default=3, maximum=10)


class SamplesView(RecordingView):
    """GET /v1/webhook-events/samples."""

    @openapi.SAMPLES
    def get(self, request: Request) -> HttpResponse:
        event_type = request.query_params.get("event")
        if not event_type:
            raise BadRequestError("event is required: the event type.")
        subscriptions.check_event_type("event", event_type)
        limit = read_query(SampleLimit, request)["limit"]
        bodies = subscriptions.recent_events(
            account=self.account, event_type=event_type, limit=limit
        )
        # The stored bytes, as they were signed and sent.
        return HttpResponse(
            b"[" + b",".join(bodies) + b"]", content_type="application/json"
        )
