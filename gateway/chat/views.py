"""Chat under Django's own handlers, for a server that does not run config/asgi.py."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from django.core.handlers.asgi import ASGIRequest
from django.http import (
    HttpRequest,
    HttpResponse,
    JsonResponse,
    StreamingHttpResponse,
)
from django.http.response import HttpResponseBase
from django.views.decorators.csrf import csrf_exempt
from rest_framework.request import Request
from rest_framework.response import Response

from gateway.chat import openapi, runtime
from gateway.chat.http_messages import MAX_BODY_BYTES, ChatRequest, ChatResponse
from gateway.chat.metering import reports
from gateway.chat.service import ADDRESSES, MODEL_PREFIX, address_of
from gateway.errors import HANDLER, PayloadTooLargeError, UnavailableError
from gateway.viewsets import GatewayView
from webhooks_core.api.errors import response

__all__ = ["ADDRESSES", "MODEL_PREFIX", "UsageView", "chat", "response_for"]


@csrf_exempt
async def chat(request: HttpRequest, **_: str) -> HttpResponseBase:
    """Answer one request as gateway.chat.asgi does, which reads the path itself.

    Under WSGI nothing can stream: 503.
    """
    if not isinstance(request, ASGIRequest):
        return response(UnavailableError())

    async def read() -> bytes:
        body = request.read(MAX_BODY_BYTES + 1)
        if len(body) > MAX_BODY_BYTES:
            raise PayloadTooLargeError
        return body

    incoming = ChatRequest(
        method=request.method or "",
        path=request.path,
        headers={name.lower(): value for name, value in request.headers.items()},
        peer=request.META.get("REMOTE_ADDR") or "",
        read=read,
    )
    # The middleware that logs has given it one already.
    incoming.request_id = getattr(request, "request_id", incoming.request_id)
    service = (await runtime.start()).service
    return _response(await service.answer(incoming), incoming.request_id)


def response_for(
    request: HttpRequest, status: int, error: BaseException | None
) -> HttpResponse:
    """Answer what failed outside the service in the shape of the address, if it is one of chat's."""
    if request.path not in ADDRESSES and not request.path.startswith(MODEL_PREFIX):
        return HANDLER.response_for(request, status, error)
    told = HANDLER.translate(error) or HANDLER.kinds[status]()
    dialect = address_of(request.path).dialect
    body = dialect.error(told.status_code, told.detail)
    return JsonResponse(body, status=told.status_code, headers=told.headers)


def _response(reply: ChatResponse, request_id: str) -> HttpResponseBase:
    headers = {**reply.headers, "X-Request-Id": request_id}
    if reply.rest is None:
        return HttpResponse(reply.body, status=reply.status, headers=headers)
    parts = _parts(reply.body, reply.rest)
    return StreamingHttpResponse(parts, status=reply.status, headers=headers)


async def _parts(first: bytes, rest: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    async with aclosing(rest):
        yield first
        async for part in rest:
            yield part


class UsageView(GatewayView):
    """GET /v1/usage: what the caller's tenant has used."""

    @openapi.DESCRIBE_USAGE
    def get(self, request: Request) -> Response:
        question = reports.Question.read(request.query_params.dict())
        return Response(reports.usage(self.caller.tenant, question))
