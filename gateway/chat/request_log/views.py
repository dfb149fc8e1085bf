"""GET /v1/requests: the logged requests of the caller's tenant."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from gateway.chat.openapi import TAGS
from gateway.chat.request_log import store
from gateway.chat.request_log.serializers import (
    REQUEST_PAGE,
    LoggedRequestDetailsSerializer,
    LoggedRequestSerializer,
    RequestsQuery,
)
from gateway.identity import REQUESTS
from gateway.viewsets import GatewayView
from webhooks_core.web.errors import NotFoundError
from webhooks_core.web.pages import NoQuery, page_of, read_query


class RequestsView(GatewayView):
    """The list, newest first."""

    required_scope = REQUESTS

    @extend_schema(
        operation_id="gateway_requests",
        tags=TAGS,
        summary="List the tenant's logged requests, newest first",
        parameters=[RequestsQuery],
        responses=REQUEST_PAGE,
    )
    def get(self, request: Request) -> Response:
        query = read_query(RequestsQuery(), request)
        rows, cursor = store.search(
            self.caller,
            RequestsQuery.filter(query),
            query,
        )
        return page_of(LoggedRequestSerializer(rows, many=True), cursor)


class RequestView(GatewayView):
    """One request, with its prompt and its answer."""

    required_scope = REQUESTS
    detail = True  # it may be absent

    @extend_schema(
        operation_id="gateway_request",
        tags=TAGS,
        summary="Show a logged request with its prompt and its answer",
        responses=LoggedRequestDetailsSerializer,
    )
    def get(self, request: Request, request_id: str) -> Response:
        read_query(NoQuery(), request)
        row = store.find(self.caller, request_id)
        if row is None:
            raise NotFoundError("There is no such request in the log.")
        return Response(LoggedRequestDetailsSerializer(row).data)
