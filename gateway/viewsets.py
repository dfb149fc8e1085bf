"""The gateway's REST endpoints: each translates a request into a use case and back."""

from __future__ import annotations

from typing import Any, cast

from django.http import HttpResponse
from rest_framework.request import Request
from rest_framework.response import Response

from gateway import errors, ingest, openapi, subscriptions
from gateway.authentication import Caller, GatewayAuthentication
from gateway.errors import BadRequestError
from gateway.events import Origin
from gateway.throttles import CreateThrottle, IngestThrottle, TestThrottle
from gateway.uploads import DocumentFormParser, DocumentJSONParser
from webhooks_core.api.pagination import PageQuery, read_query
from webhooks_core.api.views import ProductAPIView


class GatewayView(ProductAPIView):
    """Answers in the gateway's error shape, for a known caller only."""

    error_handler = errors.HANDLER
    authentication_classes = (GatewayAuthentication,)

    @property
    def caller(self) -> Caller:
        return cast("Caller", self.request.user)

    @property
    def origin(self) -> Origin:
        return Origin.of(self.caller, self.request)


class SubscriptionsView(GatewayView):
    """GET and POST /v1/webhooks/subscriptions."""

    def get_throttles(self) -> list[Any]:
        return [CreateThrottle()] if self.request.method == "POST" else []

    @openapi.LIST
    def get(self, request: Request) -> Response:
        paged = {"page", "page_size"} & set(request.query_params)
        query = read_query(PageQuery, request)
        items = subscriptions.subscriptions(
            self.caller.tenant,
            page=query["page"],
            page_size=query["page_size"] if paged else None,
        )
        return Response({"items": items})

    @openapi.CREATE
    def post(self, request: Request) -> Response:
        body = self.get_body()
        created = subscriptions.create(
            tenant=self.caller.tenant,
            fields=subscriptions.read_fields(body),
            secret=subscriptions.read_secret(body),
        )
        CreateThrottle().count(request, self)
        shown = subscriptions.shown(created.endpoint, secret=created.secret)
        return Response(shown, status=201)


class SubscriptionView(GatewayView):
    """GET, PATCH and DELETE /v1/webhooks/subscriptions/{id}."""

    @openapi.DESCRIBE
    def get(self, request: Request, subscription_id: str) -> Response:
        found = subscriptions.find(self.caller.tenant, subscription_id)
        return Response(subscriptions.shown(found))

    @openapi.UPDATE
    def patch(self, request: Request, subscription_id: str) -> Response:
        found = subscriptions.find(self.caller.tenant, subscription_id)
        subscriptions.check_changeable(found)
        body = self.get_body()
        if "secret" in body:
            raise BadRequestError("secret cannot be changed here; it is rotated.")
        updated = subscriptions.update(
            tenant=self.caller.tenant,
            subscription=found,
            fields=subscriptions.read_fields(body),
        )
        return Response(subscriptions.shown(updated))

    @openapi.DELETE
    def delete(self, request: Request, subscription_id: str) -> Response:
        found = subscriptions.find(self.caller.tenant, subscription_id)
        subscriptions.check_changeable(found)
        subscriptions.delete(found)
        return Response(status=204)


class TestView(GatewayView):
    """POST /v1/webhooks/subscriptions/{id}/test."""

    __test__ = False  # the name is the endpoint's, not a test case's
    throttle_classes = (TestThrottle,)

    @openapi.TEST
    def post(self, request: Request, subscription_id: str) -> Response:
        event = subscriptions.send_test(
            origin=self.origin, subscription_id=subscription_id
        )
        return Response({"event_id": event.public_id, "queued": True}, status=202)


class DeliveriesView(GatewayView):
    """GET /v1/webhooks/subscriptions/{id}/deliveries."""

    @openapi.DELIVERIES
    def get(self, request: Request, subscription_id: str) -> Response:
        found = subscriptions.find(self.caller.tenant, subscription_id)
        items = subscriptions.deliveries(found, **read_query(PageQuery, request))
        return Response({"items": items})


class IngestView(GatewayView):
    """POST /v1/ingest."""

    parser_classes = (DocumentJSONParser, DocumentFormParser)
    throttle_classes = (IngestThrottle,)

    @openapi.INGEST
    def post(self, request: Request) -> HttpResponse:
        sent = ingest.read(self.get_body())
        ingested = ingest.ingest(origin=self.origin, sent=sent)
        status = 201 if ingested.is_new else 200
        return Response(ingest.result(ingested.document), status=status)
