"""Chat under WSGI."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from rest_framework.request import Request

from gateway.chat import runtime
from gateway.chat.http_messages import (
    MAX_BODY_BYTES,
    ChatRequest,
    ChatResponse,
    check_length,
)
from gateway.chat.loop_thread import LOOP_THREAD
from gateway.chat.routes import MODELS, Route, route_of
from gateway.chat.service import failure_response
from gateway.errors import HANDLER
from gateway.identity import CHAT, Caller
from gateway.viewsets import GatewayView
from webhooks_core.errors import PayloadTooLargeError


class ChatView(GatewayView):
    """Passes a request to the service on its event loop, and waits."""

    schema = None  # gateway.chat.openapi describes it
    required_scope = CHAT
    chat_route: Route = MODELS

    @property
    def default_response_headers(self) -> dict[str, str]:
        return {}

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        self.chat_route.check_method(request.method or "")
        super().initial(request, *args, **kwargs)

    def get_exception_handler(self) -> Callable[..., Any]:
        return self._failure

    def _failure(self, error: Exception, _: Any) -> HttpResponseBase:
        request_id = getattr(self.request, "request_id", "")
        api_format = self.chat_route.format_for(self.request.headers)
        return _http_response(failure_response(error, request_id, api_format))

    def get(self, request: Request, **_: str) -> HttpResponseBase:
        answer = _serve(self.caller, _chat_request(request))
        response = LOOP_THREAD.submit(answer).result()
        if response.rest is None:
            return _http_response(response)
        return _Stream(response, response.rest)

    post = get


def _chat_request(request: Request) -> ChatRequest:
    """Raises as _read_body does."""
    body = _read_body(request) if request.method == "POST" else b""

    async def read() -> bytes:
        return body

    chat_request = ChatRequest(
        method=request.method or "",
        path=request.path_info,
        headers={name.lower(): value for name, value in request.headers.items()},
        peer=request.META.get("REMOTE_ADDR") or "",
        read=read,
        query=request.META.get("QUERY_STRING") or "",
    )
    # The middleware that logs has given it one already.
    chat_request.request_id = getattr(request, "request_id", chat_request.request_id)
    return chat_request


def _read_body(request: Request) -> bytes:
    """Raises PayloadTooLargeError, and what Django raises for a client that has disconnected."""
    check_length(request.META.get("CONTENT_LENGTH") or "")
    body: bytes = request.read(MAX_BODY_BYTES + 1)
    if len(body) > MAX_BODY_BYTES:
        raise PayloadTooLargeError
    return body


async def _serve(caller: Caller, request: ChatRequest) -> ChatResponse:
    return await runtime.current().service.answer(request, caller)


def _http_response(response: ChatResponse) -> HttpResponse:
    return HttpResponse(
        response.body, status=response.status, headers=dict(response.headers)
    )


class _Stream(StreamingHttpResponse):
    """A stream that comes from the loop thread; closing it cancels the upstream's call."""

    def __init__(self, response: ChatResponse, rest: AsyncGenerator[bytes]) -> None:
        self._rest = rest
        parts = _parts(response.body, rest)
        super().__init__(parts, status=response.status, headers=dict(response.headers))

    def close(self) -> None:
        super().close()
        # Not by submit(), since a stop of the process must not cancel it.
        asyncio.run_coroutine_threadsafe(_close(self._rest), LOOP_THREAD.loop)


async def _next(rest: AsyncGenerator[bytes]) -> bytes | None:
    return await anext(rest, None)


async def _close(rest: AsyncGenerator[bytes]) -> None:
    await rest.aclose()


def _parts(first: bytes, rest: AsyncGenerator[bytes]) -> Iterator[bytes]:
    yield first
    while (part := LOOP_THREAD.submit(_next(rest)).result()) is not None:
        yield part


def response_for(
    request: HttpRequest, status: int, error: BaseException | None
) -> HttpResponse:
    """Answer what failed outside the views, in the format of the address."""
    failure = HANDLER.translate(error) or HANDLER.kinds[status]()
    path = "/" + request.path.lstrip("/")
    api_format = route_of(path).format_for(request.headers)
    body = api_format.error(failure.status_code, failure.detail)
    headers = failure.headers | {"Cache-Control": "no-store"}
    return JsonResponse(body, status=failure.status_code, headers=headers)
